"""What a test does with a store, in the verbs of the domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any, Literal

from contract.backends import START_MS, Backend, Row
from contract.plans import HANDLERS, Draft, a, plan
from contract.verified import differences
from outlast.domain.access import Scope
from outlast.domain.effects import EffectCall, Judged, Met
from outlast.domain.errors import OutlastError
from outlast.domain.ids import uuid7
from outlast.domain.limits import START, Place
from outlast.domain.model import TargetRef, UniquePolicy
from outlast.domain.retry import GiveUp, RetryIn
from outlast.domain.work import (
    ActiveKey,
    ActiveTaken,
    Admission,
    Admitted,
    Asked,
    Claimed,
    Control,
    Erased,
    Failed,
    Finished,
    JobRow,
    KeyTaken,
    LostLease,
    RecoveryRows,
    Renewal,
    Settled,
    TaskRow,
    Turn,
    Verdict,
    Woken,
)
from outlast.store.drive import BadData
from outlast.store.program import Operation, T
from outlast.store.programs import (
    admission,
    claims,
    completion,
    control,
    effects,
    forgetting,
    replay,
    rerun,
    retention,
    slots,
    status,
    sweep,
    targets,
)

TENANT = "acme"
OWNER = "ann"
ANN = Scope(TENANT, OWNER)
BOB = Scope(TENANT, "bob")
STRANGER = Scope("elsewhere", OWNER)  # the same name in another tenant
OPERATOR = Scope(TENANT, None)
LEASE_MS = 30_000
WINDOW_MS = 3_600_000  # of a question
RETENTION_MS = 86_400_000
HORIZON_MS = 172_800_000
TIMEOUT_MS = 10_000  # of an effect's call
JITTER = 0.5

ACCEPTED, CANCELLED, STALE = Verdict.ACCEPTED, Verdict.CANCELLED, Verdict.STALE


class Harness:
    """A store with its clock, and short ways to say what a test is about."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.now = START_MS
        self.exempt: str | None = None  # why the rows need not add up in the end: the test broke them by hand
        self.aside: frozenset[str] = frozenset()  # rules that the test broke by hand
        self._jobs = 0
        self._holders = 0

    # -- clock and rows ---------------------------------------------------------------------------------------

    def advance(self, ms: int) -> None:
        """Lets time pass."""
        self.now += ms
        self.backend.set_clock(self.now)

    def run(self, operation: Operation[T]) -> T:
        """The operation's value."""
        return self.backend.run(operation)

    def drive(self, call: Generator[Any, Any, T]) -> T:
        """The value of one of the client's calls."""
        try:
            wanted = next(call)
            while True:
                try:
                    given = self.run(wanted)
                except OutlastError as error:
                    wanted = call.throw(error)
                else:
                    wanted = call.send(given)
        except StopIteration as stop:
            value: T = stop.value
            return value

    def sql(self, text: str, **params: Any) -> list[Row]:
        """Reads or changes rows behind the store's back; tables are written `{outlast.job}`."""
        return self.backend.query(text, params)

    def rows(self, table: str, job: str | None = None) -> list[Row]:
        """A table's rows, of one job or of all, in key order."""
        found = self.sql(f"select * from {{outlast.{table}}}")
        column = "id" if table == "job" else "job_id"
        kept = [row for row in found if job is None or row[column] == job]
        order = ("tenant", column, "no", "parent", "child", "fence", "id", "name")
        return sorted(kept, key=lambda r: [str(r.get(name)).rjust(20) for name in order])

    def rows_of(self, table: str) -> list[Row]:
        """All rows of a table that is no job's."""
        return sorted(self.sql(f"select * from {{outlast.{table}}}"), key=repr)

    def snapshot(self) -> dict[str, list[Row]]:
        """Everything that the store holds."""
        return {name: sorted(self.sql(f"select * from {{outlast.{name}}}"), key=repr) for name in self.backend.tables()}

    def job_row(self, job: str) -> Row:
        """The job as it is stored."""
        (row,) = self.rows("job", job)
        return row

    def task_row(self, job: str, label: str = "one") -> Row:
        """A task as it is stored."""
        (row,) = [t for t in self.rows("task", job) if t["label"] == label]
        return row

    def entry(self, job: str, label: str = "one") -> Row | None:
        """A task's entry, if it has one."""
        no = self.task_row(job, label)["no"]
        found = [e for e in self.rows("queue_entry", job) if e["no"] == no]
        return found[0] if found else None

    def standing(self, job: str, label: str = "one") -> Row:
        """A task's entry."""
        entry = self.entry(job, label)
        assert entry is not None
        return entry

    def check(self) -> None:
        """Nothing that is stored differs from what follows from the rest."""
        found = [said for said in differences(self.backend) if said.partition(":")[0] not in self.aside]
        assert not found, "\n".join(found)

    # -- admission --------------------------------------------------------------------------------------------

    def admission(
        self,
        *tasks: Draft,
        key: str | None = None,
        request: str = "the same",
        owner: str = OWNER,
        tenant: str = TENANT,
        due_in: int | None = None,
        kind: str = "kind",
        label: str = "A job",
        body: str = '{"n":1}',
        caller: str = "{}",
        rerun_of: str | None = None,
        effect_root: str | None = None,
        unique: str | None = None,
        policy: UniquePolicy = "existing",
        scope: str | None = None,
        target: TargetRef | None = None,
        quota: int | None = None,
    ) -> Admission:
        """A job to admit; without tasks it has one, labelled `one`. `unique`: its unique key, in its owner's scope unless told."""
        self._jobs += 1
        job_id = uuid7(START_MS + self._jobs, self._jobs.to_bytes(10, "big"))
        return Admission(
            tenant=tenant,
            owner=owner,
            key=key,
            fingerprint=request,
            job_id=job_id,
            kind=kind,
            schema_version=1,
            label=label,
            input=body,
            caller=caller,
            tasks=plan(*(tasks or (a("one"),))),
            not_before_ms=None if due_in is None else self.now + due_in,
            rerun_of=rerun_of,
            effect_root=effect_root or job_id,
            correlation_id=f"c{self._jobs}",
            traceparent=None,
            unique=None if unique is None else ActiveKey(scope or f"{kind}/{owner}", unique, policy, RETENTION_MS),
            target=target,
            quota=quota,
        )

    def submit(self, *jobs: Admission) -> list[Admitted | KeyTaken]:
        """Each by itself, in one batch."""
        return self.run(admission.admit(jobs))

    def submit_unique(self, job: Admission) -> Admitted | KeyTaken | ActiveTaken:
        """One with a unique key, or under a quota."""
        return self.run(admission.admit_alone(job))

    def submit_all(self, *jobs: Admission) -> list[Admitted]:
        """All or none."""
        return self.run(admission.admit_all(jobs))

    def admit(self, *tasks: Draft, **options: Any) -> str:
        """The id of a job that is new."""
        job = self.admission(*tasks, **options)
        assert self.submit(job) == [Admitted(job.job_id, replayed=False)]
        return job.job_id

    def rerun(self, scope: Scope, job: Admission) -> Admitted | KeyTaken | None:
        """A new job for a final one."""
        return self.run(rerun.admit_rerun(scope, job))

    # -- holders ----------------------------------------------------------------------------------------------

    def claim(
        self, limit: int = 100, *, queue: str = "default", lease_ms: int = LEASE_MS, worker: str = "w1", handlers: Sequence[str] = HANDLERS
    ) -> list[Claimed]:
        """What a worker gets."""
        self._holders += 1
        return self.run(claims.claim(queue, handlers, limit, f"{worker}:{self._holders}", lease_ms))

    def take(self, label: str = "one", **options: Any) -> Claimed:
        """The next task, which must be this one."""
        (claimed,) = self.claim(1, **options)
        assert claimed.label == label
        return claimed

    def take_all(self, **options: Any) -> dict[str, Claimed]:
        """Everything that can be claimed, by label."""
        return {claimed.label: claimed for claimed in self.claim(**options)}

    def turn(
        self,
        limit: int = 100,
        *,
        after: Place = START,
        queue: str = "default",
        lease_ms: int = LEASE_MS,
        worker: str = "w1",
        handlers: Sequence[str] = HANDLERS,
    ) -> Turn:
        """One turn over the concurrency keys."""
        self._holders += 1
        return self.run(slots.claim_keyed(queue, handlers, limit, f"{worker}:{self._holders}", lease_ms, after=after))

    def claim_keyed(self, limit: int = 100, **options: Any) -> list[Claimed]:
        """What a worker gets of the tasks that have a concurrency key."""
        return list(self.turn(limit, **options).claimed)

    def take_keyed(self, label: str = "one", **options: Any) -> Claimed:
        """The next of them, which must be this one."""
        (claimed,) = self.claim_keyed(1, **options)
        assert claimed.label == label
        return claimed

    def slots(self, key: str | None = None) -> list[Row]:
        """The slots of a key, or of all, in order."""
        return sorted((s for s in self.rows_of("slot") if key in (None, s["key"])), key=lambda s: (s["tenant"], s["key"], s["n"]))

    def held(self, key: str = "k") -> list[int]:
        """The numbers of the slots of a key that are taken."""
        return [s["n"] for s in self.slots(key) if s["job_id"] is not None]

    def renew(self, *claimed: Claimed, progress: str | None = None, lease_ms: int = LEASE_MS) -> list[Verdict]:
        """Verdicts in the order asked."""
        return self.run(claims.renew([Renewal(c.ref, progress) for c in claimed], lease_ms))

    def finish(self, claimed: Claimed, body: str = '{"ok":true}', resource: str | None = None) -> Settled:
        """The verdict of one result."""
        (settled,) = self.finish_all((claimed, body, resource))
        return settled

    def finish_all(self, *results: tuple[Claimed, str, str | None]) -> list[Settled]:
        """Verdicts of a batch of results, in the order asked."""
        batch = [Finished(claimed.ref, worker_of(claimed), body, resource) for claimed, body, resource in results]
        return self.run(completion.finish(batch, RETENTION_MS))

    def failure(self, claimed: Claimed, code: str = "broken", **options: Any) -> Failed:
        """An attempt's failure."""
        return Failed(claimed.ref, worker_of(claimed), code, "It broke.", **options)

    def fail(self, claimed: Claimed, code: str = "broken", *, jitter: float = JITTER, **options: Any) -> Settled:
        """As the worker does it: read and decide, then write under the guard."""
        failure = self.failure(claimed, code, **options)
        decided = self.run(completion.budget(failure, jitter))
        if isinstance(decided, RetryIn):
            return self.run(completion.retry(failure, decided.delay_ms))
        if isinstance(decided, GiveUp):
            return self.give_up(failure)
        return Settled(decided)

    def give_up(self, failure: Failed) -> Settled:
        """The failure's end, without asking whether there is budget."""
        return self.run(completion.give_up(failure, window_ms=WINDOW_MS, retention_ms=RETENTION_MS))

    def ask(self, claimed: Claimed, code: str = "which", actions: Sequence[Any] = ("retry", "answer", "skip")) -> Settled:
        """A question to the owner."""
        question = Asked(claimed.ref, worker_of(claimed), code, "Which one?", tuple(actions))
        return self.run(completion.ask(question, window_ms=WINDOW_MS, retention_ms=RETENTION_MS))

    def begin(self, claimed: Claimed, name: str = "mail", *, given: str = "x", timeout_ms: int = TIMEOUT_MS) -> Met | Verdict:
        """What the claim meets in the effect ledger."""
        return self.run(effects.begin(claimed.ref, EffectCall(name, given, timeout_ms)))

    def retake(self, claimed: Claimed, name: str = "mail", *, given: str = "x", timeout_ms: int = TIMEOUT_MS) -> Met | Verdict:
        """The same where the call may be made again with the same key."""
        return self.run(effects.retake(claimed.ref, EffectCall(name, given, timeout_ms)))

    def intend(self, claimed: Claimed, name: str = "mail", **options: Any) -> Met:
        """The intent, which must be this claim's."""
        met = self.begin(claimed, name, **options)
        assert isinstance(met, Met)
        assert met.state == "intended"
        return met

    def settle(self, met: Met, state: Literal["confirmed", "refused", "unknown"], outcome: str | None = None) -> Judged:
        """A report about the effect."""
        return self.run(effects.settle(met.ref, met.intent, state, outcome))

    def effect(self, name: str = "mail") -> Row:
        """The effect as it is stored."""
        (row,) = [e for e in self.rows("effect") if e["name"] == name]
        return row

    def ask_about(self, claimed: Claimed, met: Met) -> Settled:
        """The question about an effect of unknown outcome."""
        asked = Asked(
            claimed.ref,
            worker_of(claimed),
            "effect_unknown",
            "Did it happen?",
            ("retry", "answer", "skip"),
            effect=(met.ref.name, met.ref.input_hash),
        )
        return self.run(completion.ask(asked, window_ms=WINDOW_MS, retention_ms=RETENTION_MS))

    def snooze(self, claimed: Claimed, delay_ms: int = 5_000) -> Settled:
        """Later."""
        return self.run(claims.snooze(claimed.ref, delay_ms))

    def hand_back(self, claimed: Claimed) -> Settled:
        """For another worker."""
        (settled,) = self.hand_back_all(claimed)
        return settled

    def hand_back_all(self, *claimed: Claimed) -> list[Settled]:
        """Verdicts of a batch, in the order asked."""
        return self.run(claims.hand_back([c.ref for c in claimed]))

    def park(self, claimed: Claimed, body: str = '"made"') -> Settled:
        """The task completes, its result is kept for the owner."""
        return self.run(targets.park(Finished(claimed.ref, worker_of(claimed), body), RETENTION_MS))

    def takeover(self, job_id: str, *, version: int | None = None, scope: Scope = ANN) -> Control:
        """The owner takes the job's target over."""
        return self.run(targets.takeover(scope, job_id, version=version))

    def stop(self, claimed: Claimed) -> Settled:
        """The holder of a cancelled task says that it has stopped."""
        return self.run(control.stop(claimed.ref))

    def wake(self, limit: int = 100) -> Woken:
        """What has fallen due becomes runnable."""
        return self.run(claims.wake(limit))

    # -- owners -----------------------------------------------------------------------------------------------

    def cancel(self, job: str, *, scope: Scope = ANN, version: int | None = None, actor: str = OWNER) -> Control:
        """The owner's cancel."""
        return self.run(control.cancel(scope, job, version=version, actor=actor, retention_ms=RETENTION_MS))

    def act(
        self,
        job: str,
        action: str,
        *,
        attention: str | None = None,
        answer: str | None = None,
        scope: Scope = ANN,
        request: str | None = None,
        actor: str | None = None,
    ) -> Control:
        """The owner's decision, on the open question if none is named."""
        return self.run(
            control.act(
                scope,
                job,
                attention or self.question(job),
                action=action,
                answer=answer,
                request_hash=request or f"{action} {answer}",
                actor=actor or scope.owner or "operator",
                retention_ms=RETENTION_MS,
            )
        )

    def replay(
        self, job: str, *, scope: Scope = OPERATOR, actor: str = "olga", reason: str = "The provider is back.", n: int = 1
    ) -> Control:
        """An operator's replay."""
        return self.run(
            replay.replay(
                scope,
                job,
                audit_id=f"00000000-0000-7000-8000-00000000000{n}",
                actor=actor,
                reason=reason,
                request_hash="retry None",
                retention_ms=RETENTION_MS,
            )
        )

    def question(self, job: str, label: str | None = None) -> str:
        """The id of the job's one open question, or of the one about a task."""
        no = None if label is None else self.task_row(job, label)["no"]
        (found,) = [q["id"] for q in self.rows("attention", job) if q["resolved_at"] is None and no in (None, q["no"])]
        return str(found)

    # -- the sweep --------------------------------------------------------------------------------------------

    def ended_leases(self) -> list[LostLease]:
        """The sweep's candidates."""
        return self.run(sweep.ended_leases(None, 200))

    def sweep(self, batch: int = 200) -> Counter[str]:
        """One whole sweep, as the worker does it: outcomes by name, and `bad` for what could not be handled."""
        report: Counter[str] = Counter()
        lost = None
        while rows := self.run(sweep.ended_leases(lost, batch)):
            for lost in rows:
                report[self._isolated(lost)] += 1
            if len(rows) < batch:
                break
        over = None
        while questions := self.run(sweep.windows_over(over, batch)):
            for over in questions:
                report[self.run(sweep.close_window(over, retention_ms=RETENTION_MS)).value] += 1
            if len(questions) < batch:
                break
        return report

    def _isolated(self, row: LostLease) -> str:
        try:
            return self.sweep_one(row)
        except BadData:
            return "bad"

    def sweep_one(self, row: LostLease) -> str:
        """What became of one candidate."""
        if row.revoked:
            return self.run(sweep.stop_lost(row)).value
        decided = self.run(sweep.lost(row, JITTER))
        if decided is None:
            return "passed"
        if isinstance(decided, GiveUp):
            return self.run(sweep.give_up_lost(row, window_ms=WINDOW_MS, retention_ms=RETENTION_MS)).value
        return self.run(sweep.retry_lost(row, decided.delay_ms)).value

    def lose(self, claimed: Claimed) -> None:
        """The worker goes away, and its lease ends."""
        entry = self.sql(
            "select {ms:lease_until} as ms from {outlast.queue_entry} where tenant = :tenant and job_id = {uuid:job_id} and no = :no",
            tenant=claimed.ref.tenant,
            job_id=claimed.ref.job_id,
            no=claimed.ref.no,
        )
        self.advance(entry[0]["ms"] - self.now)

    # -- retention --------------------------------------------------------------------------------------------

    def purge(self, limit: int = 100, *, older_ms: int | None = None) -> list[str]:
        """One whole purge, as the worker does it but for the sizes of its batches: the ids that are gone."""
        after: str | None = None
        gone: list[str] = []
        while True:
            stretch = self.run(retention.due(after, limit=limit, older_ms=older_ms))
            for tenant in sorted({job.tenant for job in stretch.due}):
                ids = [job.id for job in stretch.due if job.tenant == tenant]
                gone += self.run(retention.purge(tenant, ids, horizon_ms=HORIZON_MS, older_ms=older_ms))
            after = stretch.last
            if after is None:
                return gone

    def outlive(self, *jobs: str) -> None:
        """Time passes until these jobs are no longer kept, and they are purged, with all others that are due."""
        self.advance(RETENTION_MS)
        assert {*jobs} <= {*self.purge()}

    def erase(self, *jobs: str, owner: str = OWNER, tenant: str = TENANT, audit: str = "00000000-0000-7000-8000-0000000000f1") -> Erased:
        """One step of a person's deletion."""
        return self.run(forgetting.erase(tenant, owner, jobs, audit_id=audit, actor="olga"))

    # -- what people see --------------------------------------------------------------------------------------

    def view(self, job: str, scope: Scope = ANN) -> JobRow:
        """The job as it is shown."""
        row = self.run(status.job(scope, job))
        assert row is not None
        return row

    def tasks(self, job: str, scope: Scope = ANN) -> list[TaskRow]:
        """Its tasks as they are shown."""
        rows = self.run(status.tasks(scope, job))
        assert rows is not None
        return rows

    def task(self, job: str, label: str = "one") -> TaskRow:
        """One task as it is shown."""
        (row,) = [t for t in self.tasks(job) if t.label == label]
        return row

    def shows(self, job: str) -> dict[str, str]:
        """The shown states of its tasks by label."""
        return {t.label: t.state for t in self.tasks(job)}

    def recovery(self, job: str, scope: Scope = ANN) -> RecoveryRows:
        """Its past."""
        found = self.run(status.recovery(scope, job))
        assert found is not None
        return found[1]


def worker_of(claimed: Claimed) -> str:
    """The worker in a holder."""
    return claimed.ref.holder.rpartition(":")[0]
