"""SQLite's writer takes many requests to a commit, each in its savepoint: one that is refused or fails leaves the others whole."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

from contract.backends import SqliteBackend
from contract.harness import LEASE_MS, RETENTION_MS, WINDOW_MS, Harness, worker_of
from contract.plans import a
from faults.injection import Cutter, FaultySql, Injected, error_of, faulty
from outlast.domain.errors import KeyReused
from outlast.domain.work import Admitted, Asked, Finished, Renewal, Settled, Verdict
from outlast.store.drive import BadData
from outlast.store.program import Access, Operation, Program, Repeat, Rows
from outlast.store.programs import admission, claims, completion

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture
def sql(backend: SqliteBackend) -> FaultySql:
    return faulty(backend)


class Together:
    """Operations that go into one commit."""

    def __init__(self, backend: SqliteBackend) -> None:
        self._backend = backend
        self._waiting: list[Future[Any]] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        """While it lasts the writer is busy, and what is submitted gathers."""
        inside, go = threading.Event(), threading.Event()

        def busy() -> Program[None]:
            inside.set()
            go.wait(30)
            return
            yield

        first = self._backend.store._submit(Operation("busy", Access.STATEMENT, busy))
        assert inside.wait(30)
        try:
            yield
        finally:
            go.set()
            first.result(30)

    def submit(self, operation: Operation[Any]) -> None:
        """One more of the batch; the store's own repeats are left out."""
        self._waiting.append(self._backend.store._submit(operation))

    def results(self) -> list[Any]:
        """Values, or what was raised instead."""
        waiting, self._waiting = self._waiting, []
        return [f.exception(30) or f.result() for f in waiting]


@pytest.fixture
def together(backend: SqliteBackend) -> Together:
    return Together(backend)


def count_commits(monkeypatch: pytest.MonkeyPatch, backend: SqliteBackend, commits: list[str]) -> None:
    cutter = Cutter(monkeypatch, backend)  # type: ignore[arg-type]
    cutter._hit = lambda sql: bool(sql == "commit" and commits.append("commit"))  # type: ignore[assignment,func-returns-value]


def test_many_requests_are_one_commit(backend: SqliteBackend, h: Harness, together: Together, monkeypatch: pytest.MonkeyPatch) -> None:
    commits: list[str] = []
    count_commits(monkeypatch, backend, commits)
    jobs = [h.admission() for _ in range(10)]
    with together.held():
        for job in jobs:
            together.submit(admission.admit([job]))
    assert together.results() == [[Admitted(job.job_id, replayed=False)] for job in jobs]
    assert len(commits) == 2, "the busy one's, and that of all the others"
    assert len(h.rows("job")) == 10


def test_one_that_is_refused_leaves_the_others_whole(h: Harness, together: Together) -> None:
    h.admit(key="taken")
    first, second = h.admission(), h.admission()
    with together.held():
        together.submit(admission.admit([first]))
        together.submit(admission.admit_all([h.admission(key="new"), h.admission(key="taken", request="another")]))
        together.submit(admission.admit([second]))
    one, refused, other = together.results()
    assert (one, other) == ([Admitted(first.job_id, replayed=False)], [Admitted(second.job_id, replayed=False)])
    assert isinstance(refused, KeyReused)
    assert len(h.rows("job")) == 3


@pytest.mark.parametrize("meaning", ["unknown", "data"])
def test_one_that_fails_at_any_statement_leaves_the_others_whole(
    backend: SqliteBackend, sql: FaultySql, together: Together, meaning: str
) -> None:
    """A finish, a question and an admission in one commit; the fault moves through all their statements."""

    def begin() -> tuple[Harness, list[Operation[Any]]]:
        backend.reset()
        h = Harness(backend)
        h.admit(a("one"), a("two"), a("join", after="one two"), a("extra", optional=True))
        held = h.take_all()
        asked = Asked(held["extra"].ref, worker_of(held["extra"]), "which", "Which?", ("retry",))
        return h, [
            completion.finish([Finished(held["one"].ref, "w1", "1"), Finished(held["two"].ref, "w1", "2")], RETENTION_MS),
            completion.ask(asked, window_ms=WINDOW_MS, retention_ms=RETENTION_MS),
            admission.admit([h.admission(a("one"), a("two", after="one"), key="k")]),
        ]

    h, operations = begin()
    for operation in operations:
        h.run(operation)
    wanted = h.snapshot()
    failed: set[int] = set()
    for statement in range(1, 100):
        h, operations = begin()
        with together.held():
            for operation in operations:
                together.submit(operation)
            sql.arm(statement, error_of(backend, meaning))  # type: ignore[arg-type]
        results = together.results()
        if not sql.fired:
            break
        broken = [n for n, result in enumerate(results) if isinstance(result, Exception)]
        assert len(broken) == 1, results
        failed |= set(broken)
        h.check()
        assert h.run(operations[broken[0]])
        assert h.snapshot() == wanted
    assert failed == {0, 1, 2}


@pytest.mark.parametrize("meaning", ["conflict", "lost", "full"])
def test_a_file_that_fails_is_everybodys_and_leaves_nothing(
    backend: SqliteBackend, h: Harness, sql: FaultySql, together: Together, meaning: str
) -> None:
    h.admit()
    jobs = [h.admission() for _ in range(3)]
    before = h.snapshot()
    with together.held():
        for job in jobs:
            together.submit(admission.admit([job]))
        sql.arm(8, error_of(backend, meaning))  # type: ignore[arg-type]
    assert [type(result).__name__ for result in together.results()] == ["OperationalError"] * 3
    assert sql.fired == 1
    assert h.snapshot() == before
    for job in jobs:
        assert h.submit(job) == [Admitted(job.job_id, replayed=False)]


def test_one_that_asks_to_be_repeated_is_begun_anew(h: Harness, together: Together) -> None:
    begun: list[int] = []

    def shy() -> Program[int]:
        begun.append(1)
        rows: Rows = yield from _insert()
        if len(begun) < 3:
            raise Repeat
        return len(rows)

    job = h.admission()
    for alone in (True, False):
        begun.clear()
        h.sql("delete from {outlast.queue}")
        with together.held():
            together.submit(Operation("shy", Access.TRANSACTION, shy))
            if not alone:
                together.submit(admission.admit([job]))
        assert together.results()[0] == 0
        assert len(begun) == 3
        assert len(h.rows("job_input")) == int(not alone)
        assert len(h.rows("attention")) == 1, "what the earlier tries wrote is gone"
        h.sql("delete from {outlast.attention}")


def _insert() -> Program[Rows]:
    from outlast.store.program import Statement  # noqa: PLC0415

    return (
        yield Statement(
            "raise_attention",
            {
                "tenant": "t",
                "job_id": "j",
                "id": "1",
                "no": 0,
                "code": "c",
                "message": "m",
                "actions": "",
                "window_ms": 1,
                **dict.fromkeys(("input_schema", "effect", "effect_input")),
            },
        )
    )


def test_one_that_asks_for_ever_is_given_up(h: Harness, together: Together) -> None:
    def hopeless() -> Program[None]:
        raise Repeat
        yield

    with together.held():
        together.submit(Operation("hopeless", Access.STATEMENT, hopeless))
    (error,) = together.results()
    assert "too often" in str(error)


def test_renewals_go_ahead_of_the_queue(h: Harness, together: Together) -> None:
    """A long queue of other writes must not let a lease run out."""
    h.admit()
    claimed = h.take()
    order: list[str] = []

    def noting(name: str, operation: Operation[Any]) -> Operation[Any]:
        def start() -> Program[Any]:
            order.append(name)
            return operation.start()

        return Operation(operation.name, operation.access, start, operation.repeatable, operation.urgent)

    with together.held():
        for n in range(3):
            together.submit(noting(f"admit {n}", admission.admit([h.admission()])))
        together.submit(noting("renew", claims.renew([Renewal(claimed.ref)], LEASE_MS)))
    assert together.results()[-1] == [Verdict.ACCEPTED]
    assert order == ["renew", "admit 0", "admit 1", "admit 2"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_lost_commit_of_many_is_resolved_for_each(
    backend: SqliteBackend, h: Harness, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    jobs = [h.admission(key=f"k{n}") for n in range(5)]
    h.admit(a("one"), a("two"))
    held = h.take_all()
    cutter = Cutter(monkeypatch, backend)  # type: ignore[arg-type]
    with cutter.at(lambda sql: sql == "commit", after=after, times=2):
        operations: list[Operation[Any]] = [admission.admit([job]) for job in jobs]
        operations += [completion.finish([Finished(claimed.ref, "w1", "1")], RETENTION_MS) for claimed in held.values()]
        results = await asyncio.gather(*(backend.store.run(operation) for operation in operations))
    assert results[:5] == [[Admitted(job.job_id, replayed=False)] for job in jobs]
    assert all(r[0].verdict is Verdict.ACCEPTED for r in results[5:])
    assert len(h.rows("job")) == 6
    assert len(h.rows("output")) == 2


async def test_an_async_call_gets_what_a_blocking_one_does(backend: SqliteBackend, h: Harness) -> None:
    job = h.admission()
    assert await backend.store.run(admission.admit([job])) == [Admitted(job.job_id, replayed=False)]
    (claimed,) = await backend.store.run(claims.claim("default", ("kind@1:work",), 5, "w1:1", LEASE_MS))
    done = completion.finish([Finished(claimed.ref, "w1", "1")], RETENTION_MS)
    assert await backend.store.run(done) == [Settled(Verdict.ACCEPTED)]
    with pytest.raises(BadData):
        await backend.store.run(claims.snooze(claimed.ref, 2**70))
    with pytest.raises(Injected):
        await backend.store.run(Operation("broken", Access.STATEMENT, raising(Injected)))


def raising(error: type[Exception]) -> Callable[[], Program[None]]:
    def start() -> Program[None]:
        raise error
        yield

    return start


async def test_a_call_that_is_cancelled_while_it_waits_is_not_made(backend: SqliteBackend, h: Harness, together: Together) -> None:
    job = h.admission()
    with together.held():
        call = asyncio.create_task(backend.store.run(admission.admit([job])))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    h.admit()
    assert job.job_id not in [row["id"] for row in h.rows("job")]
