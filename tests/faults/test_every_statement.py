"""Whatever fails at whatever statement of an operation leaves the whole transition or nothing, and a repeat gives the true verdict."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from contract.backends import Backend, Row
from contract.harness import Harness
from faults.injection import FaultySql, Injected, error_of, faulty
from faults.scenes import SCENES, Scene
from outlast.domain.errors import OutcomeUnknown, StoreUnavailable
from outlast.store.drive import BadData
from outlast.store.program import Access, Operation
from outlast.store.programs import (
    admission,
    claims,
    completion,
    control,
    effects,
    forgetting,
    queues,
    replay,
    rerun,
    retention,
    schedules,
    slots,
    steps,
    sweep,
    targets,
)

MODULES = (
    admission,
    claims,
    completion,
    control,
    effects,
    forgetting,
    queues,
    replay,
    rerun,
    retention,
    schedules,
    slots,
    steps,
    sweep,
    targets,
)
MOST = 60
Snapshot = dict[str, list[Row]]


@pytest.fixture
def sql(backend: Backend) -> Iterator[FaultySql]:
    found = faulty(backend)
    yield found
    found.disarm()


class Stage:
    """Plays a scene again and again from the beginning."""

    def __init__(self, backend: Backend, scene: Scene) -> None:
        self.backend = backend
        self.scene = scene
        self.wanted = self.before = self._clean()

    def _clean(self) -> Snapshot:
        """The rows after a run in which nothing fails."""
        self.begin()
        value = self.act()
        assert self.scene.good(value), value
        return self.h.snapshot()

    def begin(self) -> None:
        """Everything as it stands before the operation."""
        self.backend.reset()
        self.h = Harness(self.backend)
        self.given = self.scene.prepare(self.h)
        self.before = self.h.snapshot()

    def act(self) -> Any:
        """The operation."""
        return self.scene.act(self.h, self.given)

    def operation(self) -> Operation[Any]:
        """The one that is run."""
        seen: list[Operation[Any]] = []
        run = self.backend.run

        def watch(operation: Operation[Any]) -> Any:
            seen.append(operation)
            return run(operation)

        self.begin()
        self.h.run = watch  # type: ignore[method-assign]
        self.act()
        (operation,) = seen
        return operation

    def answering(self, rows: Snapshot) -> Snapshot:
        """The rows without keys whose horizon is over: whether such a key is there or not makes no difference."""
        kept = [row for row in rows["submission"] if row["expires_at"] is None or row["expires_at"] > self.h.now]
        return {**rows, "submission": kept}

    def repeat(self) -> None:
        """The same operation again: the true verdict, and the rows of a run in which nothing failed."""
        value = self.act()
        assert self.scene.good(value), value
        assert self.h.snapshot() == self.wanted
        self.h.check()


REFUSALS: dict[str, type[Exception]] = {"unknown": Injected, "data": BadData, "full": StoreUnavailable, "read_only": StoreUnavailable}
PASSING = ("conflict", "lost", "deadlock")


def kinds(given: Iterable[str], name: str) -> Iterator[tuple[int, str]]:
    """The statements from the first on, each with a kind of fault; scenes begin with different ones."""
    turn = tuple(given)
    return ((statement, turn[(statement + len(name)) % len(turn)]) for statement in range(1, MOST))


@pytest.mark.parametrize("name", SCENES)
def test_i5_a_fault_that_is_not_retried_leaves_all_or_nothing(backend: Backend, sql: FaultySql, name: str) -> None:
    stage = Stage(backend, SCENES[name])
    alone = stage.operation().access is Access.STATEMENT and backend.name != "sqlite"  # it commits by itself, and reads afterwards
    for statement, meaning in kinds(REFUSALS, name):
        stage.begin()
        sql.arm(statement, error_of(backend, meaning))
        error: Exception | None = None
        try:
            stage.act()
        except (BadData, StoreUnavailable, Injected) as raised:
            error = raised
        if not sql.fired:
            break
        assert type(error) is REFUSALS[meaning]
        left, before, wanted = (stage.answering(rows) for rows in (stage.h.snapshot(), stage.before, stage.wanted))
        assert left == before or (alone and statement > 1 and left == wanted), f"at statement {statement}"
        stage.h.check()
        stage.repeat()
    else:
        raise AssertionError("the operation has no end")
    assert error is None
    assert statement > 1


@pytest.mark.parametrize("name", SCENES)
def test_i5_a_fault_that_passes_is_survived_by_the_store_itself(backend: Backend, sql: FaultySql, name: str) -> None:
    stage = Stage(backend, SCENES[name])
    # A claim of unknown outcome is not repeated: below.
    passing = PASSING if stage.operation().repeatable else [kind for kind in PASSING if kind != "lost"]
    for statement, meaning in kinds(passing, name):
        stage.begin()
        sql.arm(statement, error_of(backend, meaning))
        value = stage.act()
        if not sql.fired:
            break
        assert stage.scene.good(value), f"{value} at statement {statement}"
        assert stage.h.snapshot() == stage.wanted
        stage.h.check()


@pytest.mark.parametrize(("name", "statement"), [("claim", 1), ("claim keyed", 1), ("claim keyed", 2)])
def test_a_claim_that_is_lost_before_it_reached_the_store_took_nothing(backend: Backend, sql: FaultySql, name: str, statement: int) -> None:
    stage = Stage(backend, SCENES[name])
    stage.begin()
    sql.arm(statement, error_of(backend, "lost"))
    if backend.name == "sqlite":  # one transaction, and the fault was before its commit: it is certain
        assert stage.scene.good(stage.act())
        return
    with pytest.raises(OutcomeUnknown):
        stage.act()
    assert stage.h.run(claims.claimed_by("default", "w1:1")) == []
    stage.repeat()


def test_every_operation_that_writes_has_a_scene(backend: Backend) -> None:
    seen: set[str] = set()
    for name, scene in SCENES.items():
        backend.reset()
        h = Harness(backend)
        given = scene.prepare(h)
        h.run = recording(seen, backend)  # type: ignore[method-assign]
        assert scene.good(scene.act(h, given)), name
    assert seen == {name for module in MODULES for name in writing(module)}


def recording(seen: set[str], backend: Backend) -> Callable[[Operation[Any]], Any]:
    def run(operation: Operation[Any]) -> Any:
        seen.add(operation.name)
        return backend.run(operation)

    return run


def writing(module: Any) -> list[str]:
    """The operations of a module that write."""
    found = []
    for name, made in inspect.getmembers(module, inspect.isfunction):
        if made.__module__ != "outlast.store.program" or made.__qualname__ != "operation.<locals>.wrap.<locals>.make":
            continue
        parameters = inspect.signature(inspect.getclosurevars(made).nonlocals["fn"]).parameters
        keywords = {p.name: None for p in parameters.values() if p.kind is p.KEYWORD_ONLY}
        positional = [None for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        if made(*positional, **keywords).access is not Access.READ:
            found.append(name)
    return found
