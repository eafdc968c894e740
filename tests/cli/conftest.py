"""A folder with a tiny application in it, where commands run in this process or as processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
from click.testing import CliRunner, Result

from outlast.cli.main import commands
from outlast.cli.stopping import Stopping
from servers.postgres import PostgresServer

T = TypeVar("T")
PATIENCE = 15.0
SHOP = Path(__file__).with_name("shop.py")


def until(ask: Callable[[], T], what: str, *, timeout: float = PATIENCE) -> T:
    """The first true answer, asked again and again; AssertionError when none comes in time."""
    end = time.monotonic() + timeout
    while not (answer := ask()):
        assert time.monotonic() < end, f"never: {what} (last answer: {answer!r})"
        time.sleep(0.02)
    return answer


class Working:
    """A `worker` or `dev` process; what it prints goes to files."""

    def __init__(self, folder: Path, command: Sequence[str], *, env: dict[str, str]) -> None:
        name = uuid.uuid4().hex
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # children of its own end with it
            )

    @property
    def said(self) -> str:
        return self._out.read_text()

    @property
    def log(self) -> str:
        return self._err.read_text()

    def ready(self) -> Working:
        def answered() -> bool:
            assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.log}"
            return " ready\n" in self.said

        until(answered, "the worker is ready")
        return self

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def ended(self, *, within: float = PATIENCE) -> int:
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still there after {within} s: {self.log}") from None


class Shell:
    """Runs commands in a folder, on a store."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.ledger = folder / "ledger.txt"
        self._working: list[Working] = []

    def run(self, *args: str, stdin: str | bytes | None = None, code: int = 0, store: bool = True) -> Result:
        """A command in this process, on the store; it does not take the signals over. Its exit code is checked."""
        self._forget()
        env = {"OUTLAST_STORE": self.url if store else None, "OUTLAST_TARGET": None, "COLUMNS": "200"}
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Stopping, "install", lambda _self: None)
            result = CliRunner().invoke(commands, list(args), input=stdin, env=env)
        assert result.exit_code == code, f"{result.exit_code}: {result.output} {result.exception!r}"
        return result

    def _forget(self) -> None:
        """The modules of the folder, so that each command imports them anew, as a process would."""
        for name, module in tuple(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(f"{self.folder}/"):
                del sys.modules[name]

    def submit(self, body: str = "{}", *more: str, kind: str = "order", owner: str = "acme:ann") -> str:
        """The id of a new job."""
        return self.run("jobs", "submit", "shop:jobs", kind, "--input", "-", "--as", owner, *more, stdin=body).stdout.split("\n")[0]

    def start(self, *args: str, **env: str) -> Working:
        """A command as a process that is ended with the test."""
        return self._start(["-m", "outlast", *args], env)

    def start_script(self, name: str, **env: str) -> Working:
        """A script of the folder as a process that is ended with the test."""
        return self._start([name], env)

    def _start(self, command: Sequence[str], env: dict[str, str]) -> Working:
        environment = {
            **os.environ,
            "OUTLAST_STORE": self.url,
            "SHOP_LEDGER": str(self.ledger),
            "PYTHONDONTWRITEBYTECODE": "1",
            **env,
        }
        working = Working(self.folder, command, env=environment)
        self._working.append(working)
        return working

    def worker(self, *more: str, **env: str) -> Working:
        return self.start("worker", "shop:jobs", *more, **env)

    def work(self) -> None:
        """Lets a worker work until nothing is left that it could do."""
        worker = self.worker("--grace", "2").ready()
        until(lambda: not self.entries(), "nothing waits and nothing runs")
        worker.signal()
        assert worker.ended() == 0

    def lines(self) -> list[str]:
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    def entries(self) -> int:
        """How many tasks wait or run."""
        items = json.loads(self.run("queues", "--json").stdout)["items"]
        return sum(item["ready"] + item["running"] + item["waiting"] for item in items)

    def end(self) -> None:
        self._forget()
        for working in self._working:
            with suppress(ProcessLookupError):
                os.killpg(working.process.pid, signal.SIGKILL)
            working.process.wait()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with the application in it; what it imports is forgotten afterwards."""
    shutil.copy(SHOP, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


@pytest.fixture
def bare(folder: Path) -> Iterator[Shell]:
    """A shell on a SQLite store that does not exist yet."""
    shell = Shell(folder, f"sqlite:///{folder}/shop.db")
    yield shell
    shell.end()


@pytest.fixture
def shell(bare: Shell) -> Shell:
    """A shell on a migrated SQLite store."""
    bare.run("migrate")
    return bare


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, folder: Path) -> Iterator[Shell]:
    """A shell on a migrated store of each kind."""
    server: PostgresServer | None = None
    name = f"cli_{uuid.uuid4().hex[:12]}"
    url = f"sqlite:///{folder}/shop.db"
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres_server")
        url = server.create_database(name)
    shell = Shell(folder, url)
    shell.run("migrate")
    yield shell
    shell.end()
    if server is not None:
        server.drop_database(name)
