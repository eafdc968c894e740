"""The processes of the demo: the API, workers and a client, each as a command of its own, and none that outlives the demo."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TextIO

from outlast.demo.checks import DemoError, expect
from outlast.demo.ending import Ending

TARGET: Final = "outlast.demo.app:app"
LEASE: Final = 2.0
_START: Final = 40.0
_STOP: Final = 8.0
_GRACE: Final = "5"


@dataclass(frozen=True, slots=True)
class Running:
    """A process, and the line by which it said that it is ready."""

    what: str
    pid: int
    said: str

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.said.rpartition(":")[2])


class Processes:
    """Starts processes at one store; whatever happens in its block, none is left at the end of it."""

    def __init__(self, store: str, place: Path, ending: Ending) -> None:
        self._environment = {**os.environ, "OUTLAST_STORE": store}  # not as an argument, which everybody on the machine can read
        self._place = place
        self._ending = ending
        self._all: dict[int, subprocess.Popen[str]] = {}
        self._workers = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def api(self, port: int = 0) -> Running:
        """`outlast serve`, listening."""
        arguments = ["serve", TARGET, "--port", str(port), "--dev-identities", "--grace", _GRACE]
        return self._ready("the API", arguments, "listening on ", self._place / "api.log")

    def worker(self) -> Running:
        """`outlast worker`, ready: the first, the second, and so on."""
        self._workers += 1
        arguments = ["worker", TARGET, "--lease", str(LEASE), "--grace", _GRACE]
        return self._ready(f"worker {self._workers}", arguments, "worker ", self._place / "workers.log")

    def client(self, arguments: Sequence[str]) -> int:
        """How a client process ended."""
        client = self._start(["-m", "outlast.demo.submitter", *arguments], None)
        try:
            code = client.wait(_START)
        except subprocess.TimeoutExpired:
            raise DemoError("the client got no answer and did not die") from None
        self._forget(client)
        return code

    def kill(self, one: Running) -> None:
        """Ends a process as a power cut would; DemoError if it had ended before."""
        popen = self._all[one.pid]
        expect(popen.poll() is None, f"{one.what} ended by itself")
        popen.kill()
        expect(popen.wait() == -signal.SIGKILL, f"{one.what} should have been killed")
        self._forget(popen)

    @property
    def all_run(self) -> bool:
        """Whether all that were started run still, but those that were killed."""
        return all(popen.poll() is None for popen in self._all.values())

    def stop(self) -> bool:
        """Tells all to stop, and ends those that do not; whether all ran until then and stopped as they were told."""
        with self._ending.held():
            ending = list(self._all.values())
            for popen in ending:
                popen.terminate()
            for popen in ending:
                with suppress(subprocess.TimeoutExpired):
                    popen.wait(_STOP)
                popen.kill()
                popen.wait()
                self._forget(popen)
        return all(popen.returncode == 0 for popen in ending)

    def _forget(self, popen: subprocess.Popen[str]) -> None:
        del self._all[popen.pid]
        if popen.stdout is not None:
            popen.stdout.close()

    def _ready(self, what: str, arguments: Sequence[str], word: str, log: Path) -> Running:
        with log.open("a", encoding="utf-8") as errors:
            popen = self._start(["-m", "outlast", *arguments], errors)
        stdout = popen.stdout
        said = stdout.readline().strip() if stdout is not None and select.select([stdout], [], [], _START)[0] else ""
        expect(said.startswith(word), f"{what} did not start; see {log}")
        return Running(what, popen.pid, said)

    def _start(self, arguments: Sequence[str], errors: TextIO | None) -> subprocess.Popen[str]:
        with self._ending.held():
            popen = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self._environment,
            )
            self._all[popen.pid] = popen
        return popen
