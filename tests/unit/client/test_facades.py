"""The two façades say the same: names, parameters and docstrings; and each passes on what it is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest

from outlast.client import deciding, operating, reading, submitting
from outlast.client._async import Client
from outlast.client._sync import SyncClient
from outlast.client.calls import Application
from outlast.domain.defaults import Settings
from outlast.domain.model import Principal
from outlast.domain.registry import Registry
from outlast.store.program import Access, Operation

ROOMS = (submitting, reading, deciding, operating)
APP = Application(Registry(), Settings(), "")
ANN = Principal("acme", "ann")


def public(client: type) -> dict[str, Callable[..., Any]]:
    return {name: member for name, member in vars(client).items() if not name.startswith("_") and inspect.isfunction(member)}


ASYNC, SYNC = public(Client), public(SyncClient)


def test_both_have_the_same_methods() -> None:
    assert ASYNC.keys() == SYNC.keys()
    assert {
        "submit",
        "submit_many",
        "get",
        "list",
        "tasks",
        "result",
        "recovery",
        "wait",
        "cancel",
        "act",
        "rerun",
        "close",
    } <= ASYNC.keys()


@pytest.mark.parametrize("name", ASYNC)
def test_a_method_has_the_same_parameters_and_words_in_both(name: str) -> None:
    one, other = ASYNC[name], SYNC[name]
    shown = [str(inspect.signature(fn, eval_str=False)).replace("AsyncTransaction", "SyncTransaction") for fn in (one, other)]
    assert shown[0] == shown[1]
    assert inspect.getdoc(one) == inspect.getdoc(other)
    assert inspect.getdoc(one), "it says what the caller gets"
    assert inspect.iscoroutinefunction(one)
    assert not inspect.iscoroutinefunction(other)


def test_the_classes_have_the_same_words() -> None:
    assert inspect.getdoc(Client) == inspect.getdoc(SyncClient)


@pytest.mark.parametrize("name", ASYNC)
def test_what_goes_to_the_store_is_named_by_keyword(name: str) -> None:
    """After the second argument everything is keyword-only, so that many of them still read well."""
    positional = [p for p in inspect.signature(ASYNC[name]).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert len(positional) <= 3  # self, and two


class Store:
    """Remembers what it was asked, and answers from a list."""

    def __init__(self, *values: Any) -> None:
        self.values = list(values)
        self.asked: list[str] = []
        self.announced: list[tuple[str, ...]] = []
        self.closed = False

    def run_sync(self, operation: Operation[Any]) -> Any:
        self.asked.append(operation.name)
        return self.values.pop(0)

    async def run(self, operation: Operation[Any]) -> Any:
        return self.run_sync(operation)

    def announce(self, queues: tuple[str, ...]) -> None:
        self.announced.append(queues)

    def close_sync(self) -> None:
        self.closed = True

    async def close(self) -> None:
        self.closed = True


def both(store: Store) -> tuple[Client, SyncClient]:
    given: Any = store
    return Client(APP, lambda: given), SyncClient(APP, lambda: given)


OPERATION = Operation("read", Access.READ, lambda: (x for x in ()))  # type: ignore[arg-type,return-value]
ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "get": (("id",), {"principal": ANN}, "get"),
    "list": ((), {"principal": ANN, "state": "active", "kind": "book", "limit": 7, "cursor": "c"}, "list_jobs"),
    "tasks": (("id",), {"principal": ANN}, "tasks"),
    "result": (("id", None), {"principal": ANN, "label": "x"}, "result"),
    "recovery": (("id",), {"principal": ANN}, "recovery"),
    "wait": (("id",), {"principal": ANN, "timeout": 3.0, "until": "usable"}, "wait"),
    "cancel": (("id",), {"principal": ANN, "version": 4}, "cancel"),
    "act": (("id", "0.1"), {"action": "answer", "principal": ANN, "input": {"a": 1}}, "act"),
    "rerun": (("id",), {"principal": ANN, "key": "k"}, "rerun_job"),
    "queues": ((), {"principal": ANN}, "list_queues"),
    "pause_queue": (("mail",), {"principal": ANN, "reason": "It is down."}, "pause_queue"),
    "resume_queue": (("mail",), {"principal": ANN, "reason": "It is back."}, "resume_queue"),
    "forget": (("bob",), {"principal": ANN, "reason": "asked for"}, "forget_person"),
}
ANNOUNCED: dict[str, tuple[str, ...]] = {"rerun": ("*",), "resume_queue": ("mail",)}


@pytest.mark.parametrize("name", ARGUMENTS)
async def test_a_method_passes_on_what_it_is_given(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    positional, keywords, call = ARGUMENTS[name]
    seen: list[tuple[Any, ...]] = []

    def fake(*args: Any, **kwargs: Any) -> Generator[Any, Any, str]:
        seen.append((*(a for a in args if a is not APP), *kwargs.values()))
        first = yield OPERATION
        yield 0.0  # a pause
        return f"{first}!"

    module = next(m for m in ROOMS if getattr(vars(m).get(call), "__module__", "") == m.__name__)
    monkeypatch.setattr(module, call, fake)
    store = Store("one", "two")
    later, now = both(store)
    coroutine: Coroutine[Any, Any, Any] = getattr(later, name)(*positional, **keywords)
    assert await coroutine == "one!"
    assert getattr(now, name)(*positional, **keywords) == "two!"
    assert store.asked == ["read", "read"]
    assert seen[0] == seen[1]
    given = [*positional, *keywords.values()]
    assert all(any(value is s or value == s for s in seen[0]) for value in given), seen[0]
    assert store.announced == [ANNOUNCED[name]] * 2 if name in ANNOUNCED else store.announced == []


async def test_close_gives_the_connections_back() -> None:
    for colour in (0, 1):
        store = Store()
        client = both(store)[colour]
        closing = client.close()
        if closing is not None:
            await closing
        assert store.closed
