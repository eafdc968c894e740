"""A worker process for the tests, with faults armed at named points of its store's operations.

    python tests/crash/runner.py outlast.rehearsal:app --store sqlite:////tmp/x.db --lease 2 --queue default=8

OUTLAST_TEST_HOOKS is a JSON list. Each hook names an operation (`op`), a point of it (`at`: `before`, `after`, or
`statement NAME`: when that statement of its program was executed), and what to do there once: `kill` or `stop` (SIGSTOP) this
process, `fail` (the store is unavailable) or `sleep` (`seconds`). `count`: only when so many calls (`before`), or rows of the
answers (`after`), came together.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import importlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from outlast import Outlast, StoreUnavailable
from outlast.store.open import open_store
from outlast.store.program import Operation, Program, Rows, Statement
from outlast.worker.runtime import Options, Worker

HOOKS = "OUTLAST_TEST_HOOKS"


class Hook:
    """One fault, armed."""

    def __init__(self, *, op: str, at: str, do: str, count: int = 1, seconds: float = 0.0) -> None:
        self.op, self.at, self.do = op, at, do
        self._left = count
        self._seconds = seconds

    def fire(self, op: str, at: str, amount: int = 1) -> None:
        if self._left <= 0 or (op, at) != (self.op, self.at):
            return
        self._left -= amount
        if self._left > 0:
            return
        match self.do:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "fail":
                raise StoreUnavailable("The store cannot be reached, says the test.")
            case "sleep":
                time.sleep(self._seconds)


class Armed:
    """A store whose operations pass the hooks."""

    def __init__(self, store: Any, hooks: list[Hook]) -> None:
        self._store = store
        self._hooks = hooks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def reserved(self) -> Any:
        inner = self._store.reserved()
        return self if inner is self._store else Armed(inner, self._hooks)

    async def run(self, operation: Operation[Any]) -> Any:
        self._fire(operation.name, "before")
        value = await self._store.run(self._watched(operation))
        self._after(operation.name, value)
        return value

    def run_sync(self, operation: Operation[Any]) -> Any:
        self._fire(operation.name, "before")
        value = self._store.run_sync(self._watched(operation))
        self._after(operation.name, value)
        return value

    def _fire(self, op: str, at: str, amount: int = 1) -> None:
        for hook in self._hooks:
            hook.fire(op, at, amount)

    def _after(self, op: str, value: object) -> None:
        amount = len(value) if isinstance(value, list) else 1
        if amount:
            self._fire(op, "after", amount)

    def _watched(self, operation: Operation[Any]) -> Operation[Any]:
        if not any(h.op == operation.name and h.at.startswith("statement") for h in self._hooks):
            return operation
        return dataclasses.replace(operation, start=lambda: self._each(operation))

    def _each(self, operation: Operation[Any]) -> Program[Any]:
        program = operation.start()
        rows: Rows = ()
        try:
            statement: Statement = next(program)
            while True:
                rows = yield statement
                self._fire(operation.name, f"statement {statement.name}")
                statement = program.send(rows)
        except StopIteration as end:
            return end.value


def armed() -> Iterator[Hook]:
    """The hooks that the environment asks for."""
    for hook in json.loads(os.environ.get(HOOKS, "[]")):
        yield Hook(**hook)


async def work(app: Outlast, options: Options, url: str) -> int:
    """Runs a worker until a signal stops it."""
    store: Any = open_store(url, worker=True)
    hooks = list(armed())
    worker = Worker(Armed(store, hooks) if hooks else store, app.registry, app.settings, options)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop)
    return int(await worker.run(on_ready=lambda name: print(f"worker {name} ready", flush=True)))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--store", required=True)
    parser.add_argument("--queue", action="append", default=[])
    parser.add_argument("--lease", type=float, default=2.0)
    parser.add_argument("--grace", type=float, default=3.0)
    parser.add_argument("--zombies", type=int, default=32)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    module, _, name = given.target.partition(":")
    app = getattr(importlib.import_module(module), name)
    queues = {queue: int(slots) for queue, _, slots in (q.partition("=") for q in given.queue)}
    options = Options(queues=queues or None, lease=given.lease, grace=given.grace, zombies=given.zombies)
    code = 1
    try:
        code = asyncio.run(_leaving(app, options, given.store))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # threads of handlers that still run hold nobody up


async def _leaving(app: Outlast, options: Options, url: str) -> int:
    code = await work(app, options, url)
    logging.getLogger("outlast").info("left with %d", code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # nor does a handler on the loop that ignores its cancellation


if __name__ == "__main__":
    main()
