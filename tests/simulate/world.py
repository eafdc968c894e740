"""One seed: processes, people and a provider around one store, in simulated time, until the faults are over and everything has ended."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from invariants import _UNTIMELY, _named
from outlast.observe.events import BadRow, Event, LoopDied, Swept
from outlast.store.program import Rows
from outlast.store.programs.verify import verify
from simulate import shop
from simulate.database import SQL, Crashed, Database, error_of
from simulate.faults import CRASHES, Counts, Fault, Faults, Plan
from simulate.history import History
from simulate.loop import Clock
from simulate.people import Customer, Ledger, Operator, Owner, Person, Planner
from simulate.processes import Api, People, Process, WorkerProcess
from simulate.provider import Provider
from simulate.virtual import Now

START_MS: Final = 1_800_000_000_000
ENDS_WITHIN: Final = 2_400.0
"""Seconds after the last fault within which everything has to have ended."""
_CHECK_EVERY: Final = 50  # commits between two readings of all rows
_LOOKS_EVERY: Final = 15.0
_TRACE: Final = 400
_GUARDED: Final = frozenset({"end_entry", "release_entry", "renew_one", "store_step", "effect_place", "end_lost_entry", "release_lost"})
_OF_HOLDERS: Final = frozenset(
    {"finish", "retry", "give_up", "ask", "snooze", "hand_back", "store_step", "begin", "retake", "settle", "stop", "park"}
)
_MORE_OFTEN: Final = 25.0
_SELDOM: Final = 0.2
_LOOKING: Final = (
    "claim_candidates keyed_walk wake next_due clock walk_jobs ended_leases windows_over due_schedules next_schedule drop_expired"
)
_TIMES: Final[Mapping[str, float]] = {**dict.fromkeys(_LOOKING.split(), _SELDOM), "renew_one": 5.0}
"""How often faults are at a statement: seldom at those that look whether there is something to do, most of the time in vain."""
_UNTIL_REPLACED: Final = 0.4  # of those that stand still, the worse ones do so until another has what they hold
_AT_ONCE: Final = 10  # steps of a process before others have a chance

ACTORS: Final = ("worker-1", "worker-2", "worker-3", "customer-1", "customer-2", "owner-1", "owner-2", "operator", "planner")


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of the engine that must be found out. `sql`: of the statements; `split`: a commit before these statements."""

    name: str
    sql: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda sql: sql
    split: frozenset[str] = frozenset()
    patch: Callable[[], Any] | None = None
    found_by: int = 0  # a seed that finds it


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a seed."""

    seed: int
    hash: int
    seconds: float
    counts: Counts
    faults: tuple[Fault, ...]
    violations: tuple[str, ...]
    trace: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Text:
    """A statement, by its text. Numbers below 0 are those that open and close transactions."""

    name: str
    number: int
    faulty: bool = True
    times: float = 1.0


_COMMIT = _Text("commit", -1)
_CONTROL: Final[Mapping[str, _Text]] = {
    "begin immediate": _Text("begin immediate", -2, times=0.3),
    "savepoint request": _Text("savepoint request", -3),
    "release request": _Text("release request", -4),
    "rollback to request": _Text("rollback to request", -5, faulty=False),
    "rollback": _Text("rollback", -6, faulty=False),
}
_MASK: Final = 2**64 - 1


class World:
    """All of it."""

    def __init__(self, seed: int, plan: Plan, database: Database, *, mutant: Mutant | None = None, tracing: bool = False) -> None:
        self.seed = seed
        self.plan = plan
        self.database = database
        self.mutant = mutant
        self.random = random.Random(f"world {seed}")
        self.clock = Clock(START_MS)
        self.faults = Faults(seed, plan, intensity=self.random.choice((0.4, 1.0, 1.0, 1.6)))
        self.counts = Counts()
        self.sql = SQL if mutant is None else mutant.sql(SQL)
        self._texts = {sql: _Text(name, number, times=_TIMES.get(name, 1.0)) for number, (name, sql) in enumerate(sorted(self.sql.items()))}
        self._split = frozenset[str]() if mutant is None else mutant.split
        self.history = History(self.violated, self._replaced, retention_ms=_ms(shop.RETENTION), horizon_ms=_ms(shop.HORIZON))
        self.violations: list[str] = []
        self.hash = 0
        self.calm = False
        self.finished = False
        self._numbers = 0
        self._saved = False  # whether the transaction that is open is one of several requests, at one of them
        self._burying = False
        self._tracing = tracing
        self._trace: deque[str] = deque(maxlen=_TRACE)
        self._since_check = 0
        self._graves: list[Process] = []
        self.ledger = Ledger(self)
        self.provider = Provider(self)
        self.people = People(self, "people")
        self.processes: list[Process] = [self.people]
        self._api: Api | None = None

    # -- the run ----------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Until everything has ended, or something is wrong."""
        self.database.reset(self.clock)
        Now.world = self
        with self.people.loop.current():
            self.people.loop.create_task(self._direct(), name="director")
        while not (self.finished or self.violations):
            if not self._step():
                self.violated("B1: nothing goes on any more")
        if not self.violations:
            self._check_whole()
        for process in self.processes:
            process.dead = True
            self._bury(process)
        self.counts.jobs = len(self.history.jobs) + len(self.history.purged)
        self.counts.completed = self.history.accepted
        return Outcome(
            self.seed, self.hash, self.clock.now, self.counts, tuple(self.faults.fired), tuple(self.violations), tuple(self._trace)
        )

    def _step(self) -> bool:
        """Some process goes on, or time does; False where neither can."""
        now, soonest, ready = self.clock.now, None, list[Process]()
        for process in self.processes:
            due = process.due_at()
            if due is None:
                continue
            if due <= now:
                ready.append(process)
            elif soonest is None or due < soonest:
                soonest = due
        if ready:
            self._go_on(ready[0] if len(ready) == 1 else self.random.choice(ready))
        elif soonest is not None:
            self.clock.now = soonest
        return bool(ready) or soonest is not None

    def _go_on(self, process: Process) -> None:
        with suppress(Crashed):
            for _ in range(_AT_ONCE):
                process.loop.step()
                if not process.loop.ready or process.awake_at > self.clock.now:
                    break
        for grave in self._graves:
            self.processes.remove(grave)
            self._bury(grave)
        self._graves.clear()

    def _bury(self, process: Process) -> None:
        self._burying = True  # what it says now, nobody hears
        process.bury()
        self._burying = False

    async def _direct(self) -> None:
        """Who comes when, when the faults stop, and when all is over."""
        self._start_api()
        workers = self.random.randint(2, 3)
        for name in ACTORS[:workers]:
            if name not in self.plan.without:
                self.people.loop.call_later(self.random.uniform(0.0, 20.0), self._start_worker, name)
        lives = [asyncio.ensure_future(life) for name, life in self._lives() if name not in self.plan.without or life.close()]
        await asyncio.sleep(self.random.uniform(500.0, 900.0))
        self.faults.over = True
        self.calm = True
        for life in lives:
            try:
                async with asyncio.timeout(ENDS_WITHIN):
                    await life
            except TimeoutError:
                self.violated("B1: somebody still waits for an answer long after the last fault")
        left = self._unsettled()
        for _ in range(round(ENDS_WITHIN / _LOOKS_EVERY)):
            if not left:
                break
            await asyncio.sleep(_LOOKS_EVERY)
            left = self._unsettled()
        if left:
            self.violated(f"B1: {ENDS_WITHIN:.0f} s after the last fault {left}")
        self._check_whole()
        self.finished = True

    def _lives(self) -> list[tuple[str, Any]]:
        ann, bob = shop.OWNERS
        number = self.random.randint(6, 12)
        lives: list[tuple[str, Person, tuple[Any, ...]]] = [
            ("customer-1", Customer(self, "customer-1"), (ann, number)),
            ("customer-2", Customer(self, "customer-2"), (bob, number)),
            ("owner-1", Owner(self, "owner-1"), (ann,)),
            ("owner-2", Owner(self, "owner-2"), (bob,)),
            ("operator", Operator(self, "operator"), ()),
            ("planner", Planner(self, "planner"), (bob,)),
        ]
        return [(name, person.live(*args)) for name, person, args in lives]  # type: ignore[attr-defined]

    def next_number(self) -> int:
        """Of the processes, in the order in which they began."""
        self._numbers += 1
        return self._numbers

    # -- processes --------------------------------------------------------------------------------------------

    def api(self) -> Api:
        """The one that answers at present, or the last one, which does not."""
        assert self._api is not None
        return self._api

    def _start_api(self) -> None:
        self._api = Api(self, "api")
        self.processes.append(self._api)

    def _start_worker(self, name: str) -> None:
        process = WorkerProcess(self, name)
        self.processes.append(process)
        if self.random.random() < 0.1:
            process.loop.call_later(self.random.uniform(10.0, 200.0), process.worker.stop)  # a release, say

    def gone(self, process: Process) -> None:
        """It ended, one way or the other; another one takes its place before long."""
        self._graves.append(process)
        after = self.random.uniform(0.5, 15.0) if self.calm or self.random.random() < 0.9 else self.random.uniform(30.0, 150.0)
        if isinstance(process, Api):
            self.people.loop.call_later(after, self._start_api)
        else:
            self.people.loop.call_later(after, self._start_worker, process.name)

    # -- statements -------------------------------------------------------------------------------------------

    def execute(self, process: Process, sql: str, params: Any, *, reading: bool) -> Rows:
        """A statement of a process, with what may happen to it."""
        if process.dead:
            raise Crashed
        self.counts.statements += 1
        if sql == "commit":
            return self._commit(process)
        text = self._texts.get(sql) or _CONTROL[sql]
        if text.faulty:
            fault = self.faults.draw("read" if reading else "statement", text.times * process.times)
            if fault is not None:
                self._suffer(process, text.name, fault)
        if text.name in self._split:
            self._part(process)
        rows = self._run(text, sql, params)
        if text.number < 0:
            self._control(text.name)
        elif not reading:
            self._seen(text, params, rows)
        self._told(process, text, len(rows))
        return rows

    def _run(self, text: _Text, sql: str, params: Any) -> Rows:
        try:
            return self.database.raw.execute(sql, params).fetchall()
        except sqlite3.Error as error:
            self.violated(f"I5: the statement {text.name} failed by itself: {type(error).__name__}: {error}")
            raise

    def _seen(self, text: _Text, params: Any, rows: Rows) -> None:
        if text.name in _GUARDED and not rows:
            self.counts.refused += 1
        self.history.see(text.name, params, list(rows), self.clock.ms())

    def _control(self, name: str) -> None:
        if name == "savepoint request":
            self._saved = True
            self.history.mark()
        elif name == "release request":
            self._saved = False
        elif name == "rollback":
            self._saved = False
            self.history.roll_back()
        elif name == "rollback to request":
            self.history.back_to_mark()

    def _part(self, process: Process) -> None:
        """Two transactions in place of one, and what may happen between them."""
        self._do_commit(process)
        fault = self.faults.draw("commit")
        if fault is not None and fault.kind in CRASHES:
            self._kill(process)
        self.database.raw.execute("begin immediate")
        if self._saved:
            self.database.raw.execute("savepoint request")

    def before_turn(self, process: Process, operations: list[str]) -> bool:
        """Whether the process stands still with these operations decided and not written: what they were decided on goes out of date."""
        fault = self.faults.draw("turn", 1.0 if _OF_HOLDERS.isdisjoint(operations) else _MORE_OFTEN)
        if fault is None:
            return False
        self._count(process, ", ".join(operations), fault)
        process.awake_at = self.clock.now + shop.LEASE * (0.2 + 2.0 * fault.degree)
        process.until_replaced = fault.degree > _UNTIL_REPLACED
        if process.until_replaced:
            process.awake_at = self.clock.now + 6.0 * shop.LEASE
        return True

    def _replaced(self, holder: str) -> None:
        """The worst moment for a process to come back is when another has just taken over what it holds."""
        worker = holder.rpartition(":")[0]
        for process in self.processes:
            if process.until_replaced and isinstance(process, WorkerProcess) and process.worker.id == worker:
                process.until_replaced = False
                process.awake_at = min(process.awake_at, self.clock.now + self.random.uniform(0.0, 4.0))

    def _suffer(self, process: Process, name: str, fault: Fault) -> None:
        self._count(process, name, fault)
        match fault.kind:
            case "crash":
                self._kill(process)
            case "freeze":
                self.clock.now += fault.degree * 10.0
            case "stall":
                self.clock.now += shop.LEASE * (0.7 + fault.degree * 1.5)
            case "pause":
                process.awake_at = self.clock.now + shop.LEASE * 3.0 * fault.degree
            case "lost":
                self._roll_back()
                raise error_of("lost")
            case kind:
                raise error_of(kind)

    def _commit(self, process: Process) -> Rows:
        fault = self.faults.draw("commit", process.times if self.history.waits else _SELDOM)
        if fault is None:
            self._do_commit(process)
            return []
        self._count(process, "commit", fault)
        match fault.kind:
            case "crash before":
                self._kill(process)
            case "lost before":
                self._roll_back()
                raise error_of("lost")
            case "busy":
                raise error_of("busy")
            case "freeze":
                self.clock.now += shop.LEASE * fault.degree
                self._do_commit(process)
            case "crash after":
                self._do_commit(process)
                self._kill(process)
            case "lost after":
                self._do_commit(process)
                raise error_of("lost")
            case _:
                self._do_commit(process)
                process.awake_at = self.clock.now + shop.LEASE * 3.0 * fault.degree
        return []

    def _do_commit(self, process: Process) -> None:
        self.database.raw.execute("commit")
        self.counts.commits += 1
        self.clock.now += 0.001
        self._told(process, _COMMIT, 0)
        if self.history.commit():
            self._since_check += 1
            if self._since_check >= _CHECK_EVERY:
                self._check_rows()

    def _roll_back(self) -> None:
        if self.database.in_transaction:
            self.database.raw.execute("rollback")
        self._saved = False
        self.history.roll_back()

    def _kill(self, process: Process) -> None:
        self._roll_back()
        process.dead = True
        self.gone(process)
        raise Crashed

    def _count(self, process: Process, name: str, fault: Fault) -> None:
        counts = self.counts
        counts.by_kind[fault.kind] = counts.by_kind.get(fault.kind, 0) + 1
        if fault.kind in CRASHES:
            counts.crashes += 1
        elif fault.kind.startswith("lost "):
            counts.unknown += 1
        elif fault.kind in ("pause", "freeze", "stall"):
            counts.pauses += 1
        else:
            counts.errors += 1
        self.note(process, f"!! {fault.kind} at {name} (fault {fault.place})")

    # -- what is looked at ------------------------------------------------------------------------------------

    def violated(self, sentence: str) -> None:
        """Something that may not be."""
        self.violations.append(sentence)
        self.note(None, f"** {sentence}")

    def told(self, event: Event) -> None:
        """An event of the package's."""
        if self._burying:
            return
        if isinstance(event, Swept):
            self.counts.swept += 1
        elif isinstance(event, LoopDied | BadRow):
            self.violated(f"worker: {event.text()}")

    def key_of(self, job_id: str, label: str) -> str:
        """The provider's key of a task's effect."""
        job = self.history.jobs.get(job_id)
        root = job.root if job is not None else ""
        for (of_root, of_label, _), key in self.history.effects.items():
            if (of_root, of_label) == (root, label):
                return key
        return ""

    def _check_rows(self) -> None:
        self._since_check = 0
        self.counts.checks += 1
        report = self.database.read(verify(limit=5))
        for found in report.findings:
            self.violated(f"{found.rule.full}: job {found.job_id}, task {found.no}: {found.found}; should be: {found.expected}")

    def _check_whole(self) -> None:
        """All rows, the order of times, and that nothing acknowledged is lost."""
        self._check_rows()
        read = self.database.raw.execute
        for said, sql in _UNTIMELY.items():
            for (job_id,) in read(_named(sql, "outlast_")).fetchall():
                self.violated(said.format(id=job_id))
        for key, state in read("select provider_key, state from outlast_effect").fetchall():
            if self.provider.contradicts(key, state):
                self.violated(f"G4: the effect {key[:12]} is {state}, and happened {self.provider.happened[key]} times")
        there = {job_id for (job_id,) in read("select id from outlast_job").fetchall()}
        for job_id in self.ledger.jobs:
            if job_id not in there and job_id not in self.history.purged:
                self.violated(f"A1: the job {job_id} was acknowledged, and is lost")
        if there != set(self.history.jobs):
            self.violated("A1: other jobs are stored than were admitted and not purged")

    def _unsettled(self) -> str:
        read = self.database.raw.execute
        jobs = read("select count(*) from outlast_job where state in ('open', 'needs_attention')").fetchone()[0]
        held = read("select count(*) from outlast_queue_entry").fetchone()[0]
        slots = read("select count(*) from outlast_slot where job_id is not null").fetchone()[0]
        return f"{jobs} jobs have not ended, {held} entries and {slots} slots are taken" if jobs or held or slots else ""

    def _told(self, process: Process, text: _Text, rows: int) -> None:
        self.hash = (self.hash * 1_000_003 ^ (self.clock.ms() * 64 + process.number) ^ (text.number * 4_096 + rows)) & _MASK
        if self._tracing:
            self.note(process, f"{text.name} -> {rows}")

    def note(self, process: Process | None, text: str) -> None:
        """For the trace."""
        if self._tracing:
            self._trace.append(f"{self.clock.now:9.3f} {'' if process is None else process.name:10} {text}")
