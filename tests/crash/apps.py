"""Handlers that no rehearsal covers: odd results, odd exceptions, blocked interpreters, context variables."""

from __future__ import annotations

import asyncio
import ctypes
import io
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from outlast import Context, Handle, Outlast, Permanent, Principal, Retry, Settings, Snooze, SyncContext
from outlast.observe.correlation import correlation_id, worker_id
from outlast.rehearsal import ledger

app = Outlast("sqlite:///unused.db")  # tests give their own store to client and worker


# ---- blocked interpreters (B41) ----


@dataclass
class Stall:
    seconds: float


def _started(ctx: Context | SyncContext) -> None:
    ledger.write("start", job=ctx.job_id, label=ctx.label, attempt=ctx.attempt, fence=ctx.fence)


@app.task(queue="busy", max_attempts=3)
async def busy(ctx: Context, input: Stall) -> int:
    """Computes in Python: the loop stands still, other threads get their turns."""
    _started(ctx)
    count, until = 0, time.monotonic() + input.seconds
    while time.monotonic() < until:
        count += 1
    return count


@app.task(queue="gil", max_attempts=3)
async def holds_the_interpreter(ctx: Context, input: Stall) -> int:
    """One C call that lets no other thread run, in the first claim."""
    _started(ctx)
    if ctx.fence == 1:
        ctypes.PyDLL(None).usleep(round(input.seconds * 1_000_000))
    return ctx.fence


@app.task(queue="gil")
async def beside(ctx: Context, input: Stall) -> int:
    """A well-behaved neighbour."""
    _started(ctx)
    until = time.monotonic() + input.seconds
    while time.monotonic() < until:
        ctx.check()
        await asyncio.sleep(0.05)
    return ctx.fence


@app.task(deadline=0.3, max_attempts=1)
async def hangs_in_a_step(ctx: Context, input: Stall) -> None:
    """A coroutine whose step is a plain function, in a thread that nobody can end."""
    await ctx.step("hang", time.sleep, input.seconds)


# ---- results and exceptions (B37) ----


@dataclass
class Wish:
    name: str


class Colour(Enum):
    RED = "red"


@dataclass
class Everything:
    moment: datetime
    day: date
    took: timedelta
    price: Decimal
    id: UUID
    tags: set[str]
    blob: bytes
    pair: tuple[int, str]
    colour: Colour


EVERYTHING = Everything(
    datetime(2026, 11, 30, 12, 30, tzinfo=UTC),
    date(2026, 11, 30),
    timedelta(seconds=90),
    Decimal("12.50"),
    UUID("12345678-1234-5678-1234-567812345678"),
    {"a", "b"},
    b"\x00\xff",
    (1, "one"),
    Colour.RED,
)


class Touchy(Mapping[str, object]):
    """A mapping that nobody can read."""

    def __getitem__(self, key: str) -> object:
        raise RuntimeError("do not touch")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("do not touch")

    def __len__(self) -> int:
        raise RuntimeError("do not touch")


class Evil(dict[str, object]):
    """A dict whose reading ends the process, or so it thinks."""

    def items(self) -> Any:
        raise SystemExit("no")


def _cycle() -> object:
    loop: list[object] = []
    loop.append(loop)
    return loop


def _deep() -> object:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    return value


RESULTS: Mapping[str, Callable[[], object]] = {
    "a datetime": lambda: datetime(2026, 1, 1, tzinfo=UTC),
    "a Decimal": lambda: Decimal(1),
    "a UUID": lambda: EVERYTHING.id,
    "a set": lambda: {1},
    "bytes": lambda: b"x",
    "a file": lambda: io.StringIO("x"),
    "a cycle": _cycle,
    "a generator": lambda: (n for n in range(3)),
    "a lambda": lambda: lambda: 1,
    "a coroutine function": lambda: asyncio.sleep,
    "an object": object,
    "NaN": lambda: float("nan"),
    "a huge number": lambda: 10**400,
    "half a surrogate": lambda: "\ud800",
    "NUL": lambda: {"a": ["\x00"]},
    "number keys": lambda: {1: 2},
    "100,000 levels": _deep,
    "2 MB": lambda: "x" * 2_000_000,
    "a touchy mapping": Touchy,
    "an evil dict": lambda: {"a": Evil(a=1)},
}


@app.task(max_attempts=2)
async def odd_result(ctx: Context, input: Wish):  # type: ignore[no-untyped-def]  # noqa: ANN201 - that nothing says so is the point
    """Returns what its annotation does not promise."""
    _started(ctx)
    return RESULTS[input.name]()


@app.task(max_attempts=2)
def odd_result_in_thread(ctx: SyncContext, input: Wish):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """The same from a thread."""
    _started(ctx)
    return RESULTS[input.name]()


@app.task(max_attempts=2)
async def touchy_result(ctx: Context, input: Wish) -> Mapping[str, object]:
    """Returns what its annotation promises, and cannot be read all the same."""
    _started(ctx)
    return Evil(a=1) if input.name == "evil" else Touchy()


@app.task
async def everything(ctx: Context, input: Wish) -> Everything:
    """Returns what its annotation promises."""
    return EVERYTHING


class NeedsTwo(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)
        self.second = second


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no str")

    def __repr__(self) -> str:
        raise ValueError("no repr")


class Unsayable(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class HalfMade(Permanent):
    """Forgets to call what it inherits from."""

    def __init__(self, detail: str) -> None:
        self.detail = detail


class HalfMadeRetry(Retry):
    def __init__(self) -> None:
        Exception.__init__(self)


class HalfMadeSnooze(Snooze):
    def __init__(self) -> None:
        Exception.__init__(self)


class Numbered(Permanent):
    """Its message is no text."""

    def __init__(self) -> None:
        super().__init__("numbered")
        self.message = 42  # type: ignore[assignment]


def _with_attribute() -> BaseException:
    error = RuntimeError("look at my attribute")
    error.lock = threading.Lock()  # type: ignore[attr-defined]
    return error


def _cyclic() -> BaseException:
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__cause__, second.__cause__ = second, first
    return first


ERRORS: Mapping[str, Callable[[], BaseException]] = {
    "NeedsTwo": lambda: NeedsTwo("one", "two"),
    "Unspeakable": Unspeakable,
    "Unsayable": Unsayable,
    "an attribute": _with_attribute,
    "a cyclic cause": _cyclic,
    "5 MB": lambda: RuntimeError("m" * 5_000_000),
    "HalfMade": lambda: HalfMade("x"),
    "HalfMadeRetry": HalfMadeRetry,
    "HalfMadeSnooze": HalfMadeSnooze,
    "Numbered": Numbered,
    "StopIteration": StopIteration,
    "NUL": lambda: RuntimeError("a\x00b\ud800"),
    "SystemExit": lambda: SystemExit(0),
    "CancelledError": asyncio.CancelledError,
    "GeneratorExit": GeneratorExit,
}


@app.task(max_attempts=1)
async def odd_error(ctx: Context, input: Wish) -> None:
    """Raises."""
    _started(ctx)
    make = ERRORS[input.name]
    error = make()
    raise error


@app.task(max_attempts=1)
def odd_error_in_thread(ctx: SyncContext, input: Wish) -> None:
    """Raises in a thread."""
    _started(ctx)
    make = ERRORS[input.name]
    error = make()
    raise error


@dataclass
class Basket:
    items: list[str]
    seen: list[int] = field(default_factory=list)


@app.task(max_attempts=2)
async def mutates(ctx: Context, input: Basket) -> list[str]:
    """Changes what it was given, and fails once."""
    found = list(input.items)
    input.items.append("added")
    input.seen.append(ctx.attempt)
    if ctx.attempt == 1:
        raise RuntimeError("once")
    return found


# ---- context (B42) ----

own: ContextVar[str] = ContextVar("own", default="unset")


@dataclass
class Errand:
    name: str
    fails: bool = False
    follow_up: bool = True


@dataclass
class Seen:
    """What an errand found of its context: before it set anything, in a thread, in a child task."""

    before: str
    correlations: list[str | None]
    workers: list[str | None]
    own_in_thread: str
    follow_up: str | None


Submit = Callable[[Errand, Principal], Handle]
submit: dict[str, Submit] = {}
observed: dict[str, Seen] = {}


def _look() -> tuple[str | None, str | None, str]:
    return correlation_id.get(), worker_id.get(), own.get()


@app.task(queue="errands", max_attempts=1)
async def errand(ctx: Context, input: Errand) -> str:
    """Looks at its context everywhere."""
    before = own.get()
    own.set(input.name)

    async def child() -> tuple[str | None, str | None, str]:
        await asyncio.sleep(0.001)
        return _look()

    looks = [_look(), await asyncio.to_thread(_look), await asyncio.create_task(child()), await ctx.step("look", _look_step) or _look()]
    following = await app_submit(input, ctx.owner) if input.follow_up else None
    return _record(input, before, looks, following)


async def _look_step() -> None:
    await asyncio.sleep(0)


async def app_submit(input: Errand, owner: Principal) -> Handle:
    """In the context of the caller, as the application's own code would."""
    return submit["sync"](Errand(f"after {input.name}", follow_up=False), owner)


@app.task(queue="errands", max_attempts=1)
def errand_in_thread(ctx: SyncContext, input: Errand) -> str:
    """Looks at its context in a thread."""
    before = own.get()
    own.set(input.name)
    following = submit["sync"](Errand(f"after {input.name}", follow_up=False), ctx.owner) if input.follow_up else None
    return _record(input, before, [_look()], following)


def _record(input: Errand, before: str, looks: list[tuple[str | None, str | None, str]], following: Handle | None) -> str:
    observed[input.name] = Seen(
        before,
        [look[0] for look in looks],
        [look[1] for look in looks],
        looks[-1][2],
        following.id if following else None,
    )
    if input.fails:
        raise RuntimeError(input.name)
    return input.name


# ---- retention (I1) ----

brief = Outlast("sqlite:///unused.db", settings=Settings(retention=0.2))


@dataclass
class Nothing:
    pass


@brief.task
async def keep(ctx: Context, input: Nothing) -> int:
    """Leaves a step and an effect."""
    await ctx.step("first", lambda: 1)
    return await ctx.effect("outside", _outside, idempotent=True)


async def _outside(key: str) -> int:
    return 2
