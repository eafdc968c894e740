"""What the crash tests share: worker processes that can be killed and frozen, a client, the ledger, and waiting with a deadline."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from crash.freezing import stop, stopped
from outlast import Handle, JobView, Outlast, Principal, SyncClient, TaskView
from outlast.client.calls import Application
from outlast.rehearsal import app as rehearsal_app
from outlast.rehearsal.ledger import FILE
from outlast.store.open import open_store
from outlast.worker.runtime import Options, Worker

T = TypeVar("T")

OWNER = Principal("acme", "ann")
PATIENCE = 20.0  # no promise of the product: only when a test gives up
RUNNER = Path(__file__).with_name("runner.py")
TESTS = Path(__file__).parent.parent


def until(ask: Callable[[], T], what: str, *, timeout: float = PATIENCE) -> T:
    """The first true answer; AssertionError, with the last one, when none comes in time."""
    end = time.monotonic() + timeout
    while not (answer := ask()):
        assert time.monotonic() < end, f"never: {what} (last answer: {answer!r})"
        time.sleep(0.03)
    return answer


class Process:
    """A worker process. What it prints and logs goes to files."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], folder: Path, name: str, url: str) -> None:
        self.name, self.url = name, url
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, **env},
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def log(self) -> str:
        return self._err.read_text(errors="replace")

    @property
    def said(self) -> str:
        return self._out.read_text(errors="replace")

    def ready(self) -> Process:
        """Itself, once it says so; AssertionError, with its log, if it ends before."""

        def answered() -> bool:
            assert self.alive, f"{self.name} ended with {self._process.returncode}:\n{self.log}"
            return " ready" in self.said

        until(answered, f"{self.name} ready")
        return self

    @property
    def id(self) -> str:
        """The worker's id."""
        return self.said.split()[1]

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)

    def terminate(self) -> None:
        self._process.terminate()

    def ended(self, timeout: float = PATIENCE) -> int:
        """The exit status, negative for a signal."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end:\n{self.log}") from None

    def frozen(self) -> bool:
        """Whether it is stopped, which it may have done to itself."""
        return stopped(self.pid)

    def freeze(self) -> None:
        """Stops it between its transactions."""
        stop(self.pid, self.url)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)


class Stage:
    """A migrated store, a client of it, and the processes of one test."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.ledger = folder / "ledger.jsonl"
        self.store = open_store(url)
        self.jobs = client(self.url, rehearsal_app, self.store)
        self.processes: list[Process] = []

    @property
    def dialect(self) -> str:
        return self.store.dialect

    # -- processes --------------------------------------------------------------------------------------------

    def worker(
        self,
        *,
        lease: float = 1.0,
        grace: float = 3.0,
        zombies: int = 32,
        queues: Mapping[str, int] | None = None,
        hooks: Sequence[Mapping[str, object]] = (),
        target: str = "outlast.rehearsal:app",
        wait: bool = True,
    ) -> Process:
        """A worker process, ready unless one does not want to wait."""
        command = [sys.executable, str(RUNNER), "worker", target, "--store", self.url]
        command += ["--lease", str(lease), "--grace", str(grace), "--zombies", str(zombies)]
        for queue, slots in (queues or {}).items():
            command += ["--queue", f"{queue}={slots}"]
        return self.start(command, env={"OUTLAST_TEST_HOOKS": json.dumps(list(hooks))}, wait=wait)

    def start(self, command: Sequence[str], *, env: Mapping[str, str], wait: bool) -> Process:
        """Any process that belongs to the test."""
        paths = {"PYTHONPATH": str(TESTS), FILE: str(self.ledger)}
        process = Process(command, env={**paths, **env}, folder=self.folder, name=f"P{len(self.processes) + 1}", url=self.url)
        self.processes.append(process)
        return process.ready() if wait else process

    def close(self) -> None:
        """Ends what still runs."""
        for process in self.processes:
            if process.alive:
                process.kill()
        self.store.close_sync()

    # -- jobs -------------------------------------------------------------------------------------------------

    def submit(self, *tasks: Mapping[str, object], key: str | None = None, not_before: Any = None, **top: object) -> str:
        """A job of the rehearsal app; its id."""
        return self.handle(*tasks, key=key, not_before=not_before, **top).id

    def handle(self, *tasks: Mapping[str, object], key: str | None = None, not_before: Any = None, **top: object) -> Handle:
        body: Any = {"tasks": [dict(task) for task in tasks], **top}
        kind = rehearsal_app.registry.kind("rehearsal")
        return self.jobs.submit(kind, body, owner=OWNER, key=key, not_before=not_before)

    def job(self, job_id: str) -> JobView:
        return self.jobs.get(job_id, principal=OWNER)

    def task(self, job_id: str, label: str = "A") -> TaskView:
        return next(t for t in self.jobs.tasks(job_id, principal=OWNER) if t.label == label)

    def past(self, job_id: str) -> list[tuple[str, int, str | None]]:
        """The attempts that ended: label, number, code."""
        return [(a.label, a.attempt, a.code) for a in self.jobs.recovery(job_id, principal=OWNER).attempts]

    def reached(self, job_ids: Sequence[str], state: str = "completed", *, timeout: float = PATIENCE) -> None:
        """Waits until all of these show a state."""

        def others() -> dict[str, str]:
            states = {job_id: self.job(job_id).state for job_id in job_ids}
            return {job_id: shown for job_id, shown in states.items() if shown != state}

        end = time.monotonic() + timeout
        while left := others():
            assert time.monotonic() < end, f"not {state}: {left}\n{self.logs()}"
            time.sleep(0.05)

    def works(self, queue: str = "default") -> None:
        """That somebody still claims: a new job is done."""
        self.reached([self.submit({"label": "still", "queue": queue})])

    def logs(self) -> str:
        """What the processes logged, for a failing test."""
        return "\n".join(f"--- {p.name} (pid {p.pid}) ---\n{p.log[-3000:]}" for p in self.processes)

    # -- the ledger -------------------------------------------------------------------------------------------

    def lines(self, job_id: str | None = None, *, event: str | None = None, label: str | None = None) -> list[dict[str, Any]]:
        """What really ran, in the order in which it was written."""
        if not self.ledger.exists():
            return []
        found: list[dict[str, Any]] = [json.loads(line) for line in self.ledger.read_text().splitlines()]
        wanted = {"job": job_id, "event": event, "label": label}
        return [line for line in found if all(value is None or line[name] == value for name, value in wanted.items())]

    def starts(self, job_id: str, label: str | None = None) -> list[dict[str, Any]]:
        return self.lines(job_id, event="start", label=label)

    def started(self, job_id: str, count: int = 1, *, label: str | None = None) -> None:
        """Waits until a handler has been entered."""
        until(lambda: len(self.starts(job_id, label)) >= count, f"{count} starts of {label or 'the job'}")


def client(url: str, app: Outlast, store: Any = None) -> SyncClient:
    """A client of an app's kinds on another store than the app's own."""
    opened = store or open_store(url)
    return SyncClient(Application(app.registry, app.settings, ""), lambda: opened)


@asynccontextmanager
async def working(url: str, app: Outlast, *, store: Any = None, **options: Any) -> AsyncIterator[Worker]:
    """A worker in this process, ready; stopped in the end, with its exit status checked."""
    opened = store or open_store(url, worker=True)
    worker = Worker(opened, app.registry, app.settings, Options(**{"lease": 2.0, "grace": 3.0, **options}))
    ready = asyncio.Event()
    running = asyncio.create_task(worker.run(on_ready=lambda _id: ready.set()))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        yield worker
    finally:
        if not worker._stop.is_set():  # a second stop would hurry
            worker.stop()
        code = await running
        if store is None:
            await opened.close()
    assert code == 0


async def auntil(ask: Callable[[], T], what: str, *, timeout: float = PATIENCE) -> T:
    """As `until`, on a running loop: `ask` runs in a thread."""
    return await asyncio.to_thread(until, ask, what, timeout=timeout)
