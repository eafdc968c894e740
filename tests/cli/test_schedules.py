"""`outlast schedules`: made, shown, paused and removed from a shell."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from cli.conftest import Shell, until

ADD = ("schedules", "add", "shop:jobs", "order", "--name", "nightly", "--input", "-", "--as", "acme:ann")


def listed(shell: Shell, *more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shell.run("schedules", "list", "--json", *more).stdout)["items"]
    return found


def test_a_schedule_from_a_shell(either: Shell) -> None:
    assert "no schedules" in either.run("schedules", "list").stderr
    made = json.loads(either.run(*ADD, "--cron", "0 2 * * *", "--zone", "Europe/Berlin", "--catch-up", "3", "--json", stdin="{}").stdout)
    assert (made["name"], made["kind"], made["when"], made["catch_up"]) == ("nightly", "order", "0 2 * * * (Europe/Berlin)", 3)
    assert made["next_at"].endswith("Z")
    assert listed(either) == [{"tenant": "acme", **made}]
    header, line = either.run("schedules", "list").stdout.splitlines()
    assert header.split() == ["TENANT", "OWNER", "NAME", "KIND", "WHEN", "NEXT"]
    assert line.split()[:4] == ["acme", "ann", "nightly", "order"]

    assert "paused by ann" in either.run("schedules", "pause", "nightly", "--as", "acme:ann").stdout
    assert listed(either)[0]["paused"] is True
    resumed = json.loads(either.run("schedules", "resume", "nightly", "--as", "acme:ann", "--json").stdout)
    assert resumed == made
    assert either.run("schedules", "remove", "nightly", "--as", "acme:ann").stdout == "nightly removed\n"
    assert listed(either) == []


def test_whose_schedules_are_shown(shell: Shell) -> None:
    for who in ("acme:ann", "acme:bob", "other:ann"):
        shell.run(*ADD[:-1], who, "--every", "60", stdin="{}")

    def owners(*more: str) -> list[str]:
        return [f"{item['tenant']}:{item['owner']}" for item in listed(shell, *more)]

    assert owners() == ["acme:ann", "acme:bob", "other:ann"]
    assert owners("--as", "acme:ann") == ["acme:ann"]
    assert owners("--as", "acme:olga:operator") == ["acme:ann", "acme:bob"]
    assert owners("--as", "acme:eve") == []
    assert "acme" not in shell.run("schedules", "list", "--as", "acme:ann").stdout
    for deed in ("pause", "resume", "remove"):
        assert "no such schedule" in shell.run("schedules", deed, "nightly", "--as", "acme:eve", code=3).stderr
        assert "only its owner" in shell.run("schedules", deed, "nightly", "--as", "acme:olga:operator", code=7).stderr
    assert len(owners()) == 3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "--cron EXPRESSION"),
        (("--every", "60", "--zone", "Europe/Berlin"), "--zone is of --cron"),
        (("--cron", "0 2 * * *", "--every", "60"), "Give one of --cron and --every"),
        (("--cron", "0 2 * * SAT-SUN"), "SAT-SUN is 6-7"),
        (("--every", "0"), "Every takes"),
        (("--every", "soon"), "not a number of seconds"),
        (("--cron", "0 0 30 2 *"), "never comes due"),
        (("--cron", "0 2 * * *", "--zone", "Mars/Olympus"), "no time zone of that name"),
        (("--every", "60", "--catch-up", "all"), "no policy"),
        (("--every", "60", "--catch-up", "0"), "catch_up is"),
        (("--every", "60", "--name", "a\nb"), "line breaks"),
    ],
)
def test_what_cannot_be_is_refused_in_words(shell: Shell, more: tuple[str, ...], words: str) -> None:
    assert words in shell.run(*ADD, *more, stdin="{}", code=2).stderr
    assert listed(shell) == []


def test_an_input_or_kind_that_does_not_fit_is_refused(shell: Shell) -> None:
    assert "/how" in shell.run(*ADD, "--every", "60", stdin='{"how": 3}', code=2).stderr
    other = [word if word != "order" else "ordre" for word in ADD]
    assert "registers no kind 'ordre'" in shell.run(*other, "--every", "60", stdin="{}", code=2).stderr


def test_doctor_names_what_nobody_fires(shell: Shell) -> None:
    def overdue(code: int = 0) -> dict[str, Any] | None:
        checks = json.loads(shell.run("doctor", "--json", code=code).stdout)["checks"]
        return next((c for c in checks if c["name"] == "overdue schedules"), None)

    assert overdue() is None
    shell.run(*ADD, "--every", "60", stdin="{}")
    assert (overdue() or {})["value"] == 0
    with closing(sqlite3.connect(shell.folder / "shop.db")) as connection, connection:
        connection.execute("update outlast_schedule set next_at = next_at - 3600000")

    found = overdue(code=1)
    assert found is not None
    assert (found["value"], found["level"]) == (1, "action")
    assert "nightly (order@1)" in found["advice"]
    shell.run("schedules", "pause", "nightly", "--as", "acme:ann")
    assert overdue() is None


@pytest.mark.slow
def test_a_worker_fires_it_and_the_list_says_so(shell: Shell) -> None:
    shell.run(*ADD, "--every", "1", stdin="{}")
    shell.worker("--grace", "2").ready()

    until(lambda: len(shell.lines()) >= 4, "two jobs were packed")

    (item,) = listed(shell)
    assert json.loads(shell.run("jobs", "show", item["last_job_id"], "--json").stdout)["job"]["kind"] == "order"
    assert " ago" in shell.run("schedules", "list").stdout
