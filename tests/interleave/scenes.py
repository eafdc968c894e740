"""Where the races start: small databases, built by the programs themselves at a held clock, copied aside and put back for each run.

The store's clock is a function that reads a table, so that an instant is exact and only a tick moves it. One tick is longer
than anything else: what was written before it and after it is equal once times are taken modulo the tick.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import psycopg

from outlast.domain.access import Scope
from outlast.domain.effects import EffectCall, EffectRef, Intent
from outlast.domain.kinds import TaskSpec
from outlast.domain.limits import Limit
from outlast.domain.model import TargetRef, UniquePolicy
from outlast.domain.schedules import Definition, Every, ScheduleKey, stored
from outlast.domain.work import ActiveKey, Admission, Asked, Failed, Finished, TaskRef
from outlast.store.drive import drive
from outlast.store.postgres import migrating
from outlast.store.postgres.dialect import SCHEMA, statements
from outlast.store.program import Operation, Rows, Statement
from outlast.store.programs import admission, claims, completion, control, effects, queues, retention, schedules, slots, steps, targets

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]
State = dict[str, list[dict[str, Any]]]

CLOCK = "fake.now()"
START = datetime(2030, 1, 1, tzinfo=UTC)
TICK = 100_000
"""Seconds: past every lease, due time and window of the scenes."""
LEASE_MS = 30_000
RETENTION_MS = 5_000_000
HORIZON_MS = 9_000_000
WINDOW_MS = 70_000_000

TENANT, OWNER, QUEUE = "acme", "ada", "q"
OWNERS = Scope(TENANT, OWNER)
JOB = "019a0000-0000-7000-8000-000000000001"
OTHER = "019a0000-0000-7000-8000-000000000002"
ROOT = "019a0000-0000-7000-8000-000000000009"
HANDLERS = tuple(f"k@1:t{no}" for no in range(12))

_WRITTEN = " ".join(
    (
        f'select (select count(*) from "{SCHEMA}".output), (select count(*) from "{SCHEMA}".step),',
        f"(select count(*) from \"{SCHEMA}\".task where state = 'completed'),",
        f"(select count(*) from \"{SCHEMA}\".effect where state = 'intended')",
    )
)
_TIMES = frozenset({"at", "until", "lease_until", "not_before"})


def task(
    no: int,
    *,
    after: Sequence[int] = (),
    soft: Sequence[int] = (),
    optional: bool = False,
    usable: bool = False,
    limit: Limit | None = None,
) -> TaskSpec:
    return TaskSpec(
        no=no,
        label=f"t{no}",
        handler=HANDLERS[no],
        queue=QUEUE,
        priority=0,
        required=not optional,
        usable=usable,
        max_attempts=5,
        base_ms=4_000,
        cap_ms=60_000,
        window_ms=86_400_000,
        deadline_ms=600_000,
        item=None,
        parents=(*((parent, False) for parent in after), *((parent, True) for parent in soft)),
        slot_key=None if limit is None else limit.key,
        slot_limit=None if limit is None else limit.slots,
    )


def job(
    *tasks: TaskSpec,
    id: str = JOB,
    key: str | None = "k1",
    fingerprint: str = "f1",
    not_before_ms: int | None = None,
    unique: str | None = None,
    policy: UniquePolicy = "existing",
    quota: int | None = None,
) -> Admission:
    return Admission(
        tenant=TENANT,
        owner=OWNER,
        key=key,
        fingerprint=fingerprint,
        job_id=id,
        kind="k",
        schema_version=1,
        label="a job",
        input="{}",
        caller="{}",
        tasks=tasks,
        not_before_ms=not_before_ms,
        rerun_of=None,
        effect_root=id,
        correlation_id="c",
        traceparent=None,
        unique=None if unique is None else ActiveKey(f"k/{OWNER}", unique, policy, RETENTION_MS),
        quota=quota,
    )


def ref(no: int, fence: int = 1) -> TaskRef:
    """The claim that every scene makes of a task that it leaves held."""
    return TaskRef(TENANT, JOB, no, fence, f"w{no}:1")


@dataclass(slots=True)
class Builder:
    """Makes one scene: runs operations at the held clock, each in a transaction."""

    connection: Connection
    sql: Mapping[str, str]

    def run(self, operation: Operation[T]) -> T:
        with self.connection.transaction():
            return drive(operation.start(), self._execute)

    def _execute(self, statement: Statement) -> Rows:
        cursor = self.connection.execute(self.sql[statement.name], statement.params)
        return cursor.fetchall() if cursor.description else ()

    def hold(self, *nos: int) -> None:
        for no in nos:
            taken = self.run(claims.claim(QUEUE, [HANDLERS[no]], 1, f"w{no}:1", LEASE_MS))
            assert [c.ref.no for c in taken] == [no]

    def hold_keyed(self, *nos: int) -> None:
        for no in nos:
            turn = self.run(slots.claim_keyed(QUEUE, [HANDLERS[no]], 1, f"w{no}:1", LEASE_MS))
            assert [c.ref.no for c in turn.claimed] == [no]

    def ask(self, no: int, *actions: Any) -> None:
        self.hold(no)
        asked = Asked(ref(no), f"w{no}", "question", "Well?", actions)
        self.run(completion.ask(asked, window_ms=WINDOW_MS, retention_ms=RETENTION_MS))

    def give_up(self, no: int) -> None:
        self.hold(no)
        failed = Failed(ref(no), f"w{no}", "error", "It failed.", permanent=True)
        self.run(completion.give_up(failed, window_ms=WINDOW_MS, retention_ms=RETENTION_MS))

    def retry(self, no: int, delay_ms: int) -> None:
        self.hold(no)
        self.run(completion.retry(Failed(ref(no), f"w{no}", "error", "It failed."), delay_ms))


def _grand(b: Builder) -> None:
    """One job with everything: held, queued, waiting, asking and blocked tasks, required and optional."""
    b.run(
        admission.admit(
            [
                job(
                    task(0),
                    task(1),
                    task(2, after=(0, 1), usable=True),
                    task(3, after=(5,), optional=True),
                    task(4),
                    task(5, optional=True),
                    task(6),
                    task(7),
                    task(8, optional=True),
                    task(9, soft=(8,)),
                    task(10, after=(8,), optional=True),
                    task(11),
                )
            ]
        )
    )
    b.ask(5, "retry", "answer", "skip")
    b.give_up(6)
    b.retry(7, 50_000)
    b.hold(0, 1, 8)


def _last(b: Builder) -> None:
    """A job that the next step may end: one required task held, one optional task asking."""
    b.run(admission.admit([job(task(0, usable=True), task(1, optional=True))]))
    b.ask(1, "retry", "skip")
    b.hold(0)


def _cancelled(b: Builder) -> None:
    """Cancelled while two tasks were held and one asked: two revoked entries are left."""
    b.run(admission.admit([job(task(0), task(1), task(2, after=(0,)), task(3), task(5, optional=True))]))
    b.ask(5, "retry", "skip")
    b.hold(0, 1)
    b.run(control.cancel(OWNERS, JOB, version=None, actor=OWNER, retention_ms=RETENTION_MS))


def _cancelled_once(b: Builder) -> None:
    """Cancelled while one task was held: the entry left is the last."""
    b.run(admission.admit([job(task(0), task(1))]))
    b.hold(0)
    b.run(control.cancel(OWNERS, JOB, version=None, actor=OWNER, retention_ms=RETENTION_MS))


def _queue(b: Builder) -> None:
    """Three tasks ready, one waiting for its time."""
    b.run(admission.admit([job(task(0), task(1), task(2), task(3))]))
    b.retry(3, 50_000)


def _paused(b: Builder) -> None:
    """The same, paused."""
    _queue(b)
    b.run(queues.pause(QUEUE, audit_id=OTHER, tenant=TENANT, actor="op", reason="The printer is down."))


def _active(b: Builder) -> None:
    """A job with a unique key, of which one task is held, one ready, one asks (optional) and one waits."""
    b.run(admission.admit_alone(job(task(0), task(4), task(5, optional=True), task(7, after=(0,)), unique="u")))
    b.ask(5, "retry", "answer", "skip")
    b.hold(0)


def _active_last(b: Builder) -> None:
    """A job with a unique key that the next step may end: one task is held, and an optional one asks."""
    b.run(admission.admit_alone(job(task(0), unique="u")))
    b.hold(0)


def _active_asks(b: Builder) -> None:
    """A job with a unique key whose one task asks."""
    b.run(admission.admit_alone(job(task(0), unique="u")))
    b.ask(0, "retry", "answer")


def _actives(b: Builder) -> None:
    """Two jobs with a unique key each; nothing is held."""
    b.run(admission.admit_all([job(task(0), unique="u"), job(task(0), id=OTHER, key="k2", unique="v")]))


def _counted(b: Builder) -> None:
    """A job under a quota, which the next step may end: its one task is held."""
    b.run(admission.admit_alone(job(task(0), unique="u", quota=2)))
    b.hold(0)


def _counted_twice(b: Builder) -> None:
    """The same, and one more that has ended and is counted still."""
    b.run(admission.admit_alone(job(task(0), id=OTHER, key="k2", quota=2)))
    b.run(control.cancel(OWNERS, OTHER, version=None, actor=OWNER, retention_ms=RETENTION_MS))
    _counted(b)


def _uncounted(b: Builder) -> None:
    """A job of before there was a quota; its one task is held."""
    b.run(admission.admit([job(task(0))]))
    b.hold(0)


def _empty(_: Builder) -> None:
    """No job."""


CALL = EffectCall("e", "x", 0)
"""The one effect of each task in the scenes; its time-out is over at once."""


def _effects(b: Builder) -> None:
    """Held: task 0 without an effect, 1 with its own intent, 2 with that of an earlier claim. 3 asks about one of unknown outcome."""
    b.run(admission.admit([job(task(0), task(1), task(2), task(3))]))
    b.hold(0, 1, 2, 3)
    for no in (1, 2, 3):
        b.run(effects.begin(ref(no), CALL))
    b.run(claims.hand_back([ref(2), ref(3)]))
    b.hold(2, 3)
    b.run(effects.begin(ref(3, 2), CALL))
    asked = Asked(ref(3, 2), "w3", "effect_unknown", "Well?", ("retry", "answer"), effect=(CALL.name, CALL.input_hash))
    b.run(completion.ask(asked, window_ms=WINDOW_MS, retention_ms=RETENTION_MS))


def _reruns(b: Builder) -> None:
    """Two jobs that repeat a third one: their tasks, both held, are about one effect."""
    for made, key in ((JOB, "k1"), (OTHER, "k2")):
        b.run(admission.admit([replace(job(task(0), id=made, key=key), effect_root=ROOT, rerun_of=ROOT)]))
    b.hold(0)
    b.hold(0)


def _target(b: Builder) -> None:
    """A job with a target: two tasks that hold results for it, and a third whose result was parked."""
    made = job(task(0), task(1), task(2), task(3, after=(0,)))
    b.run(admission.admit([replace(made, target=TargetRef("d", "1"))]))
    b.hold(0, 1, 2)
    b.run(targets.park(Finished(ref(2), "w2", '"parked"'), RETENTION_MS))


SCHEDULE = ScheduleKey(TENANT, OWNER, "s")
HOURLY = Definition("k", 1, "{}", "{}", stored(Every(3_600)), 2)
START_MS = round(START.timestamp() * 1000)


def _schedule(b: Builder) -> None:
    """A schedule of which two due times have come."""
    b.run(schedules.make(SCHEDULE, HOURLY))
    b.connection.execute(
        f'update "{SCHEMA}".schedule set made_at = %s, next_at = %s', (START - timedelta(hours=3), START - timedelta(hours=1))
    )


def _schedule_paused(b: Builder) -> None:
    """The same, paused."""
    _schedule(b)
    b.run(schedules.pause(SCHEDULE, OWNER))


def _reruns_met(b: Builder) -> None:
    """The same, and the first of them has begun."""
    _reruns(b)
    b.run(effects.begin(ref(0), CALL))


_K, _J = Limit("k", 2), Limit("j", 1)


def _keyed(b: Builder) -> None:
    """Of the key k one of two slots is taken, by task 0, and 1 and 2 wait; of the key j the only one, by task 3, and 4 waits."""
    b.run(admission.admit([job(*(task(no, limit=_K) for no in range(3)), task(3, limit=_J), task(4, limit=_J), task(5))]))
    b.hold_keyed(0, 3)


def _keyed_cancelled(b: Builder) -> None:
    """The same, cancelled; another job's task waits for what it still holds."""
    _keyed(b)
    b.run(admission.admit([job(task(0, limit=_K), task(1, limit=_K), task(4, limit=_J), id=OTHER, key="k2")]))
    b.run(control.cancel(OWNERS, JOB, version=None, actor=OWNER, retention_ms=RETENTION_MS))


def _keyed_new(b: Builder) -> None:
    """A key that no task was ever claimed of."""
    b.run(admission.admit([job(task(0, limit=_K), task(1, limit=_K))]))


def _ended(b: Builder) -> None:
    """A completed job with a step, an effect that happened, and optional work that failed."""
    b.run(admission.admit([job(task(0), task(1, optional=True))]))
    b.give_up(1)
    b.hold(0)
    b.run(steps.store_step(ref(0), "s", '"kept"'))
    b.run(effects.begin(ref(0), CALL))
    b.run(effects.settle(EffectRef(TENANT, JOB, "t0", CALL.name, CALL.input_hash), Intent(JOB, 0, 1), "confirmed", "1"))
    b.run(completion.finish([Finished(ref(0), "w0", '"done"')], RETENTION_MS))


def _target_ended(b: Builder) -> None:
    """A completed job with a target, and a result that was parked."""
    b.run(admission.admit([replace(job(task(2)), target=TargetRef("d", "1"))]))
    b.hold(2)
    b.run(targets.park(Finished(ref(2), "w2", '"parked"'), RETENTION_MS))


def _reruns_of(b: Builder) -> None:
    """Two jobs that repeat a third one, which was purged: both held, and the first has begun the effect that they share."""
    for made, key in ((JOB, "k1"), (OTHER, "k2")):
        b.run(admission.admit([replace(job(task(0), id=made, key=key), effect_root=ROOT, rerun_of=ROOT)]))
    b.hold(0)
    b.hold(0)
    b.run(effects.begin(ref(0), CALL))


def _reruns_left(b: Builder) -> None:
    """Of them the first has ended."""
    _reruns_of(b)
    b.run(completion.finish([Finished(ref(0), "w0", '"done"')], RETENTION_MS))


def _reruns_ended(b: Builder) -> None:
    """Of them both have ended."""
    _reruns_left(b)
    b.run(completion.finish([Finished(replace(ref(0), job_id=OTHER), "w0", '"done"')], RETENTION_MS))


def _buried(b: Builder) -> None:
    """A job that was purged: its key answers until the clock moves on."""
    _ended(b)
    b.run(retention.purge(TENANT, [JOB], horizon_ms=HORIZON_MS, older_ms=0))


SCENES = {
    "keyed": _keyed,
    "keyed_cancelled": _keyed_cancelled,
    "keyed_new": _keyed_new,
    "ended": _ended,
    "target_ended": _target_ended,
    "reruns_left": _reruns_left,
    "reruns_ended": _reruns_ended,
    "buried": _buried,
    "target": _target,
    "schedule": _schedule,
    "schedule_paused": _schedule_paused,
    "effects": _effects,
    "reruns": _reruns,
    "reruns_met": _reruns_met,
    "grand": _grand,
    "last": _last,
    "cancelled": _cancelled,
    "cancelled_once": _cancelled_once,
    "queue": _queue,
    "paused": _paused,
    "active": _active,
    "active_last": _active_last,
    "active_asks": _active_asks,
    "actives": _actives,
    "counted": _counted,
    "counted_twice": _counted_twice,
    "uncounted": _uncounted,
    "empty": _empty,
}


class Stage:
    """A database with all scenes, and the connection from which a run is set up, watched and read."""

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo
        migrating.apply(conninfo)
        self.connection = self._open()
        self._normal: dict[str, str] = {}
        self.tables = self._tables()
        self._make()
        self.first: dict[str, State] = {}
        for scene in SCENES:
            self.reset(scene)
            self.first[scene] = json.loads(self.dump())

    def _open(self) -> Connection:
        connection: Connection = psycopg.connect(self.conninfo, autocommit=True, prepare_threshold=0)
        connection.execute("set synchronous_commit = off")
        return connection

    def connect(self) -> None:
        """A new connection in place of one that was lost."""
        self.connection.close()
        self.connection = self._open()

    def _tables(self) -> dict[str, list[str]]:
        rows = self.connection.execute(
            "select c.relname, array(select a.attname::text from unnest(i.indkey) k(n) "
            "join pg_attribute a on a.attrelid = c.oid and a.attnum = k.n) "
            "from pg_class c join pg_index i on i.indrelid = c.oid and i.indisprimary "
            "where c.relnamespace = %s::regnamespace and c.relkind = 'r' and c.relname <> 'migration' order by 1",
            (SCHEMA,),
        ).fetchall()
        return {str(name): list(key) for name, key in rows}

    def _make(self) -> None:
        run = self.connection.execute
        run("create schema fake")
        run("create table fake.clock (at timestamptz not null)")
        run("insert into fake.clock values (%s)", (START,))
        run("create function fake.now() returns timestamptz language plpgsql volatile as 'begin return (select at from fake.clock); end'")
        for table in self.tables:
            run(f'alter table "{SCHEMA}"."{table}" set (autovacuum_enabled = off)')
        sql = statements(SCHEMA, CLOCK)
        for scene, build in SCENES.items():
            for table in self.tables:
                run(f'truncate "{SCHEMA}"."{table}"')
            build(Builder(self.connection, sql))
            back = [f"update fake.clock set at = '{START.isoformat()}';"]
            for table in self.tables:
                run(f'create table fake."{scene}_{table}" as table "{SCHEMA}"."{table}"')
                filled = self.connection.execute(f'select exists (select 1 from "{SCHEMA}"."{table}")').fetchone()
                back.append(f'delete from "{SCHEMA}"."{table}";')
                if filled == (True,):
                    back.append(f'insert into "{SCHEMA}"."{table}" select * from fake."{scene}_{table}";')
            run(f"create function fake.reset_{scene}() returns void language plpgsql as $$begin {' '.join(back)} end$$")
        parts = [
            f"'{table}', (select coalesce(json_agg(x order by {', '.join(key)}), '[]') from \"{SCHEMA}\".\"{table}\" x)"
            for table, key in self.tables.items()
        ]
        run(
            "create function fake.dump() returns text language plpgsql volatile as "
            f"$$begin return (select json_build_object({', '.join(parts)})); end$$"
        )

    def reset(self, scene: str) -> None:
        """Every table as the scene has it, and the clock at its start."""
        self.connection.execute(f"select fake.reset_{scene}()")

    def clean(self) -> None:
        """Takes the dead rows of many runs out of the tables."""
        for table in (*(f'"{SCHEMA}"."{name}"' for name in self.tables), "fake.clock"):
            self.connection.execute(f"vacuum {table}")

    def tick(self) -> None:
        """Moves the clock past every lease, due time and window."""
        self.connection.execute(f"update fake.clock set at = at + interval '{TICK} s'")

    def blocked(self, pid: int, *, by: int) -> bool:
        """Whether the first session waits for a lock of the second."""
        row = self.connection.execute("select %s = any(pg_blocking_pids(%s))", (by, pid)).fetchone()
        return row == (True,)

    def dump(self) -> str:
        """All rows as JSON text."""
        row = self.connection.execute("select fake.dump()").fetchone()
        assert row is not None
        return str(row[0])

    def written(self) -> tuple[int, ...]:
        """How many results there are: outputs, steps, completed tasks. None may be added after a cancel."""
        row = self.connection.execute(_WRITTEN).fetchone()
        assert row is not None
        return row

    def normal(self, dumped: str) -> str:
        """The same with times as seconds since the start, modulo the tick."""
        known = self._normal.get(dumped)
        if known is None:
            rows: State = json.loads(dumped)
            for table in rows.values():
                for row in table:
                    for name, value in row.items():
                        if isinstance(value, str) and (name.endswith("_at") or name in _TIMES):
                            row[name] = round((datetime.fromisoformat(value) - START).total_seconds(), 3) % TICK
            known = self._normal[dumped] = json.dumps(rows, sort_keys=True)
        return known

    def close(self) -> None:
        self.connection.close()
