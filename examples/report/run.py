"""Runs the example: `python -m examples.report.run [--store URL]`. It counts in the provider's list; exit code 1 if one is wrong."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from outlast import OutlastError, Principal, TargetRef
from outlast.store.open import migrate

T = TypeVar("T")
READER = Principal("example", "reader")
LEASE = 1.5
_PATIENCE = 90.0
_ATTACHED = 2
_TROUBLES = 6
_FAILURES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"mode": "timeout_after", "seconds": 3}, "sent and did not answer in time"),
    ({"mode": "drop_after"}, "sent and dropped the connection"),
    ({"mode": "status_after", "status": 503}, "sent and answered with an error"),
    ({"mode": "status", "status": 422}, "refused, so that the owner had to say: try again"),
    ({"mode": "status", "status": 429, "retry_after": 1}, "was busy"),
)
"""How the provider fails, one way for each mail in turn, at its first call; and what it then did."""


class Wrong(Exception):
    """Something is not as it was promised."""


def main() -> int:
    """Runs it; 0 if every count is right."""
    parser = argparse.ArgumentParser(description="Reports with charts, mailed through a provider that fails, by workers that die.")
    parser.add_argument("--store", help="sqlite:///path or postgresql://...; default: a file in a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outlast-report-") as folder, ExitStack() as stack:
        os.environ["OUTLAST_STORE"] = options.store or f"sqlite:///{folder}/report.db"
        os.environ["REPORT_FOLDER"] = folder
        try:
            Example(Path(folder), stack).run()
        except Wrong as error:
            print(f"\nThe example failed: {error}", file=sys.stderr)
            return 1
        except OutlastError as error:
            print(f"error: {error.message} ({error.code})", file=sys.stderr)
            return 2
    return 0


class Example:
    """One run: provider, workers, people, and what goes wrong."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._began = time.monotonic()
        self._workers: list[subprocess.Popen[str]] = []
        self._chance = random.Random(3)

    def run(self) -> None:
        """Everything in order."""
        url = os.environ["OUTLAST_STORE"]
        migrate(url)
        os.environ["REPORT_MAIL"] = self._start("-m", "outlast.rehearsal.provider", "--port", "0").partition("listening on ")[2].strip()
        from examples.report import app, countries, mailer  # noqa: PLC0415 - they read the environment

        self._stack.callback(app.jobs.sync.close)
        database(url, app.TABLES)
        regions = countries.regions()
        run = uuid.uuid4().hex[:8]  # the store may have been used before
        ids: dict[str, str] = {}
        for place, region in enumerate(regions * 2):
            ref = f"{region}-{place}-{run}"
            database(url, "insert into document values (?, 'to be written', 1)", ref)
            wanted = app.Report(region, to=f"reader{place}.{run}@example.org", pace=0.15)
            key = f"report-{ref}"
            mailer.fail(**_FAILURES[place % len(_FAILURES)][0], match=wanted.to)
            ids[ref] = app.jobs.sync.submit(app.report, wanted, owner=READER, key=key, target=TargetRef(ref, "1")).id
        self.say(f"{len(ids)} reports about {len(regions)} regions were accepted, from the data files of a package.")

        edited = sorted(ids)[:3]
        for ref in edited:
            database(url, "update document set text = 'written by a person', version = version + 1 where ref = ?", ref)
        self.say(f"Somebody edits {len(edited)} of the documents before their reports are ready.")

        self._trouble()
        get = lambda ref: app.jobs.sync.get(ids[ref], principal=READER)  # noqa: E731
        retried = self._until_all_done(app.jobs.sync, ids)
        self.say(f"All reports are completed; {retried} waited for their owner, who said: try again.")

        self._met(mailer.failures())
        check(retried > 0, "somebody should have had to say: try again")
        self._count(mailer.sent(), ids)
        for ref in ids:
            text, version = database(url, "select text, version from document where ref = ?", ref)[0]
            if ref in edited:
                check(
                    get(ref).attach == "parked" and (text, version) == ("written by a person", 2), f"{ref} should be as the person left it"
                )
            else:
                check(
                    get(ref).attach == "attached" and version == _ATTACHED and text.startswith("# "), f"{ref} should have the report's text"
                )
        attached = len(ids) - len(edited)
        self.say(f"{attached} documents have their report; the {len(edited)} that were edited are untouched, and their reports kept.")

        ref = edited[0]
        no = next(task.no for task in app.jobs.sync.tasks(ids[ref], principal=READER) if task.parked)
        app.jobs.sync.attach(ids[ref], no, principal=READER, target_version="2")
        check(database(url, "select version from document where ref = ?", ref) == [(3,)], "the kept report should have been applied")
        self.say("Their owner looked at one of them, and let the kept report replace the version that they named.")
        charts = len(list(self._folder.glob("*.png")))
        check(charts == 3 * len(ids), f"there should be {3 * len(ids)} charts, and are {charts}")
        self.say(f"{charts} charts were drawn. Everything is as it should be.")

    def say(self, text: str) -> None:
        """One line with the time since the start."""
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", flush=True)

    def _start(self, *command: str) -> str:
        """A process that ends with the example; its first line."""
        log = self._stack.enter_context((self._folder / "log").open("a"))
        process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=log, text=True)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        self._last = process
        line = process.stdout.readline() if process.stdout is not None else ""
        check(bool(line), f"{command[-1]} did not start; see {self._folder / 'log'}")
        return line

    def _worker(self) -> subprocess.Popen[str]:
        self._start("-m", "outlast", "worker", "examples.report.app:jobs", "--lease", str(LEASE), "--grace", "1")
        return self._last

    def _trouble(self) -> None:
        """Workers are killed and frozen while the reports are made and the provider fails."""
        self._workers = [self._worker(), self._worker()]
        for number in range(_TROUBLES):
            time.sleep(self._chance.uniform(0.3, 0.8))
            victim = self._workers.pop(0)
            self._workers.append(self._worker())  # before: on SQLite a frozen process may hold the one lock that there is
            if number % 3:
                victim.kill()
                continue
            victim.send_signal(signal.SIGSTOP)
            time.sleep(LEASE + 0.5)  # beyond its lease: others have taken over
            victim.send_signal(signal.SIGCONT)
        self.say(f"{_TROUBLES} times a worker was killed or frozen beyond its lease.")

    def _until_all_done(self, jobs: Any, ids: dict[str, str]) -> int:  # noqa: ANN401 - the blocking client
        """Waits for all; what needs its owner is tried again, as they would."""
        end = time.monotonic() + _PATIENCE
        retried: set[str] = set()
        while True:
            views = [jobs.get(job_id, principal=READER) for job_id in ids.values()]
            for view in views:
                if view.attention is not None:
                    retried.add(view.id)
                    jobs.act(view.id, view.attention.id, action="retry", principal=READER)
            if all(view.state == "completed" for view in views):
                return len(retried)
            check(time.monotonic() < end, f"not completed in time: {Counter(view.state for view in views)}")
            time.sleep(0.2)

    def _met(self, failures: list[dict[str, Any]]) -> None:
        """Each way to fail was met, as the provider itself counted."""
        for wanted, words in _FAILURES:
            met = sum(failure["met"] for failure in failures if wanted.items() <= failure.items())
            check(met > 0, f"the provider should have failed in each way; it never {words}")
            self.say(f"{met} times the provider {words}.")

    def _count(self, sent: list[dict[str, Any]], ids: dict[str, str]) -> None:
        """One mail for each report, counted at the provider."""
        sent = [mail for mail in sent if mail["body"]["job"] in ids.values()]
        mails = Counter(mail["body"]["job"] for mail in sent)
        check(mails == dict.fromkeys(ids.values(), 1), f"each report should have been mailed once: {mails}")
        calls = sum(mail.get("calls", 1) for mail in sent)
        self.say(f"The provider has {len(sent)} mails, one for each report, of {calls} calls with a key.")


def check(right: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raises Wrong unless it is right."""
    if not right:
        raise Wrong(otherwise)


def database(url: str, sql: str, *params: object) -> list[tuple[Any, ...]]:
    """The host's own statements, on the store's database."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=20)
        rows = connection.execute(sql, params).fetchall()
        connection.commit()
        connection.close()
        return rows
    import psycopg  # noqa: PLC0415 - only where the store is one

    with psycopg.connect(url) as pg:
        cursor = pg.execute(sql.replace("?", "%s"), params)
        return cursor.fetchall() if cursor.description else []


if __name__ == "__main__":
    sys.exit(main())
