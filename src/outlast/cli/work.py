"""Runs a worker as this process: ready line, log, signals, and an end that comes in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, Protocol

from outlast.app import Outlast
from outlast.cli.exits import Exit
from outlast.cli.output import note, say
from outlast.cli.stopping import LATE, leave, stopping
from outlast.observe.events import Event, LoopDied, WorkerStopping, Zombie
from outlast.observe.hub import subscribe
from outlast.store.open import open_store, parse
from outlast.store.protocol import Store
from outlast.worker.runtime import Options, Worker

_CLOSE = 0.5
_WHY = {
    Exit.DEFECT: "A loop of the worker died; the log above says which. Start the worker anew.",
    Exit.ZOMBIES: "Too much code ran on after its lease had ended, so this process ends. Start the worker anew; plain functions "
    "should call ctx.check() between their steps.",
}


def store_for(app: Outlast) -> Store:
    """The store that the worker of this process runs on, which also hears of what the application submits here."""
    if parse(app.url).dialect == "sqlite":
        return app.store  # one writer a process
    store = open_store(app.url, worker=True)
    app.store.hints.subscribe(store.hints.send)
    return store


class Beside(Protocol):
    """What runs beside the worker and ends with it."""

    def stop(self, *, patience: float) -> None:
        """Ends, and waits for that at most so many seconds."""
        ...


def work(app: Outlast, options: Options, *, also: Beside | None = None) -> NoReturn:
    """Runs a worker until it is told to stop or cannot go on, and ends the process. Refusals at its start are raised."""
    stopping.install()
    store = store_for(app)
    worker = Worker(store, app.registry, app.settings, options, sessions=app.sessions)
    loop = asyncio.new_event_loop()

    def stop() -> None:
        with suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(worker.stop)

    def ready(worker_id: str) -> None:
        stopping.begin(stop, grace=options.grace)
        with suppress(OSError):  # nobody reads it any more
            say(f"worker {worker_id} ready")

    subscribe(_limit())
    try:
        code = loop.run_until_complete(_run(worker, store, ready))
    except asyncio.CancelledError:
        code = Exit.DEFECT
    if also is not None:
        also.stop(patience=_CLOSE)
    if code in _WHY:
        note(f"error: {_WHY[code]}")
    leave(code)


async def _run(worker: Worker, store: Store, ready: Callable[[str], None]) -> Exit:
    try:
        return Exit(await worker.run(on_ready=ready))
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE):
                await store.close()


def _limit() -> Callable[[Event], None]:
    """A worker that stops by itself ends in time as well."""
    codes: list[Exit] = []

    def hear(event: Event) -> None:
        if isinstance(event, LoopDied):
            codes.append(Exit.DEFECT)
        elif isinstance(event, Zombie) and event.zombies >= event.limit:
            codes.append(Exit.ZOMBIES)
        elif isinstance(event, WorkerStopping) and codes:
            stopping.limit(LATE, codes[0])

    return hear
