"""Runs the example: `python -m examples.airports.run [--store URL]`. It counts rows against the file; exit code 1 if one is wrong."""

from __future__ import annotations

import argparse
import html
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from examples.airports import count, source, tables
from examples.airports.count import Expected, Wrong, check
from examples.airports.owner import ACCEPTED, NOT_FOUND, OK, UNPROCESSABLE, Owner
from examples.airports.rules import Rules

from outlast import Principal
from outlast.store.open import migrate

LEASE: Final = 3.0
PACE: Final = 0.1
WORKERS: Final = 3
SLOTS: Final = 3
"""Of each worker: together enough for all imports at once."""
KILLS: Final = 5
_APPLICATION: Final = "examples.airports.app:jobs"
_PATIENCE: Final = 120.0
_BETWEEN_LOOKS: Final = 0.2
_BETWEEN_KILLS: Final = 4
"""Steps that are stored between two kills, at least."""


@dataclass(frozen=True)
class Tenant:
    """Who imports: by which rules, and how many rows each import may reject before its owner is asked."""

    name: str
    rules: Rules
    allowed: int


ATLAS = Tenant("atlas", Rules(), 100)
SKYFARE = Tenant("skyfare", Rules(iata_required=True), 1_000)
CITYGUIDE = Tenant("cityguide", Rules(city_required=True), 1_000)


@dataclass
class Import:
    """One import, and what its owner does: the limits that they answer with, after which they give up; or stops it soon."""

    tenant: Tenant
    answers: list[int]
    stop_soon: bool = False
    id: str = ""
    state: str = "queued"
    seen: str = ""
    stopped_with: int | None = None
    """How many rows it had written when its owner was told that it is stopped."""


class Example:
    """One run: tenants and their owners, the API, workers, and what goes wrong."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._url = os.environ["OUTLAST_STORE"]
        self._began = time.monotonic()
        self._chance = random.Random(5)
        self._workers: list[subprocess.Popen[str]] = []
        self._killed = 0
        self._stored = 0
        self._owners: dict[str, Owner] = {}
        self.imports = [
            *(Import(ATLAS, []) for _ in range(3)),
            Import(SKYFARE, [9_000, 25_000]),
            *(Import(SKYFARE, [25_000]) for _ in range(2)),
            Import(CITYGUIDE, []),
            Import(CITYGUIDE, [], stop_soon=True),
        ]

    def run(self) -> None:
        """Everything in order."""
        migrate(self._url)
        tables.make(self._url)
        listening, _ = self._start("serve", _APPLICATION, "--dev-identities", "--port", "0")
        port = int(listening.rpartition(":")[2])
        self._owners = {one.tenant.name: Owner(port, one.tenant.name) for one in self.imports}
        self._workers = [self._worker() for _ in range(WORKERS)]
        self._submit()
        self._until_all_ended()
        self._count()
        self.say("Everything is as it should be.")

    def say(self, text: str) -> None:
        """One line with the time since the start."""
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", flush=True)

    def _submit(self) -> None:
        from examples.airports import app  # noqa: PLC0415 - it reads the environment

        self._stack.callback(app.jobs.sync.close)
        file, rows = source.read()
        for place, one in enumerate(self.imports):
            wanted = app.Import(file, one.tenant.rules, one.tenant.allowed, pace=PACE)
            who = Principal(one.tenant.name, "owner", roles=["importer"])
            key = f"airports-{place}-{os.getpid()}-{self._began}"
            one.id = app.jobs.sync.submit(app.airports, wanted, owner=who, key=key).id
        self.say(f"{len(self.imports)} imports of a file of {len(rows):,} airports were accepted, for {len(self._owners)} tenants.")

    def _start(self, *command: str) -> tuple[str, subprocess.Popen[str]]:
        """The first line of a process that ends with the example, and the process."""
        log = self._folder / "log"
        stderr = self._stack.enter_context(log.open("a"))
        process = subprocess.Popen([sys.executable, "-m", "outlast", *command], stdout=subprocess.PIPE, stderr=stderr, text=True)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        line = process.stdout.readline() if process.stdout is not None else ""
        check(bool(line), f"outlast {command[0]} did not start:\n{log.read_text()}")
        return line, process

    def _worker(self) -> subprocess.Popen[str]:
        return self._start("worker", _APPLICATION, "--queue", f"default={SLOTS}", "--lease", str(LEASE), "--grace", "1")[1]

    def _until_all_ended(self) -> None:
        """Owners look, answer and stop, and workers are killed, until all imports have ended."""
        end = time.monotonic() + _PATIENCE
        while open_ones := [one for one in self.imports if one.state not in ("completed", "cancelled")]:
            for tenant in {one.tenant.name for one in open_ones}:
                self._look(self._owners[tenant], [one for one in open_ones if one.tenant.name == tenant])
            self._kill_one()
            check(time.monotonic() < end, f"not ended in time: {Counter(one.state for one in self.imports)}")
            time.sleep(_BETWEEN_LOOKS)
        lost = sum(self._owners[one.tenant.name].lost(one.id) for one in self.imports)
        check(self._killed == KILLS and lost > 0, f"work should have been killed: {self._killed} times it was, {lost} attempts were lost")
        said = f"{self._killed} times a worker was killed, once all of them; {lost} attempts were lost with them"
        self.say(f"{said}, and others went on from the last stored step.")

    def _kill_one(self) -> None:
        """Kills a worker, and starts another, at a moment that nobody chose, once work has gone on since the last one; once all of them."""
        stored = count.steps(self._url, [one.id for one in self.imports])
        if self._killed == KILLS or stored < self._stored + _BETWEEN_KILLS:
            return
        time.sleep(self._chance.uniform(0, 0.3))
        self._chance.shuffle(self._workers)  # any of them may be idle, but not all
        victims = self._workers if self._killed == KILLS // 2 else self._workers[:1]
        for victim in victims:
            victim.kill()
            victim.wait()
        self._workers = [*self._workers[len(victims) :], *(self._worker() for _ in victims)]
        self._killed += 1
        self._stored = stored

    def _look(self, owner: Owner, mine: list[Import]) -> None:
        """One look of an owner at the API, and what they decide then."""
        jobs = owner.jobs()
        for one in mine:
            job = jobs[one.id]
            one.state = job["state"]
            if one.state == "running" and not one.seen:
                one.seen = owner.progress(one.id) or ""
            if one.stop_soon and one.state != "cancelled" and count.landed(self._url, one.id):
                check(owner.cancel(job) == OK, f"{one.id} should have been stopped")
                self._stopped(one, f"stops an import that is {one.state.replace('_', ' ')}")
            elif job["attention"] is not None:
                self._decide(one, owner, job)

    def _decide(self, one: Import, owner: Owner, job: dict[str, Any]) -> None:
        """The owner's answer to a question, of the page's words; or the end of their patience."""
        question = job["attention"]["message"]
        check(one.tenant is not ATLAS, f"atlas should not have been asked: {question}")
        check(question in html.unescape(owner.page(one.id)), f"the page of {one.id} should show the question: {question}")
        stranger = self._owners[ATLAS.name]
        check((stranger.status(one.id), stranger.decide(job, "dismiss")) == (NOT_FOUND, NOT_FOUND), f"{one.id} is for its owner alone")
        if not one.answers:
            check(owner.decide(job, "dismiss") == ACCEPTED, f"{one.id} should have been given up")
            self._stopped(one, f"is asked: {question} It gives the import up")
            return
        limit = one.answers.pop(0)
        check(owner.decide(job, "answer", input={"limit": "some"}) == UNPROCESSABLE, "an answer that is no number should have been refused")
        check(owner.decide(job, "answer", input={"limit": limit}) == ACCEPTED, f"{limit} should have been taken as an answer to {question}")
        self.say(f"{one.tenant.name} is asked: {question} It answers {limit:,}.")

    def _stopped(self, one: Import, what: str) -> None:
        one.stopped_with = count.landed(self._url, one.id)
        self.say(f"{one.tenant.name} {what}.")

    def _count(self) -> None:
        """The rows of all imports, one by one, against the file."""
        wanted = {tenant.name: count.expected(tenant.rules) for tenant in (ATLAS, SKYFARE, CITYGUIDE)}
        for tenant in (ATLAS, SKYFARE, CITYGUIDE):
            self._count_tenant(tenant, wanted[tenant.name])
        self._count_at_once()
        seen = [one.seen for one in self.imports if one.seen]
        check(bool(seen), "an owner should have seen progress")
        self.say(f'What owners saw of imports while they ran: "{seen[0]}", for example.')

    def _count_at_once(self) -> None:
        """How many imports were at work at the same moment, by the log that their steps wrote."""
        from examples.airports.app import AT_ONCE  # noqa: PLC0415 - it reads the environment

        tenants, together = count.at_once(self._url, [one.id for one in self.imports])
        for tenant, most in tenants.items():
            check(most <= AT_ONCE, f"{most} imports of {tenant} were at work at the same moment, and {AT_ONCE} may be")
        check(together > AT_ONCE, f"the limit of a tenant should hold up no other; {together} imports were at work at the same moment")
        said = ", ".join(f"{most} of {tenant}" for tenant, most in tenants.items())
        self.say(f"At the same moment there were at work at most {said}; the limit is {AT_ONCE} for a tenant. Of all together: {together}.")

    def _count_tenant(self, tenant: Tenant, wanted: Expected) -> None:
        mine = [one for one in self.imports if one.tenant is tenant]
        for one in mine:
            totals = count.whole(self._url, one.id, wanted, published=one.state == "completed")
            stopped = one.stopped_with
            check((one.state == "completed") == (stopped is None), f"{one.id} should not be {one.state}")
            check(stopped in (None, totals.rows), f"{one.id} has {totals.rows:,} rows, and had {stopped} when it was stopped")
        done = [one for one in mine if one.state == "completed"]
        if done:
            check(not any(one.answers for one in done), f"{tenant.name} should have been asked more")
            totals = wanted.totals(len(wanted.lines))
            said = f"{totals.imported:,} rows imported, {totals.rejected:,} rejected ({wanted.by_reason()})"
            self.say(f"{tenant.name}: {len(done)} imports are published, each with {said}: the file, each row once, by content.")
        for one in mine:
            if one.stopped_with is not None:
                self.say(f"{tenant.name}: an import that was stopped has the file's first {one.stopped_with:,} rows, and none came after.")


def main() -> int:
    """Runs it; 0 if every count is right."""
    parser = argparse.ArgumentParser(description="Imports of a real CSV file, by workers that are killed, for owners who are asked.")
    parser.add_argument("--store", help="sqlite:///path or postgresql://...; default: a file in a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outlast-airports-") as folder, ExitStack() as stack:
        os.environ["OUTLAST_STORE"] = options.store or f"sqlite:///{folder}/airports.db"
        try:
            Example(Path(folder), stack).run()
        except Wrong as error:
            print(f"\nThe example failed: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
