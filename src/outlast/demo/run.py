"""The main job on real input, with what goes wrong in real life: a client killed before its answer, a worker killed at work.

Every line that it prints is checked first; it ends with 1 at the first thing that is not as it should be.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from outlast.demo.app import LEDGER, app, collect_topics, make_book, request, write_book
from outlast.demo.book import check_epub
from outlast.demo.submitter import READER
from outlast.domain.errors import OutlastError
from outlast.domain.model import Handle, JobView, Recovery
from outlast.store.open import migrate, parse

T = TypeVar("T")

FOLDER = Path("outlast-demo")
PACE = 0.12  # seconds a chapter: long enough to be killed in the middle
LEASE = 2.0
_PATIENCE = 40.0
_SOME_CHAPTERS = 5


class DemoError(Exception):
    """Something was not as it should be."""


def main(store: str | None = None, folder: Path | None = None) -> int:
    """Runs the demo; 0 if all of it went as promised."""
    stamp = datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    place = (folder or FOLDER / stamp).resolve()
    place.mkdir(parents=True, exist_ok=True)
    url = store or f"sqlite:///{place / 'jobs.db'}"
    try:
        _Demo(url, place, f"book-{stamp}-{os.getpid()}").run()
    except (DemoError, OutlastError) as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    return 0


@dataclass(slots=True)
class _Demo:
    url: str
    place: Path
    key: str
    workers: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])
    began: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Everything in order; whatever happens, no worker stays behind."""
        app.use(self.url)
        self.say(f"Store: {parse(self.url).shown}")
        migrate(self.url)
        try:
            handle = self._submit()
            self._kill_a_worker(handle)
            self._finish(handle)
            self._timeline(handle)
            self._book(handle)
        finally:
            for worker in self.workers:
                worker.kill()
                worker.wait()
            app.sync.close()

    def say(self, text: str) -> None:
        """One line with the time since the start."""
        print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def _submit(self) -> Handle:
        arguments = [self.url, self.key, str(self.place), str(PACE)]
        client = subprocess.run([sys.executable, "-m", "outlast.demo.submitter", *arguments], check=False)
        _expect(client.returncode == -signal.SIGKILL, "the client process should have been killed before its answer")
        self.say("A client submitted the book and was killed before it read the answer.")
        handle = app.sync.submit(make_book, request(self.place, PACE), owner=READER, key=self.key)
        _expect(handle.replayed, "the same key should have found the job that the dead client made")
        self.say(f"A new client sent the same request with the same key: it is the same job, {handle.id} ({handle.state}).")
        return handle

    def _kill_a_worker(self, handle: Handle) -> None:
        worker = self._start_worker()
        recovery = self._until("a few chapters are stored", lambda: self._stored(handle, _SOME_CHAPTERS))
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        stored = dict(recovery.steps)
        self.say(f"Worker 1 (pid {worker.pid}) was killed in the middle; {sum(stored.values())} chapters were stored by then.")
        view = app.sync.get(handle.id, principal=READER)
        _expect(not view.final, "the job should go on")

    def _stored(self, handle: Handle, least: int) -> Recovery | None:
        recovery = app.sync.recovery(handle.id, principal=READER)
        return recovery if sum(dict(recovery.steps).values()) >= least else None

    def _start_worker(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "outlast", "worker", "outlast.demo.app:app", "--lease", str(LEASE), "--grace", "5"]
        environment = {**os.environ, "OUTLAST_STORE": self.url}
        log = (self.place / "workers.log").open("a", encoding="utf-8")
        with log:
            worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        self.workers.append(worker)
        line = worker.stdout.readline() if worker.stdout is not None else ""
        _expect("ready" in line, f"the worker did not start; see {self.place / 'workers.log'}")
        self.say(f"Worker {len(self.workers)} (pid {worker.pid}) started.")
        return worker

    def _finish(self, handle: Handle) -> None:
        self._start_worker()
        view = self._until("the book is usable", lambda: self._when(handle, "usable"))
        self.say("The book can be opened. What it can do without goes on." if not view.final else "The book can be opened.")
        view = self._until("the job is completed", lambda: self._when(handle, "final"))
        _expect(view.state == "completed", f"the job should have completed; it is {view.state}")
        self.say(f"The job is {view.state}: {view.outcome}.")

    def _when(self, handle: Handle, what: str) -> JobView | None:
        view = app.sync.get(handle.id, principal=READER)
        if view.state == "needs_attention":
            raise DemoError(f"the job needs attention: {view.attention.code if view.attention else ''}")
        return view if view.final or (what == "usable" and view.usable_at is not None) else None

    def _timeline(self, handle: Handle) -> None:
        recovery = app.sync.recovery(handle.id, principal=READER)
        view = app.sync.get(handle.id, principal=READER)
        print("\n        What happened:")
        events = [(view.accepted_at, "accepted")]
        for attempt in recovery.attempts:
            what = "completed" if attempt.code is None else f"ended with {attempt.code}"
            if attempt.started_at is not None:
                events.append((attempt.started_at, f"{attempt.label}: attempt {attempt.attempt} (fence {attempt.fence}) started"))
            if attempt.ended_at is not None:
                events.append((attempt.ended_at, f"{attempt.label}: attempt {attempt.attempt} {what}"))
        if view.usable_at is not None:
            events.append((view.usable_at, "the book is usable from here on"))
        if view.finished_at is not None:
            events.append((view.finished_at, f"job {view.state}, {view.outcome}"))
        for at, text in sorted(events, key=lambda e: e[0]):
            print(f"        {(at - view.accepted_at).total_seconds():6.2f} s  {text}")
        print()
        self._chapters()
        lost = [a for a in recovery.attempts if a.code == "worker_lost"]
        _expect(len(lost) == 1, "exactly one attempt should have been lost with its worker")
        cover = [a.code for a in recovery.attempts if a.label == "Draw the cover"]
        _expect(cover[:1] == ["printer_jam"], "the cover should have failed once")
        _expect(view.usable_at is not None and view.finished_at is not None, "the job should show when it became usable")
        self.say("The cover failed once, and that did not matter: the book was usable before, and stayed so.")

    def _chapters(self) -> None:
        """Which chapters ran where, from the file that the steps themselves write."""
        ran: dict[int, list[int]] = {}
        for line in (self.place / LEDGER).read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            ran.setdefault(int(entry["chapter"]), []).append(int(entry["fence"]))
        reused = [chapter for chapter, fences in ran.items() if fences == [1]]
        twice = [chapter for chapter, fences in ran.items() if len(fences) > 1]
        _expect(len(reused) >= _SOME_CHAPTERS, "the second worker should have reused what the first one stored")
        _expect(len(twice) <= 1, f"chapters ran twice although they were stored: {twice}")
        self.say(f"Worker 2 reused {len(reused)} chapters and collected {len(ran) - len(reused)}; no stored step ran twice.")
        if twice:
            self.say(f"Chapter {twice[0]} ran twice: the kill came before its output was stored, which is why a step may run again.")

    def _book(self, handle: Handle) -> None:
        files = app.sync.result(handle.id, write_book, principal=READER)
        chapters = app.sync.result(handle.id, collect_topics, principal=READER)
        report = check_epub(Path(files.epub))
        _expect(report.chapters == len(chapters), "the EPUB should have every chapter")
        self.say(f"The EPUB was checked: {report.chapters} chapters, {report.words} words, {report.links} links, nothing missing.")
        print(f"\n        {files.epub}\n        {files.html}\n        {Path(files.epub).parent / 'index.html'}")

    def _until(self, what: str, look: Callable[[], T | None]) -> T:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            found = look()
            if found is not None:
                return found
            time.sleep(0.05)
        raise DemoError(f"waited {_PATIENCE:.0f} s until {what}")


def _expect(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not holds:
        raise DemoError(otherwise)
