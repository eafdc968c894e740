"""`outlast worker` and `outlast dev` as processes: the ready line, signals, and an end that comes in time."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from cli.conftest import Shell, until
from servers.postgres import PostgresServer

pytestmark = pytest.mark.slow

AFTER_GRACE = 8.0


def tasks(shell: Shell, job_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shell.run("jobs", "show", job_id, "--json").stdout)["tasks"]
    return found


def started(shell: Shell, count: int = 1) -> None:
    until(lambda: sum(line.startswith("start") for line in shell.lines()) >= count, "a task has started")


def test_a_worker_says_ready_works_and_stops_with_0(either: Shell) -> None:
    job_id = either.submit()
    worker = either.worker().ready()
    until(lambda: not either.entries(), "the job is done")
    worker.signal()
    assert worker.ended(within=5) == 0
    (line,) = worker.said.splitlines()
    assert line.split()[0] == "worker"
    assert line.endswith(" ready")
    assert [t["state"] for t in tasks(either, job_id)] == ["completed", "completed"]


def test_what_ends_in_the_grace_period_is_stored_and_what_does_not_is_handed_back_unused(shell: Shell) -> None:
    short, long = shell.submit('{"seconds": 0.5}', kind="pack"), shell.submit('{"seconds": 60}', kind="pack")
    worker = shell.worker("--grace", "2").ready()
    started(shell, 2)
    worker.signal()
    until(lambda: "stops; 2 attempts still run" in worker.log or "stops; 1 attempts still run" in worker.log, "it drains")
    late = shell.submit(kind="pack")
    assert worker.ended(within=2 + AFTER_GRACE) == 0
    assert tasks(shell, short)[0]["state"] == "completed"
    (handed_back,) = tasks(shell, long)
    assert (handed_back["state"], handed_back["attempt"]) == ("queued", 0)
    assert tasks(shell, late)[0]["fence"] == 0


def test_a_second_signal_hands_back_now(shell: Shell) -> None:
    job_id = shell.submit('{"seconds": 60}', kind="pack")
    worker = shell.worker("--grace", "60").ready()
    started(shell)
    worker.signal()
    until(lambda: "stops; 1 attempts still run" in worker.log, "it drains")
    worker.signal(signal.SIGINT)
    assert worker.ended(within=AFTER_GRACE) == 0
    assert tasks(shell, job_id)[0]["state"] == "queued"


@pytest.mark.parametrize("body", ['{"how": "block", "seconds": 60}', '{"how": "deaf", "seconds": 60}'])
def test_a_blocked_loop_or_a_deaf_thread_cannot_hold_the_end_up(shell: Shell, body: str) -> None:
    shell.submit(body, kind="hang" if "deaf" in body else "pack")
    worker = shell.worker("--grace", "0.5").ready()
    started(shell)
    worker.signal()
    assert worker.ended(within=0.5 + AFTER_GRACE) == 0


def test_a_third_signal_ends_the_process(shell: Shell) -> None:
    shell.submit('{"how": "block", "seconds": 60}', kind="pack")
    worker = shell.worker("--grace", "60").ready()
    started(shell)

    def insist() -> bool:
        worker.signal(signal.SIGINT)  # two at the same instant are one
        return worker.process.poll() is not None

    until(insist, "it ends", timeout=AFTER_GRACE)
    assert worker.ended() == 0


def test_a_signal_while_the_application_is_imported_stops_it(shell: Shell) -> None:
    (shell.folder / "slow.py").write_text(
        "import time\nfrom pathlib import Path\nPath('importing').touch()\ntime.sleep(60)\nfrom shop import jobs\n"
    )
    worker = shell.start("worker", "slow:jobs")
    until((shell.folder / "importing").exists, "it is being imported")
    worker.signal()
    assert worker.ended(within=2) == 0
    assert worker.said == ""


def test_a_worker_waits_for_a_store_that_is_away_says_so_and_stops_at_once(bare: Shell) -> None:
    worker = bare.start("worker", "shop:jobs", "--store", "postgresql://u:hunter2@127.0.0.1:1/x")
    until(lambda: "WARNING" in worker.log, "it says what it waits for")
    assert worker.said == ""
    worker.signal()
    assert worker.ended(within=2) == 0
    assert "hunter2" not in worker.log


def test_a_store_that_went_away_does_not_hold_the_end_up(folder: Any, postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("cli_goes_away")
    shell = Shell(folder, url)
    shell.run("migrate")
    shell.submit('{"seconds": 60}', kind="pack")
    worker = shell.worker("--grace", "1").ready()
    try:
        started(shell)
        postgres_server.stop("immediate")
        worker.signal()
        assert worker.ended(within=1 + AFTER_GRACE) == 0
    finally:
        shell.end()
        postgres_server.start()
        postgres_server.drop_database("cli_goes_away")


def test_a_worker_refuses_a_store_that_is_not_migrated_with_6(bare: Shell) -> None:
    worker = bare.worker()
    assert worker.ended() == 6
    assert "Run `outlast migrate --store URL`. (not_migrated)" in worker.log
    assert worker.said == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--lease", "0.01"), "The lease (0.01 s) must be finite, and 0.1 s is the least that can be renewed in time."),
        (("--lease", "nan"), "'nan' is not a number of seconds"),
        (("--grace", "-1"), "'-1' is not a number of seconds"),
        (("--queue", "mail=0"), "'mail=0': write NAME=SLOTS with 1 to 10000 slots"),
        (("--queue", "mail=many"), "write NAME=SLOTS"),
        (("--queue", "=3"), "The queue name is empty"),
        (("--queue", "mail=1", "--queue", "mail=2"), "the queue 'mail' is named twice"),
        (("--zombies", "0"), "0 is not in the range x>=1"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_2(shell: Shell, options: tuple[str, ...], words: str) -> None:
    assert words in shell.run("worker", "shop:jobs", *options, code=2).stderr


def test_a_worker_serves_the_queues_that_it_is_told(shell: Shell) -> None:
    job_id = shell.submit()
    worker = shell.worker("--queue", "default=1").ready()
    until(lambda: tasks(shell, job_id)[0]["state"] == "completed", "the first task is done")
    worker.signal()
    assert worker.ended() == 0
    assert tasks(shell, job_id)[1]["state"] == "queued"


def test_code_that_outlives_its_lease_ends_the_worker_with_75(shell: Shell) -> None:
    shell.submit('{"seconds": 60}', kind="hang")
    worker = shell.worker("--zombies", "1").ready()
    assert worker.ended() == 75
    assert "Start the worker anew" in worker.log


def test_dev_migrates_and_goes_on_after_a_kill_in_the_middle_of_a_job(bare: Shell) -> None:
    (bare.folder / "quick.py").write_text("from outlast import Settings\nfrom shop import jobs\njobs.settings = Settings(lease=1.0)\n")
    first = bare.start("dev", "quick:jobs", "--port", "0").ready()
    assert "applied 0001_engine" in first.log
    job_id = bare.submit('{"seconds": 1.0}')
    started(bare)
    first.process.kill()
    first.process.wait()
    second = bare.start("dev", "quick:jobs", "--port", "0").ready()
    until(lambda: not bare.entries(), "the job is done")
    second.signal(signal.SIGINT)
    assert second.ended(within=5) == 0
    assert [t["state"] for t in tasks(bare, job_id)] == ["completed", "completed"]
    assert len(bare.lines()) == 3


def test_dev_uses_the_store_of_the_code_when_none_is_named(bare: Shell) -> None:
    dev = bare.start("dev", "shop:jobs", "--no-worker", "--port", "0", OUTLAST_STORE="")
    until(lambda: "listening on" in dev.said, "it serves")
    dev.signal()
    assert dev.ended() == 0
    assert (bare.folder / "shop.db").exists()


def test_nothing_that_the_application_logs_steers_the_terminal(shell: Shell) -> None:
    (shell.folder / "chatty.py").write_text(
        "import logging, threading\nfrom shop import jobs\n"
        "threading.Timer(1.0, lambda: logging.getLogger('x').warning('evil\\x1b[2J\\nsecond')).start()\n"
    )
    worker = shell.start("worker", "chatty:jobs").ready()
    until(lambda: "second" in worker.log, "it logs")
    worker.signal()
    worker.ended()
    assert "\x1b" not in worker.log
    assert any("evil" in line and line.endswith("second") for line in worker.log.splitlines())
