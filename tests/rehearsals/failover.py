"""`make failover`: the database's primary is killed under load, its synchronous standby takes over, and nothing acknowledged is lost.

    python -m rehearsals.failover [--seconds 4] [--clients 6]

An API, two workers and a number of clients that send one request after the other, each under a key of its own, and repeat it until it
is answered 202. In the middle the primary is killed; a while later the standby is promoted. Nobody is told, restarted or configured
anew: the connection string names both servers. In the end each job that was acknowledged has to be there and completed, the store
sound, and the processes the ones that were started.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crash.stage import Process, Stage, until
from invariants import check
from outlast.store.open import migrate
from servers.standby import address, replicated

TARGET = "outlast.rehearsal:app"
LEASE = 2.0
WITHOUT = 1.0
"""Seconds without any database, as they pass until somebody, or something, decides to promote the standby."""
PATIENCE = 60.0


@dataclass
class Figures:
    """What came of it."""

    acknowledged: dict[str, float] = field(default_factory=dict)
    """When, by the id of the job."""
    refused: int = 0
    killed_at: float = 0.0
    promoted_at: float = 0.0
    finished: dict[str, float] = field(default_factory=dict)
    runs: int = 0

    def after(self, moment: float, times: list[float]) -> float:
        """Seconds from a moment to the first of the times after it."""
        return min(t for t in times if t > moment) - moment

    def lines(self) -> list[str]:
        """For people."""
        acks, ends = sorted(self.acknowledged.values()), sorted(self.finished.values())
        gaps = [later - earlier for earlier, later in itertools.pairwise(acks)]
        before = sum(t <= self.killed_at for t in acks)
        return [
            f"acknowledged              {len(acks)} jobs, {before} of them before the primary was killed",
            f"lost                      {len(self.acknowledged.keys() - self.finished.keys())}",
            f"answered 503 meanwhile    {self.refused} times; each was repeated under its key",
            f"without any primary       {self.promoted_at - self.killed_at:.1f} s",
            (
                f"first acknowledgement     {self.after(self.promoted_at, acks):.1f} s after it (longest pause {max(gaps):.1f} s, "
                f"median {statistics.median(gaps) * 1000:.0f} ms)"
            ),
            f"first task done           {self.after(self.promoted_at, ends):.1f} s after the promotion",
            f"tasks run                 {self.runs}, {self.runs - len(self.finished)} of them a second time, by a replacement",
        ]


class Client(threading.Thread):
    """Sends one request after the other until it is told to stop."""

    def __init__(self, number: int, port: int, figures: Figures, over: threading.Event) -> None:
        super().__init__(name=f"client-{number}")
        self._number, self._port = number, port
        self._figures, self._over = figures, over

    def run(self) -> None:
        """See `Client`."""
        count = 0
        while not self._over.is_set():
            count += 1
            self._send(f"{self._number}-{count}")

    def _send(self, key: str) -> None:
        """Until it is answered: what was sent may be there, and only the key can tell."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                status, body = self._post(key)
            except OSError:
                status, body = 0, {}
            if status == http.HTTPStatus.ACCEPTED:
                self._figures.acknowledged[body["id"]] = time.monotonic()
                return
            if status not in (0, http.HTTPStatus.SERVICE_UNAVAILABLE):
                raise AssertionError(f"answered {status}: {body}")
            self._figures.refused += 1
            time.sleep(0.1)
        raise AssertionError(f"{key} was never answered")

    def _post(self, key: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            body = json.dumps({"kind": "rehearsal", "input": {"tasks": [{"label": "A", "seconds": 0.02}]}})
            headers = {"Content-Type": "application/json", "Idempotency-Key": key, "Authorization": "Bearer dev:acme:ann"}
            connection.request("POST", "/v1/jobs", body, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        except (http.client.HTTPException, ValueError) as error:
            raise OSError from error
        finally:
            connection.close()


def rehearse(*, seconds: float, clients: int, say: Any = print) -> Figures:
    """The whole, with so many seconds of load before and after; AssertionError if anything acknowledged is lost."""
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="outlast-failover-") as folder, replicated("shop") as (primary, standby):
        url = address("shop", primary, standby)
        migrate(url)
        stage = Stage(url, Path(folder))
        try:
            api = stage.start(_serve(url), env={}, wait=False)
            until(lambda: "listening on" in api.said, "the API listening")
            port = int(api.said.rpartition(":")[2])
            workers = [stage.worker(lease=LEASE) for _ in range(2)]
            say("an API, two workers, a primary and its synchronous standby are up")
            over = threading.Event()
            threads = [Client(number, port, figures, over) for number in range(clients)]
            for thread in threads:
                thread.start()
            _pass(seconds)
            primary.kill()
            figures.killed_at = time.monotonic()
            say(f"the primary was killed with {len(figures.acknowledged)} jobs acknowledged")
            _pass(WITHOUT)
            standby.promote()
            figures.promoted_at = time.monotonic()
            say("the standby was promoted")
            until(lambda: any(t > figures.promoted_at for t in list(figures.acknowledged.values())), "an acknowledgement", timeout=PATIENCE)
            _pass(seconds)
            over.set()
            for thread in threads:
                thread.join(PATIENCE)
            _settle(stage, figures)
            _unchanged([api, *workers])
            check(standby.dsn("shop"))
        finally:
            stage.close()
    return figures


def _serve(url: str) -> list[str]:
    return [sys.executable, "-m", "outlast", "serve", TARGET, "--store", url, "--port", "0", "--dev-identities"]


def _pass(seconds: float) -> None:
    time.sleep(seconds)


def _settle(stage: Stage, figures: Figures) -> None:
    """Each acknowledged job is completed, and what was run is counted where the tasks wrote it."""

    def left() -> set[str]:
        lines = stage.lines(event="end")
        began = time.monotonic() - time.time()
        figures.finished = {line["job"]: line["time"] + began for line in reversed(lines)}
        return figures.acknowledged.keys() - figures.finished.keys()

    until(lambda: not left(), "all acknowledged jobs done", timeout=PATIENCE)
    for job_id in figures.acknowledged:
        until(lambda job_id=job_id: stage.job(job_id).state == "completed", f"{job_id} completed", timeout=PATIENCE)  # type: ignore[misc]
    figures.runs = len(stage.lines(event="start"))


def _unchanged(processes: list[Process]) -> None:
    for process in processes:
        assert process.alive, f"{process.name} ended:\n{process.log[-3000:]}"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="make failover", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="of load before the kill and after the promotion")
    parser.add_argument("--clients", type=int, default=6)
    given = parser.parse_args()
    figures = rehearse(seconds=given.seconds, clients=given.clients)
    for line in figures.lines():
        print(line)
    print("Nothing that was acknowledged is lost.")


if __name__ == "__main__":
    main()
