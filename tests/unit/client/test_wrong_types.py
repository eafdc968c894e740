"""Every public call that is given something of a wrong type says so as Invalid (or as what it is to everybody), and never trips over it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from outlast import Ask, Context, Invalid, Outlast, OutlastError, Plan, Principal, Submission
from outlast.store.open import migrate

ANN, OLGA = Principal("acme", "ann"), Principal("acme", "olga", roles=["operator"])
WRONG: tuple[Any, ...] = (None, 5, 1.5, "x", b"x", [], {}, object(), True, -1, "\ud800", [1, 2], [None])
CALLS = (
    *("submit", "submit_many", "get", "list", "tasks", "result", "recovery", "cancel", "act", "takeover", "attach", "rerun", "replay"),
    *("queues", "pause_queue", "resume_queue", "wait"),
)


@dataclass
class Book:
    pages: int = 1


def fill(plan: Plan[Book], book: Book) -> None:
    plan.task(plan.kind, label="Print")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outlast]:
    path: Path = tmp_path_factory.mktemp("wrong") / "jobs.db"
    migrate(f"sqlite:///{path}")
    app = Outlast(f"sqlite:///{path}")

    @app.task
    async def print_it(ctx: Context, book: Book) -> int:
        return book.pages

    job_id = app.sync.submit(print_it, Book(), owner=ANN).id
    app.sync.cancel(job_id, principal=ANN)  # so that nothing is waited for
    vars(app)["given"] = {
        "kind": print_it,
        "input": Book(),
        "owner": ANN,
        "job_id": job_id,
        "attention_id": "0.1",
        "action": "retry",
        "task": print_it,
        "timeout": 0,
        "until": "final",
        "no": 0,
        "target_version": "1",
        "reason": "Why not.",
        "name": "default",
        "limit": 5,
        "submissions": [],
    }
    yield app
    app.sync.close()


@pytest.mark.parametrize("name", CALLS)
def test_no_call_trips_over_a_wrong_type(jobs: Outlast, name: str) -> None:
    parameters = inspect.signature(getattr(jobs.sync, name)).parameters.values()
    for who in (ANN, OLGA):
        given = {**vars(jobs)["given"], "principal": who}
        if name in ("act", "list"):
            given |= {"input": None, "kind": None}
        for changed in parameters:
            for wrong in WRONG:
                values = {one.name: wrong if one is changed else given.get(one.name) for one in parameters}
                by_place = [values.pop(one.name) for one in parameters if one.kind is not one.KEYWORD_ONLY]
                for call in (getattr(jobs.sync, name), getattr(jobs, name)):
                    _tried(call, by_place, values)


def _tried(call: Any, by_place: list[Any], by_name: dict[str, Any]) -> None:
    try:
        made = call(*by_place, **by_name)
        if inspect.isawaitable(made):
            asyncio.run(_value(made))
    except OutlastError:
        pass


async def _value(made: Any) -> Any:
    return await made


def test_submissions_are_named_by_their_place(jobs: Outlast) -> None:
    right = Submission(vars(jobs)["given"]["kind"], Book())
    for wrong, said in (([right, 2], "Submission 1 is an int"), (5, "several Submissions"), ("ab", "Submission 0 is a str")):
        with pytest.raises(Invalid, match=said):
            jobs.sync.submit_many(wrong, owner=ANN)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 5, 1.5, "x", b"x", object(), True, [1]])
def test_names_and_claims_are_several(wrong: Any) -> None:
    with pytest.raises(Invalid):
        Principal("acme", "ann", roles=wrong)
    if not isinstance(wrong, dict):
        with pytest.raises(Invalid):
            Principal("acme", "ann", claims=wrong)
    for option in ("roles", "keep_claims"):
        with pytest.raises(Invalid):
            Outlast("sqlite:///x.db").kind("k", **{option: wrong})(fill)
    with pytest.raises(Invalid):
        Ask("well", "Well?", actions=wrong)


@pytest.mark.parametrize(
    "options",
    [
        {"promise": "x"},
        {"promise": 0},
        {"promise": True},
        {"promise": (1, 2, 3)},
        {"promise": (1, float("nan"))},
        {"success": 5},
        {"cancel_note": None},
        {"still_permitted": True},
        {"still_permitted": lambda: True},
        {"still_permitted": lambda owner: True},
        {"still_permitted": lambda owner, job, more: True},
        {"still_permitted": lambda owner, job, *, more: True},
    ],
)
def test_what_a_kind_cannot_do_with_is_refused_when_it_is_registered(options: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        Outlast("sqlite:///x.db").kind("k", **options)(fill)


class Hook:
    """Asked by calling it."""

    def __call__(self, owner: object, job: object) -> bool:
        return True


def test_whatever_can_be_called_so_is_taken() -> None:
    hooks: tuple[Any, ...] = (Hook(), lambda owner, job, more=1: True, lambda *both: True)
    for no, hook in enumerate(hooks):
        Outlast("sqlite:///x.db").kind(f"k{no}", still_permitted=hook, promise=(1, 2.5))(fill)


def needs_more(plan: Plan[Book], book: Book, *, more: int) -> None: ...


@pytest.mark.parametrize("wrong", [None, 5, "x", [], lambda: None, needs_more])
def test_functions_are_looked_at_when_they_are_given(wrong: Any) -> None:
    app = Outlast("sqlite:///x.db")
    for give in (app.kind("k"), app.target("t"), lambda fn: app.asgi(identify=fn)):
        with pytest.raises(Invalid):
            give(wrong)
    if wrong is not None:
        with pytest.raises(Invalid):
            app.task(wrong)
        if wrong != 5 and callable(wrong) and wrong is not needs_more:
            return  # a session is made of nothing
        with pytest.raises(Invalid):
            Outlast("sqlite:///x.db", session=wrong)
