"""`outlast queues pause` and `resume`, and what `outlast queues` says of it."""

from __future__ import annotations

import json

import pytest

from cli.conftest import Shell, until

OLGA = ("--as", "acme:olga:operator")


def test_a_pause_is_shown_until_the_resume(either: Shell) -> None:
    either.submit()
    said = either.run("queues", "pause", "default", *OLGA, "--reason", "The printer is down.")
    assert said.stdout.startswith("default paused: 1 ready, 0 running, 0 waiting\nsince 2")
    assert said.stdout.endswith(" by olga: The printer is down.\n")
    assert said.stderr == ""
    again = either.run("queues", "pause", "default", "--as", "acme:bob:operator", "--reason", "Also.").stdout
    assert again.startswith("default was paused before, and stays so: 1 ready")
    assert again.endswith(" by olga: The printer is down.\n")
    header, line, pause = either.run("queues").stdout.splitlines()
    assert (header.split()[-1], line.split()[-1]) == ("PAUSED", "paused")
    assert pause.startswith("paused: default since 2")
    assert pause.endswith(" ago) by olga: The printer is down.")
    found = {check["name"]: check for check in json.loads(either.run("doctor", "--json").stdout)["checks"]}["paused queue default"]
    assert (found["level"], found["advice"].split(". ")[0]) == ("note", "The printer is down")
    (shown,) = json.loads(either.run("queues", "--json").stdout)["paused"]
    assert shown.pop("paused_at").endswith("Z")
    assert shown == {"queue": "default", "paused_by": "olga", "reason": "The printer is down."}
    assert either.run("queues", "resume", "default", "--reason", "It prints.").stdout == "default resumed: 1 ready, 0 running, 0 waiting\n"
    again = either.run("queues", "resume", "default", "--reason", "It prints.").stdout
    assert again == "default was not paused: 1 ready, 0 running, 0 waiting\n"
    assert json.loads(either.run("queues", "--json").stdout)["paused"] == []


def test_a_queue_that_nothing_is_in_is_paused_in_advance_and_that_is_said(either: Shell) -> None:
    said = either.run("queues", "pause", "imagse", "--reason", "Not yet.")
    assert said.stdout.startswith("imagse paused: 0 ready")
    assert said.stderr == "nothing is in a queue of this name now; what comes will wait\n"
    assert "paused: imagse since " in either.run("queues").stdout


def test_a_reason_without_an_end_does_not_run_into_what_doctor_says(either: Shell) -> None:
    either.run("queues", "pause", "default", "--reason", "new printer")
    found = {check["name"]: check for check in json.loads(either.run("doctor", "--json").stdout)["checks"]}["paused queue default"]
    assert found["advice"].startswith("new printer. Nothing of it is claimed")


def test_as_json(either: Shell) -> None:
    said = json.loads(either.run("queues", "pause", "default", *OLGA, "--reason", "x", "--json").stdout)
    assert said.pop("paused_at").endswith("Z")
    nothing = {"ready": 0, "running": 0, "waiting": 0, "oldest_seconds": None}
    assert said == {"queue": "default", "changed": True, **nothing, "paused_by": "olga", "reason": "x"}
    said = json.loads(either.run("queues", "resume", "default", *OLGA, "--reason", "x", "--json").stdout)
    assert said == {"queue": "default", "changed": True, **nothing, "paused_at": None, "paused_by": None, "reason": None}


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("pause", "default", "--as", "acme:ann", "--reason", "x"), 7, "Only operators"),
        (("resume", "default", "--as", "acme:ann", "--reason", "x"), 7, "Only operators"),
        (("pause", "default", *OLGA), 2, "--reason"),
        (("pause", "default", *OLGA, "--reason", "  "), 2, "reason"),
        (("pause", "default", *OLGA, "--reason", "two\nlines"), 2, "reason"),
        (("pause", "a b", *OLGA, "--reason", "x"), 2, "letters, digits and _ . - only"),
        (("pause", *OLGA, "--reason", "x"), 2, "NAME"),
        (("--store", "sqlite:///other.db", "pause", "default", "--reason", "x"), 2, "Write the options behind the command"),
        (("--json", "pause", "default", "--reason", "x"), 2, "Write the options behind the command"),
    ],
)
def test_what_is_refused_changes_nothing(shell: Shell, args: tuple[str, ...], code: int, words: str) -> None:
    assert words in shell.run("queues", *args, code=code).stderr
    assert shell.run("queues").stdout == "nothing waits and nothing runs\n"


def tasks(shell: Shell, job: str) -> dict[str, str]:
    shown = json.loads(shell.run("jobs", "show", job, "--json").stdout)
    return {task["label"]: task["state"] for task in shown["tasks"]}


def test_workers_leave_a_paused_queue_alone_also_after_a_restart(either: Shell) -> None:
    either.run("queues", "pause", "mail", "--reason", "The mail server is down.")
    waiting = [either.submit()]
    for _ in range(2):
        worker = either.worker().ready()
        waiting.append(either.submit())
        until(lambda: all(tasks(either, job)["Pack"] == "completed" for job in waiting), "the other queue is worked on")
        assert [tasks(either, job)["Mail"] for job in waiting] == ["queued"] * len(waiting)
        worker.signal()
        assert worker.ended() == 0
    worker = either.worker().ready()
    either.run("queues", "resume", "mail", "--reason", "It is back.")
    until(lambda: not either.entries(), "everything is done")
    assert [tasks(either, job)["Mail"] for job in waiting] == ["completed"] * len(waiting)
    worker.signal()
    assert worker.ended() == 0


def test_a_quota_that_is_used_up_is_said_in_words_with_code_4(either: Shell) -> None:
    submit = ("jobs", "submit", "shop:jobs", "rare", "--input", "-", "--as", "acme:ann")
    first = either.submit(kind="rare")
    said = either.run(*submit, stdin="{}", code=4)
    assert "error: One owner may have 1 unfinished job of the kind 'rare' at a time. Nothing was written; try again when" in said.stderr
    assert said.stderr.endswith("(quota_exceeded)\n")
    either.run("jobs", "cancel", first)
    either.run("jobs", "rerun", first, "--target", "shop:jobs")
    assert "(quota_exceeded)" in either.run("jobs", "rerun", first, "--target", "shop:jobs", code=4).stderr
