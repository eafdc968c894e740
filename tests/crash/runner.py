"""The command `outlast worker`, with faults armed at named points of its store's operations.

    python tests/crash/runner.py worker outlast.rehearsal:app --store sqlite:////tmp/x.db --lease 2 --queue default=8

OUTLAST_TEST_HOOKS is a JSON list. Each hook names an operation (`op`), a point of it (`at`: `before`, `after`, or
`statement NAME`: when that statement of its program was executed), and what to do there once: `kill` or `stop` (SIGSTOP) this
process, `fail` (the store is unavailable) or `sleep` (`seconds`). `count`: only when so many calls (`before`), or rows of the
answers (`after`), came together.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outlast import StoreUnavailable
from outlast.cli import work
from outlast.cli.main import main
from outlast.domain.work import Turn
from outlast.store.drive import with_subprograms
from outlast.store.program import Operation, Program, Rows, Statement
from outlast.store.sqlite.subprograms import SUBPROGRAMS

HOOKS = "OUTLAST_TEST_HOOKS"
FREEZER = Path(__file__).with_name("freezing.py")


class Hook:
    """One fault, armed."""

    def __init__(self, *, op: str, at: str, do: str, count: int = 1, seconds: float = 0.0) -> None:
        self.op, self.at, self.do = op, at, do
        self._left = count
        self._seconds = seconds

    def fire(self, op: str, at: str, amount: int) -> None:
        if self._left <= 0 or (op, at) != (self.op, self.at):
            return
        self._left -= amount
        if self._left > 0:
            return
        match self.do:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                url = sys.argv[sys.argv.index("--store") + 1]
                subprocess.run([sys.executable, str(FREEZER), str(os.getpid()), url], check=True)
                time.sleep(0.2)  # another thread may be the one that takes the signal; this one must not go on meanwhile
            case "fail":
                raise StoreUnavailable("The store cannot be reached, says the test.")
            case _:
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
        self._answered(operation.name, value)
        return value

    def run_sync(self, operation: Operation[Any]) -> Any:
        self._fire(operation.name, "before")
        value = self._store.run_sync(self._watched(operation))
        self._answered(operation.name, value)
        return value

    def _fire(self, op: str, at: str, amount: int = 1) -> None:
        for hook in self._hooks:
            hook.fire(op, at, amount)

    def _answered(self, op: str, value: object) -> None:
        rows = value.claimed if isinstance(value, Turn) else value
        amount = len(rows) if isinstance(rows, list | tuple) else 1
        if amount:
            self._fire(op, "after", amount)

    def _watched(self, operation: Operation[Any]) -> Operation[Any]:
        if not any(h.op == operation.name and h.at.startswith("statement") for h in self._hooks):
            return operation
        return dataclasses.replace(operation, start=lambda: self._each(operation))

    def _each(self, operation: Operation[Any]) -> Program[Any]:
        program = operation.start()
        if self._store.dialect == "sqlite":
            program = with_subprograms(program, SUBPROGRAMS)  # to see the statements that stand for one of PostgreSQL's
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


def arm() -> None:
    """Puts the hooks between the command's worker and its store."""
    hooks = list(armed())
    plain = work.store_for
    if hooks:
        work.store_for = lambda app: Armed(plain(app), hooks)


if __name__ == "__main__":
    arm()
    main()
