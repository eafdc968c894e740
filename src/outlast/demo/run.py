"""The main job on real input, with what goes wrong in real life: a client, a worker and the API are killed on the way.

What a person does is done over HTTP. Every line that is printed is checked first; it ends with 1 at the first thing that is not as
it should be.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from outlast.demo import ledger
from outlast.demo.app import Book, Files, make_book
from outlast.demo.book import Chapter, chapter_plan, check_epub
from outlast.demo.checks import DemoError, expect
from outlast.demo.ending import Ending, Stopped
from outlast.demo.processes import Processes, Running
from outlast.demo.timeline import timeline
from outlast.demo.visitor import Job, Recovery, Shown, Visitor
from outlast.domain.errors import OutlastError
from outlast.store.open import migrate, parse

T = TypeVar("T")

FOLDER: Final = Path("outlast-demo")
PACE: Final = 0.12  # seconds a chapter: long enough to be killed in the middle
TENANT: Final = "demo"
_PATIENCE: Final = 40.0
_LOOK: Final = 0.05
_SOME_CHAPTERS: Final = 5
_FIRST, _SECOND = 1, 2  # fences: each claim of a task has its own
_ACCEPTED, _OK, _NOT_MODIFIED, _NOT_FOUND = 202, 200, 304, 404


def main(store: str | None = None, folder: Path | None = None, *, keep: bool = False) -> int:
    """Runs the demo; 0 if all of it went as promised. keep: the API and a worker go on afterwards, until a signal comes."""
    stamp = datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    place = (folder or FOLDER / stamp).resolve()
    place.mkdir(parents=True, exist_ok=True)
    url = store or f"sqlite:///{place / 'jobs.db'}"
    ending = Ending()
    ending.install()
    try:
        with Processes(url, place, ending) as processes:
            _Demo(url, place, f"book-{stamp}-{os.getpid()}", processes).run(keep=keep)
    except Stopped as stopped:
        stopped.end()
    except (DemoError, OutlastError) as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    return 0


@dataclass(slots=True)
class _Demo:
    url: str
    place: Path
    key: str
    processes: Processes
    began: float = field(default_factory=time.monotonic)
    reader: Visitor = field(init=False)

    def run(self, *, keep: bool) -> None:
        """Everything in order."""
        self.say(f"The store is {parse(self.url).shown}")
        migrate(self.url)
        api = self.processes.api()
        self.reader = Visitor(api.port, TENANT, "reader")
        self.say(f"The API (outlast serve, pid {api.pid}) listens on http://127.0.0.1:{api.port}")
        job = self._ask_twice()
        self._look_at_the_page(job)
        self._refuse_a_stranger(job)
        self._lose_a_worker(job)
        self._lose_the_api(job, api)
        self._finish(job)
        self._look_back(job)
        self._open_the_book(job)
        if keep:
            self._keep(job)
        else:
            expect(self.processes.stop(), "the API and worker 2 should have stopped when they were told to")
            self.say("The API and worker 2 were told to stop and did. With KEEP=1 (or --keep) they go on, for you to open the page.")

    def say(self, text: str) -> None:
        """One line with the time since the start."""
        print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def _ask_twice(self) -> Job:
        """One job of two requests, the first by a client that never learns of it."""
        order = msgspec.json.encode({"kind": make_book.name, "input": Book(str(self.place), PACE)})
        before = {job.id for job in self.reader.jobs()}
        ended = self.processes.client([str(self.reader.port), TENANT, self.reader.subject, self.key, order.decode()])
        expect(ended == -signal.SIGKILL, "the client should have been killed when its answer was there")
        self.say("A client asked for a book (POST /v1/jobs) and was killed when its answer was there, before it had read any of it.")
        answer = self.reader.submit(order, self.key)
        expect(answer.status == _ACCEPTED, f"the same request should have been answered 202, not {answer.status}")
        expect(answer.headers.get("idempotency-replayed") == "true", "the same key should have found the job that the dead client made")
        job = answer.read(Job)
        expect(answer.headers.get("location") == f"/v1/jobs/{job.id}", "the answer should say where the job is")
        expect({job.id for job in self.reader.jobs()} - before == {job.id}, "the two requests should have made one job")
        expect(job.state == "queued", "nobody should be at work yet: another worker uses this store; give the demo one of its own")
        self.say("Another device sent the same request with the same Idempotency-Key, and was told: 202, Idempotency-Replayed: true.")
        self.more(f"The two requests made one job, {job.id} ({job.state}).")
        return job

    def more(self, text: str) -> None:
        """What goes on from the line before."""
        print(f"{'':10}{text}", flush=True)

    def _look_at_the_page(self, job: Job) -> None:
        answer = self.reader.get(f"/jobs/{job.id}", {"Accept": "text/html"})
        expect(answer.status == _OK, f"the job's page should have been answered 200, not {answer.status}")
        expect(answer.headers.get("content-type", "").startswith("text/html"), "the job's page should be HTML")
        expect(make_book.label in answer.body.decode(), "the job's page should say what it is about")
        self.say(f"Its page: {self._page(job)} (sign in with tenant {TENANT}, subject {self.reader.subject})")

    def _page(self, job: Job) -> str:
        return f"http://127.0.0.1:{self.reader.port}/jobs/{job.id}"

    def _refuse_a_stranger(self, job: Job) -> None:
        stranger = Visitor(self.reader.port, TENANT, "stranger")
        for part in ("", "/tasks", "/recovery", "/result"):
            status = stranger.get(f"/v1/jobs/{job.id}{part}").status
            expect(status == _NOT_FOUND, f"a stranger should have been answered 404 for the job{part}, not {status}")
        expect(job.id not in {other.id for other in stranger.jobs()}, "a stranger's list should not have the job")
        self.say("A stranger who knows its id is told 404, as if there were no such job.")

    def _lose_a_worker(self, job: Job) -> None:
        worker = self._start_worker(1)
        self._until("a few chapters are stored", lambda: self._with_chapters(job))
        self.processes.kill(worker)
        recovery = self.reader.recovery(job.id)
        expect(not recovery.job.final, "the job should go on")
        self.say(f"Worker 1 was killed in the middle. {self._so_far(recovery)}")

    def _start_worker(self, number: int) -> Running:
        worker = self.processes.worker()
        self.say(f"Worker {number} (outlast worker, pid {worker.pid}) started.")
        return worker

    def _lose_the_api(self, job: Job, api: Running) -> None:
        """The API dies, and is started again only when the second worker has taken over without it."""
        before = self.reader.recovery(job.id)
        self._start_worker(2)
        self.processes.kill(api)
        self.say("The API was killed too.")
        first = self._until("worker 2 has taken over", lambda: self._collected_by(job, _SECOND))[0]
        expect(first == before.stored + 1, f"worker 2 should have gone on with chapter {before.stored + 1}, not {first}")
        self.say(f"Worker 2 took over without it, when worker 1's lease had ended, and went on with chapter {first}.")
        api = self.processes.api(api.port)
        found = self.reader.recovery(job.id)
        expect(found.job.version >= before.job.version and found.stored >= before.stored, "the job should be as it was, or further")
        self.say(f"The API is back (pid {api.pid}), and the reader found the job: {found.job.state}. {self._so_far(found)}")

    def _so_far(self, recovery: Recovery) -> str:
        return f"{recovery.stored} of {len(chapter_plan())} chapters are stored."

    def _with_chapters(self, job: Job) -> Recovery | None:
        recovery = self.reader.recovery(job.id)
        _expect_no_question(recovery.job)
        return recovery if recovery.stored >= _SOME_CHAPTERS else None

    def _finish(self, job: Job) -> None:
        shown = self._follow(self.reader.job(job.id), "the book is usable", lambda j: j.usable_at is not None)
        self.say("The book can be opened." if shown.job.final else "The book can be opened. What it can do without goes on.")
        shown = self._follow(shown, "the job is completed", lambda j: j.final)
        expect(shown.job.state == "completed", f"the job should have completed; it is {shown.job.state}")
        again = self.reader.get(f"/v1/jobs/{job.id}", {"If-None-Match": shown.tag})
        expect(again.status == _NOT_MODIFIED, f"what has not changed should be answered 304, not {again.status}")
        self.say(f"The job is {shown.job.state}: {shown.job.outcome}.")

    def _follow(self, shown: Shown, what: str, reached: Callable[[Job], bool]) -> Shown:
        """The job when it is so; it is waited for by long polls."""
        end = time.monotonic() + _PATIENCE
        while not reached(shown.job):
            _expect_no_question(shown.job)
            expect(not shown.job.final, f"the job is {shown.job.state}, and never was as it should be: {what}")
            expect(time.monotonic() < end, f"waited {_PATIENCE:.0f} s until {what}")
            shown = self.reader.wait(shown)
        return shown

    def _look_back(self, job: Job) -> None:
        recovery = self.reader.recovery(job.id)
        print("\n          What happened, as GET /v1/jobs/{id}/recovery tells its owner:")
        for line in timeline(recovery):
            print(f"          {line}")
        print(flush=True)
        self._chapters(job)
        lost = [a for a in recovery.attempts if a.code == "worker_lost"]
        expect(len(lost) == 1, "exactly one attempt should have been lost with its worker")
        cover = [a.code for a in recovery.attempts if a.task == "Draw the cover"]
        expect(cover == ["printer_jam", None], "the cover should have failed once")
        usable, finished = recovery.job.usable_at, recovery.job.finished_at
        expect(usable is not None and finished is not None and usable <= finished, "the job should show when it became usable")
        self.say("The cover failed once, and that did not matter: the book was usable before, and stayed so.")

    def _chapters(self, job: Job) -> None:
        ran = ledger.collected(self.place, job.id)
        reused = [chapter for chapter, fences in ran.items() if fences == [_FIRST]]
        twice = [chapter for chapter, fences in ran.items() if len(fences) > 1]
        expect(len(reused) >= _SOME_CHAPTERS, "the second worker should have reused what the first one stored")
        expect(len(twice) <= 1, f"chapters ran twice although they were stored: {twice}")
        self.say(f"Worker 2 reused {len(reused)} chapters and collected {len(ran) - len(reused)}; no stored step ran twice.")
        if twice:
            self.say(f"Chapter {twice[0]} ran twice: the kill came before its output was stored, which is why a step may run again.")

    def _collected_by(self, job: Job, fence: int) -> list[int]:
        return [chapter for chapter, fences in ledger.collected(self.place, job.id).items() if fence in fences]

    def _open_the_book(self, job: Job) -> None:
        tasks = self.reader.tasks(job.id)
        expect([task.state for task in tasks] == ["completed"] * 4, "all four tasks should have completed")
        files = self.reader.result(job.id, Files)
        chapters = self.reader.result(job.id, list[Chapter], tasks[0])
        report = check_epub(Path(files.epub))
        expect(report.chapters == len(chapters), "the EPUB should have every chapter")
        self.say(f"The EPUB was checked: {report.chapters} chapters, {report.words} words, {report.links} links, nothing missing.")
        print(f"\n          {files.epub}\n          {files.html}\n          {Path(files.epub).parent / 'index.html'}\n", flush=True)

    def _keep(self, job: Job) -> None:
        """Waits for a signal; DemoError if the API or the worker does not."""
        print("The API and worker 2 go on until you press Ctrl-C. The job's page, where you sign in with")
        print(f"tenant {TENANT} and subject {self.reader.subject}:\n\n{self._page(job)}", flush=True)
        try:
            while True:
                expect(self.processes.all_run, "the API or worker 2 ended by itself")
                time.sleep(_LOOK)
        except Stopped:
            return

    def _until(self, what: str, look: Callable[[], T | None]) -> T:
        """What is found as soon as something is; DemoError if that takes too long."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            found = look()
            if found:
                return found
            time.sleep(_LOOK)
        raise DemoError(f"waited {_PATIENCE:.0f} s until {what}")


def _expect_no_question(job: Job) -> None:
    expect(job.attention is None, f"the job asks its owner: {job.attention.message if job.attention else ''}")
