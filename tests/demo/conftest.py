"""The command `outlast demo` as a process, in a group of its own, so that what it leaves behind is seen, and ended with the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

LIMIT = 100.0


class Demo:
    """A demo that runs; its standard output is read line by line."""

    def __init__(self, folder: Path, *options: str, **env: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if name not in ("KEEP", "OUTLAST_STORE")}
        self._errors = folder.with_name(f"{folder.name}.err")
        with self._errors.open("w", encoding="utf-8") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "outlast", "demo", "--folder", str(folder), *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**inherited, **env},
                start_new_session=True,
            )
        self.said = ""

    def until(self, text: str) -> str:
        """The first line in which this stands."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said += line
            if text in line:
                return line
        raise AssertionError(f"it ended without saying {text!r}: {self.said}{self.complaint}")

    def signal(self, number: signal.Signals) -> None:
        """As from another process; Ctrl-C in a terminal is heard by the whole group."""
        if number is signal.SIGINT:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)

    def ended(self) -> int:
        """Its exit code, after all that it still says."""
        assert self._process.stdout is not None
        self.said += self._process.stdout.read()
        return self._process.wait(LIMIT)

    @property
    def complaint(self) -> str:
        return self._errors.read_text(encoding="utf-8")

    @property
    def leaves_something(self) -> bool:
        """Whether any process of its group is still there."""
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a demo puts its book."""
    made = tmp_path / "book"
    made.mkdir()
    return made


@pytest.fixture
def demo(folder: Path) -> Iterator[Callable[..., Demo]]:
    """Starts demos with these options and this environment."""
    started: list[Demo] = []

    def start(*options: str, **env: str) -> Demo:
        started.append(Demo(folder, *options, **env))
        return started[-1]

    yield start
    for one in started:
        one.end()
