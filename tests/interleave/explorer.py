"""Runs two operations in two real sessions, statement by statement, in every order, and judges what comes of it.

A step is one statement as the program yields it, or the COMMIT (ROLLBACK) that ends a transaction. A statement that commits by
itself is given a BEGIN and a COMMIT, so that the other side can be sent into its lock, with its snapshot already taken. A side
whose statement waits for the other's lock is parked until the other ends its transaction.

Of orders that cannot differ in their outcome one is run:
- BEGIN takes neither snapshot nor lock; it goes out with the first statement after it.
- Before a COMMIT nobody sees what the other wrote; only locks can tell. So two neighbouring steps commute if neither is a COMMIT
  or a tick, and either is a plain read or they lock and write different tables. (Sleep sets: of two that commute, A goes first.)
- A side that held nothing when it was parked may be sent into that lock sooner or later: only the first of those orders is run.

A run is right when the rows and both verdicts are those of some serial order that agrees with real time (who ended before the
other began comes first), where the clock's tick counts as an operation of its own; and when the invariants hold, no deadlock
was met, and nothing was written for a job after its cancel had been committed. Who takes rows by SKIP LOCKED may also have passed
by what the other had: then the serial order is run with those rows locked.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import select
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import psycopg
from psycopg.pq import ConnStatus, TransactionStatus
from psycopg.waiting import Ready

from interleave.checks import violations
from interleave.scenes import JOB, OTHER, TENANT, Connection, Stage
from outlast.store.postgres.dialect import SCHEMA
from outlast.store.postgres.session import Profile
from outlast.store.program import Access, Operation, Repeat, Rows, Statement

Sql: TypeAlias = Mapping[str, str]
Order: TypeAlias = tuple[int, ...]
Told: TypeAlias = tuple[str, ...]
Outcome: TypeAlias = tuple[Told, Told, str]
"""What each side was told, and the rows."""

CAP = 1_000
"""Orders of one pair that are run; beyond it a sample of the rest."""
EVERY = "OUTLAST_TEST_EVERY_ORDER"
"""Set in the environment, orders that only exchange steps which commute are run too."""
SEED = 20_300_101
_STUCK = 20.0
_WRITES = re.compile(r"for no key update|for update|insert into|\bupdate |delete from")
_TABLES = re.compile(rf'"{SCHEMA}"\.([a-z_]+)')


class Wrong(AssertionError):
    """A run whose outcome no serial order explains, or that broke an invariant."""


@dataclass(frozen=True, slots=True)
class Act:
    """One side of a pair. `chain`: a second operation that follows from the value of the first, if any.

    ticked: the clock moves on before it. passes: what it may find locked and pass by; a task's number, "job", "other", "key",
    "schedule", or a slot.
    ends_job: when its verdict is this, nothing of the job may be written after its commit. client: its session is a client's.
    """

    name: str
    start: Callable[[], Operation[Any]]
    chain: Callable[[Any], Operation[Any] | None] | None = None
    ticked: bool = False
    passes: tuple[int | str, ...] = ()
    ends_job: object = None
    client: bool = False
    shown: Callable[[Any], object] = lambda value: value


def touched(sql: str) -> frozenset[str]:
    """The tables on which a statement takes locks; none for a plain read."""
    return frozenset(_TABLES.findall(sql)) if _WRITES.search(sql) else frozenset()


class Step(Enum):
    """What a side does next."""

    TICK = "tick"
    STATEMENT = "statement"
    COMMIT = "commit"
    DONE = "done"


class Answer:
    """What a session was sent, and later the rows of the last of it. Nothing waits here longer than it is told to."""

    def __init__(self, connection: Connection, sql: Sequence[tuple[str, Mapping[str, Any] | None]]) -> None:
        self._socket = connection.fileno()
        self._rows: Rows = ()
        self._error: psycopg.Error | None = None
        self._left: Generator[Any, Any, Rows] | None = self._talk(connection, sql)
        self._wants = 0
        self._move(None)

    @staticmethod
    def _talk(connection: Connection, sql: Sequence[tuple[str, Mapping[str, Any] | None]]) -> Generator[Any, Any, Rows]:
        rows: Rows = ()
        for text, params in sql:
            cursor = connection.cursor()
            # The generator behind `execute`: the driver waits nowhere, it says what of the socket it would wait for.
            yield from cursor._execute_gen(text, params)
            rows = cursor.fetchall() if cursor.description else ()
        return rows

    def _move(self, ready: Any) -> None:
        assert self._left is not None
        try:
            self._wants = int(self._left.send(ready))
        except StopIteration as stop:
            self._rows, self._left = stop.value, None
        except psycopg.Error as error:
            self._error, self._left = error, None

    def here(self, seconds: float) -> bool:
        """Whether the answer is there, waiting up to so long for it."""
        until = time.monotonic() + seconds
        while self._left is not None:
            poll = select.poll()
            poll.register(self._socket, (select.POLLIN if self._wants & 1 else 0) | (select.POLLOUT if self._wants & 2 else 0))
            events = poll.poll(max(until - time.monotonic(), 0) * 1000)
            if not events:
                return False
            happened = events[0][1]
            self._move(Ready((1 if happened & ~select.POLLOUT else 0) | (2 if happened & select.POLLOUT else 0)))
        return True

    def rows(self) -> Rows:
        """The rows; raises what the server said."""
        if self._error is not None:
            raise self._error
        return self._rows


class Session:
    """A connection to which something may be sent without waiting for the answer, so that a lock wait holds up nobody."""

    def __init__(self, conninfo: str, profile: Profile) -> None:
        self.connection: Connection = psycopg.connect(conninfo, autocommit=True, prepare_threshold=None)
        self.connection.execute(profile.settings(local=False))
        self.connection.execute("set synchronous_commit = off")
        self.connection.execute("set lock_timeout = '60s'")
        self.connection.execute("set deadlock_timeout = '100ms'")
        self.pid = self.connection.info.backend_pid
        self.pooled = False

    @property
    def idle(self) -> bool:
        """Whether the connection stands, outside a transaction, with nothing under way."""
        return self.connection.info.transaction_status is TransactionStatus.IDLE

    def send(self, sql: Sequence[tuple[str, Mapping[str, Any] | None]]) -> Answer:
        return Answer(self.connection, sql)

    def close(self) -> None:
        self.connection.close()


class Side:
    """One side of a run: its program, where it stands, and what it will do next."""

    def __init__(self, act: Act, session: Session, sql: Sql) -> None:
        self.act = act
        self.session = session
        self._sql = sql
        self.next = Step.TICK if act.ticked else Step.STATEMENT
        self.value: Any = None
        self.error: str | None = None
        self.in_transaction = False
        self.holds = False
        self.pending: Answer | None = None
        self.trace: list[str] = []
        self._failed = False
        self._again = False
        self._chained = False
        self._writes = False
        self._after_commit: Rows = ()
        self._begin(act.start())

    @property
    def done(self) -> bool:
        return self.next is Step.DONE

    @property
    def parked(self) -> bool:
        return self.pending is not None

    @property
    def verdict(self) -> tuple[str, ...]:
        """What it was told; of a batch, each."""
        if self.error is not None:
            return (self.error,)
        shown = self.act.shown(self.value)
        return tuple(str(one) for one in shown) if isinstance(shown, list) else (str(shown),)

    def commutes(self, other: Side) -> bool:
        """Whether the next step of either side leaves that of the other as it is."""
        if EVERY in os.environ:
            return False
        if Step.STATEMENT is not self.next or Step.STATEMENT is not other.next:
            return False
        return not self._locks & other._locks

    @property
    def _whole(self) -> bool:
        """Whether the operation runs in one transaction: behind a pooler each does."""
        return self.operation.access is Access.TRANSACTION or self.session.pooled

    @property
    def _locks(self) -> frozenset[str]:
        assert self._statement is not None
        return touched(self._sql[self._statement.name])

    def _begin(self, operation: Operation[Any]) -> None:
        self.operation = operation
        self._program = operation.start()
        self._statement: Statement | None = None
        self._advance(lambda: next(self._program))

    def _advance(self, move: Callable[[], Statement]) -> None:
        """Asks the program for its next statement; at its end decides what follows."""
        try:
            self._statement = move()
        except StopIteration as stop:
            self._statement = None
            self.value = stop.value
            if not self.in_transaction:
                self._ended()
        except Repeat:
            self._statement = None
            self._again = True
            if not self.in_transaction:
                self._restart()
        except Exception as error:  # noqa: BLE001 - whatever the program refuses with is its verdict
            self._statement = None
            self.error = type(error).__name__
            self._failed = True
            if not self.in_transaction:
                self.next = Step.DONE

    def _restart(self) -> None:
        self._again = False
        self.next = Step.STATEMENT
        self._begin(self.operation)

    def _ended(self) -> None:
        following = self.act.chain(self.value) if self.act.chain is not None and not self._chained else None
        self._chained = True
        if following is None:
            self.next = Step.DONE
        else:
            self.next = Step.STATEMENT
            self._begin(following)

    def go(self, tick: Callable[[], None]) -> None:
        """Sends the next step; `settle` or `wait` takes its answer."""
        if self.next is Step.TICK:
            self.trace.append("tick")
            tick()
            self.next = Step.STATEMENT
            return
        if self.next is Step.COMMIT:
            end = "rollback" if self._failed or self._again else "commit"
            self.trace.append(end)
            self.pending = self.session.send([(end, None)])
            return
        assert self._statement is not None
        name, params = self._statement
        text = self._sql[name]
        writes = bool(touched(text))
        opens = not self.in_transaction and (self._whole or writes)
        self.trace.append(name)
        self.pending = self.session.send([*([("begin isolation level read committed", None)] if opens else []), (text, params)])
        self.in_transaction = self.in_transaction or opens
        self._writes = writes

    def take(self) -> None:
        """The answer to what was sent is here: find the next step."""
        assert self.pending is not None
        answer, self.pending = self.pending, None
        sent = self.next
        try:
            rows = answer.rows()
        except psycopg.Error as error:
            self.trace.append(f"!{error.sqlstate}")
            raise Wrong(f"{self.act.name} met {error.sqlstate} {error}") from error
        if sent is Step.COMMIT:
            self.in_transaction = self.holds = False
            if self._failed:
                self.next = Step.DONE
            elif self._again:
                self._restart()
            elif self._statement is None:
                self._ended()
            else:
                self.next = Step.STATEMENT
                self._advance(lambda: self._program.send(self._after_commit))
            return
        self.holds = self.holds or self._writes
        if self.in_transaction and not self._whole:
            self._after_commit = rows  # the statement commits by itself; only then does the program see its rows
            self.next = Step.COMMIT
            return
        self._advance(lambda: self._program.send(rows))
        if self.in_transaction and self._statement is None:
            self.next = Step.COMMIT


@dataclass(slots=True)
class Run:
    """One order: who went when, what both were told, the rows in the end, and whether one side ended before the other began."""

    order: Order
    outcome: Outcome
    first: int | None
    trace: list[str]
    alternatives: list[tuple[Order, bool]] = field(default_factory=list)


@dataclass(slots=True)
class Known:
    """What earlier orders of a pair have shown: where a side that held nothing was parked, and which orders end in a commit."""

    parked: set[tuple[Order, int]] = field(default_factory=set)
    commits: set[Order] = field(default_factory=set)

    def asleep(self, here: Order, side: int) -> bool:
        """Whether sending this side now repeats an earlier order: it was parked while the other did what it has done since."""
        depth = len(here)
        while depth and here[depth - 1] != side and here[:depth] not in self.commits:
            depth -= 1
            if (here[:depth], side) in self.parked:
                return True
        return False


@dataclass(frozen=True, slots=True)
class Tally:
    """What was run for one pair: orders, how many of them met a lock wait, and how many were left out of a sample."""

    runs: int
    waits: int
    left_out: int


class Explorer:
    """Two sides' sessions and a stage; `pair` runs every order of two operations on a scene."""

    def __init__(self, stage: Stage, *, log: Callable[[], str]) -> None:
        self.stage = stage
        self.lost: list[str] = []
        self.diverged: list[str] = []
        self.connects = 0
        self._log = log
        self._pooled = False
        self._since_clean = 0
        self._connect()

    def _connect(self) -> None:
        self.connects += 1
        self._sessions = {
            (side, client): Session(self.stage.conninfo, Profile(worker=not client)) for side in (0, 1) for client in (False, True)
        }
        self._locker = Session(self.stage.conninfo, Profile(worker=True))
        self.pooled(on=self._pooled)

    def close(self) -> None:
        for session in (*self._sessions.values(), self._locker):
            session.close()

    def pooled(self, *, on: bool) -> None:
        """Whether both sides run each operation in one transaction from now on, as they do behind a pooler."""
        self._pooled = on
        for session in self._sessions.values():
            session.pooled = on

    @property
    def _cut(self) -> bool:
        """Whether a connection was lost: then a run shows nothing of the statements."""
        connections = [self.stage.connection, *(one.connection for one in self._sessions.values()), self._locker.connection]
        return any(one.pgconn.status != ConnStatus.OK for one in connections)

    def _heal(self) -> None:
        """Begins with fresh connections where a run left one lost, busy or in a transaction."""
        if self._cut:
            self.stage.connect()
        elif all(one.idle for one in (*self._sessions.values(), self._locker)):
            return
        self.close()
        self._connect()

    # -- every order ------------------------------------------------------------------------------------------

    def pair(self, scene: str, one: Act, other: Act, sql: Sql, *, serially: Sql | None = None, cap: int = CAP) -> Tally:
        """Runs every order; raises Wrong for the first that is not right. serially: the SQL of the orders that it is compared with.

        Begins anew, once, when a connection is lost meanwhile: what was met then is the server's end and no order's.
        """
        try:
            return self._pair(scene, (one, other), sql, serially or sql, cap)
        except (Wrong, psycopg.Error) as error:
            if not self._cut:
                raise
            self.lost.append(f"{error}\n{self._log()[-2000:]}")
        return self._pair(scene, (one, other), sql, serially or sql, cap)

    def _pair(self, scene: str, acts: tuple[Act, Act], sql: Sql, serially: Sql, cap: int) -> Tally:
        allowed = Serial(self, scene, acts, serially)
        queue: deque[tuple[Order, bool]] = deque([((), False)])
        known = Known()
        runs = waits = 0
        chance = random.Random(SEED)
        sampling = False
        while queue and runs < cap:
            if not sampling and runs + len(queue) > cap:
                sampling = True
            if sampling:
                queue.rotate(chance.randrange(len(queue)))
            prefix, sleeping = queue.popleft()
            if prefix and known.asleep(prefix[:-1], prefix[-1]):
                continue
            run = self.run(scene, acts, sql, prefix, known, sleeping=sleeping)
            if run is None:
                continue
            runs += 1
            waits += any(step.endswith("...") for step in run.trace)
            queue.extend(run.alternatives)
            allowed.judge(run)
        return Tally(runs, waits, len(queue))

    def run(self, scene: str, acts: tuple[Act, Act], sql: Sql, prefix: Order, known: Known, *, sleeping: bool) -> Run | None:
        """One order: the prefix, then the first side that can go on, and so on; and where else it could have gone.

        sleeping: the side that did not go last could have gone before it with the same outcome. None: this is an order known.
        """
        self._reset(scene)
        sides = [Side(act, self._sessions[n, act.client], sql) for n, act in enumerate(acts)]
        if all(act.ticked for act in acts):  # both start after it; else it is the first step of the one that needs it
            self.stage.tick()
            for side in sides:
                side.next = Step.STATEMENT
        order: list[int] = []
        trace: list[str] = []
        alternatives: list[tuple[Order, bool]] = []
        watch = Watch(self.stage, sides)
        sleeper: int | None = None
        try:
            while not all(side.done for side in sides):
                here = tuple(order)
                able = _able(sides)
                if len(order) < len(prefix) and prefix[len(order)] not in able:
                    # It waits here and did not before: by another plan of the same statement. From here on this is an order of its own.
                    self.diverged.append(f"{scene}: {acts[0].name} x {acts[1].name}, {' '.join(trace)}")
                    prefix, sleeping = here, False
                if len(order) < len(prefix):
                    chosen = prefix[len(order)]
                else:
                    awake = [n for n in able if n != sleeper and not known.asleep(here, n)]
                    if not awake:
                        self._clear_up(sides)
                        return None
                    chosen = awake[0]
                    alternatives.extend(((*here, n), sides[0].commutes(sides[1])) for n in awake[1:])
                if len(order) == len(prefix) - 1 and sleeping:
                    sleeper = 1 - chosen
                elif sleeper is not None and not sides[0].commutes(sides[1]):
                    sleeper = None
                order.append(chosen)
                self._step(sides, chosen, trace, here, known)
                watch.look(chosen)
        except Wrong as wrong:
            self._clear_up(sides)
            wrong.add_note(f"{scene}: {acts[0].name} x {acts[1].name}\norder {order}\n{' '.join(trace)}")
            raise
        outcome = (sides[0].verdict, sides[1].verdict, self.stage.normal(self.stage.dump()))
        return Run(tuple(order), outcome, watch.first, trace, alternatives)

    def _reset(self, scene: str) -> None:
        self._heal()
        self._since_clean += 1
        if self._since_clean >= 200:
            self._since_clean = 0
            self.stage.clean()
        self.stage.reset(scene)

    def _step(self, sides: list[Side], chosen: int, trace: list[str], here: Order, known: Known) -> None:
        side, other = sides[chosen], sides[1 - chosen]
        side.go(self.stage.tick)
        trace.append(f"{'AB'[chosen]}.{side.trace[-1]}")
        if side.pending is None:
            return
        ends = side.next is Step.COMMIT
        if ends:
            known.commits.add((*here, chosen))
        if not self._answered(side, waits_for=other.session if other.in_transaction else None):
            trace[-1] += "..."
            if not side.holds:
                known.parked.add((here, chosen))
            return
        side.take()
        if other.parked and ends:
            self._answered(other, waits_for=None)
            other.take()
            trace.append(f"{'AB'[1 - chosen]} goes on")

    def _let_go_on(self, sides: Sequence[Side]) -> None:
        """Runs all to their end, in whatever order the locks let them."""
        until = time.monotonic() + _STUCK
        while not all(side.done for side in sides):
            for side in sides:
                if not side.parked and not side.done:
                    side.go(self.stage.tick)
                if side.pending is not None and side.pending.here(0.001):
                    side.take()
            if time.monotonic() > until:
                raise Wrong("a side does not come to its end")

    def _answered(self, side: Side, *, waits_for: Session | None, or_for: Session | None = None) -> bool:
        """Waits for the answer; False when the side waits for a lock of that other one, or of that third one, instead."""
        assert side.pending is not None
        until = time.monotonic() + _STUCK
        pause = 0.002
        while True:
            if side.pending.here(pause):
                return True
            if any(one is not None and self.stage.blocked(side.session.pid, by=one.pid) for one in (waits_for, or_for)):
                return False
            if time.monotonic() > until:
                raise Wrong(f"{side.act.name} neither answers nor waits for a lock")

    def _clear_up(self, sides: list[Side]) -> None:
        if self._cut:
            return
        for side in sides:
            if side.pending is not None:
                self.stage.connection.execute("select pg_cancel_backend(%s)", (side.session.pid,))
                side.pending.here(_STUCK)
                side.pending = None
        for side in sides:
            side.session.send([("rollback", None)]).here(_STUCK)

    def _one_operation(self, side: Side) -> None:
        one = side.operation
        while not side.done and side.operation is one:
            side.go(self.stage.tick)
            self._answered(side, waits_for=None)
            side.take()

    def held_up(
        self, scene: str, acts: Sequence[Act], sql: Sql, rows: Sequence[int | str], *, written: bool
    ) -> tuple[list[Told], bool, str]:
        """Runs operations while a third session has these rows; the clock ticks when the first one waits, and then the rows are free.

        The second, if any, begins after the tick. What they were told, whether all waited, and the rows.
        """
        self._reset(scene)
        sides = [Side(act, self._sessions[n, act.client], sql) for n, act in enumerate(acts)]
        waited: list[bool] = []
        try:
            with self._locked(rows, written=written):
                for side in sides:
                    side.next = Step.STATEMENT
                    waited.append(False)
                    while not side.done and not waited[-1]:
                        side.go(self.stage.tick)
                        waited[-1] = not self._answered(side, waits_for=self._locker, or_for=sides[0].session)
                        if not waited[-1]:
                            side.take()
                    if side is sides[0]:
                        self.stage.tick()
            self._let_go_on(sides)
        except Wrong:
            self._clear_up(sides)
            raise
        return [side.verdict for side in sides], all(waited), self.stage.normal(self.stage.dump())

    # -- one after the other ----------------------------------------------------------------------------------

    def serial(
        self, scene: str, acts: Sequence[Act], order: Sequence[int | None], sql: Sql, passed: Sequence[Sequence[int | str]]
    ) -> Outcome:
        """Runs whole operations one after the other; a side's number stands for the next one of its chain, None for the tick.

        passed: for each side the rows that a third session has locked meanwhile.
        """
        self._reset(scene)
        if all(act.ticked for act in acts):
            self.stage.tick()
        sides = [Side(act, self._sessions[n, act.client], sql) for n, act in enumerate(acts)]
        for side in sides:
            side.next = Step.STATEMENT
        try:
            for n in order:
                if n is None:
                    self.stage.tick()
                else:
                    with self._locked(passed[n]):
                        self._one_operation(sides[n])
        except Wrong:
            self._clear_up(sides)
            raise
        assert all(side.done for side in sides)
        return sides[0].verdict, sides[1].verdict, self.stage.normal(self.stage.dump())

    @contextmanager
    def _locked(self, rows: Sequence[int | str], *, written: bool = False) -> Iterator[None]:
        if not rows:
            yield
            return
        holder = self._locker.connection
        with holder.transaction():
            for row in rows:
                table, key, column = _named(row)
                holder.execute(f'select from "{SCHEMA}".{table} where tenant = %s and {key} for no key update', (TENANT,))
                if written:
                    holder.execute(f'update "{SCHEMA}".{table} set {column} = {column} where tenant = %s and {key}', (TENANT,))
            yield


def _named(row: int | str) -> tuple[str, str, str]:
    """Where a row is that a third session locks, and a column to be written: of a task, a job, its key, the schedule, or a slot."""
    if isinstance(row, int):
        return "queue_entry", f"job_id = '{JOB}' and no = {row}", "code"
    if row in ("job", "other"):
        return "job", f"id = '{JOB if row == 'job' else OTHER}'", "label"
    if row == "key":
        return "submission", f"job_id = '{JOB}'", "fingerprint"
    if row == "schedule":
        return "schedule", "true", "code"
    _, key, n = row.split()
    return "slot", f"key = '{key}' and n = {n}", "freed_at"


def _able(sides: Sequence[Side]) -> list[int]:
    able = [n for n, side in enumerate(sides) if not side.done and not side.parked]
    if not able:
        raise Wrong("both sides wait for each other")
    return able


class Watch:
    """Watches a run as it goes on: who ended first, and what is written after a cancel."""

    def __init__(self, stage: Stage, sides: list[Side]) -> None:
        self._stage = stage
        self._sides = sides
        self._begun = [False, False]
        self._at_cancel: tuple[int, ...] | None = None
        self.first: int | None = None

    def look(self, chosen: int) -> None:
        """After each step."""
        side = self._sides[chosen]
        self._begun[chosen] = self._begun[chosen] or side.trace[-1] != "tick"
        if side.done and not self._begun[1 - chosen]:
            self.first = chosen
        if self._at_cancel is None and side.done and side.act.ends_job is not None and side.value is side.act.ends_job:
            self._at_cancel = self._stage.written()
        elif self._at_cancel is not None and all(s.done for s in self._sides) and self._more_than(self._at_cancel):
            raise Wrong("results were written after the commit of a cancel")

    def _more_than(self, before: tuple[int, ...]) -> bool:
        return any(now > then for now, then in zip(self._stage.written(), before, strict=True))


class Serial:
    """The outcomes of all serial orders of one pair, run when first asked for."""

    def __init__(self, explorer: Explorer, scene: str, acts: tuple[Act, Act], sql: Sql) -> None:
        self._explorer = explorer
        self._scene = scene
        self._acts = acts
        self._sql = sql
        self._outcomes: dict[tuple[Sequence[int | None], Sequence[Sequence[int | str]]], Outcome] = {}
        self._right: set[tuple[Outcome, int | None]] = set()

    def judge(self, run: Run) -> None:
        """Raises Wrong unless the run is right."""
        if (run.outcome, run.first) in self._right:
            return
        state = json.loads(run.outcome[2])
        broken = violations(state, self._explorer.stage.first[self._scene])
        if broken:
            raise self._wrong(run, "; ".join(broken))
        allowed: dict[Outcome, str] = {}
        for outcome, name in self._allowed(run.first):
            allowed.setdefault(outcome, name)
            if _explained(run.outcome, allowed):
                self._right.add((run.outcome, run.first))
                return
        lines = [f"{name}: {one!r}, {other!r}\n{_difference(run.outcome[2], rows)}" for (one, other, rows), name in allowed.items()]
        told = f"told {run.outcome[0]!r}, {run.outcome[1]!r}"
        raise self._wrong(run, "\n".join((f"no serial order gives this outcome: {told}", *lines)))

    def _wrong(self, run: Run, text: str) -> Wrong:
        one, other = self._acts
        return Wrong(f"{self._scene}: {one.name} x {other.name}\norder {run.order}\n{' '.join(run.trace)}\n{text}")

    def _allowed(self, first: int | None) -> Iterator[tuple[Outcome, str]]:
        for passed in self._passings(overlap=first is None):
            for order in self._orders(first):
                outcome = self._outcomes.get((order, passed))
                if outcome is None:
                    outcome = self._explorer.serial(self._scene, self._acts, order, self._sql, passed)
                    self._outcomes[order, passed] = outcome
                yield outcome, self._name(order, passed)

    def _name(self, order: Sequence[int | None], passed: Sequence[Sequence[int | str]]) -> str:
        parts = ["tick" if n is None else f"{'AB'[n]}{f' passing {passed[n]}' if passed[n] else ''}" for n in order]
        return " < ".join(parts)

    def _orders(self, first: int | None) -> Iterator[tuple[int | None, ...]]:
        ticked = [n for n, act in enumerate(self._acts) if act.ticked]
        units: list[int | None] = [n for n, act in enumerate(self._acts) for _ in range(1 if act.chain is None else 2)]
        if len(ticked) == 1:
            units.append(None)
        for order in dict.fromkeys(itertools.permutations(units)):
            if None in order and order.index(None) > order.index(ticked[0]):
                continue
            if first is not None and max(_places(order, first)) > min(_places(order, 1 - first)):
                continue
            yield order

    def _passings(self, *, overlap: bool) -> Iterator[tuple[tuple[int | str, ...], tuple[int | str, ...]]]:
        """Which rows a side may have found locked by the other."""
        yield (), ()
        if overlap:
            one, other = self._acts
            yield from ((rows, ()) for rows in _subsets(one.passes))
            yield from (((), rows) for rows in _subsets(other.passes))


def _places(order: Sequence[int | None], side: int) -> list[int]:
    return [place for place, n in enumerate(order) if n == side]


def _subsets(rows: Sequence[int | str]) -> Iterator[tuple[int | str, ...]]:
    for size in range(1, len(rows) + 1):
        yield from itertools.combinations(rows, size)


def _explained(outcome: Outcome, allowed: Mapping[Outcome, str]) -> bool:
    """Whether these rows come with these verdicts; each part of a batch was read, and so is judged, by itself."""
    one, other, rows = outcome
    told = [(a, b) for a, b, seen in allowed if seen == rows]
    if (one, other) in told:
        return True
    if not told or (len(one) == 1 and len(other) == 1):
        return False
    return all(any(len(a) > n and a[n] == part and (b == other or len(other) > 1) for a, b in told) for n, part in enumerate(one)) and all(
        any(len(b) > n and b[n] == part and (a == one or len(one) > 1) for a, b in told) for n, part in enumerate(other)
    )


def _difference(got: str, wanted: str) -> str:
    one, other = json.loads(got), json.loads(wanted)
    lines: list[str] = []
    for table in one:
        mine = [json.dumps(row, sort_keys=True) for row in one[table]]
        theirs = [json.dumps(row, sort_keys=True) for row in other[table]]
        lines += [f"  {table}: has  {row}" for row in mine if row not in theirs]
        lines += [f"  {table}: want {row}" for row in theirs if row not in mine]
    return "\n".join(lines) or "  the rows are the same"
