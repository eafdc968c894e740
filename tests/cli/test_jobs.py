"""`outlast jobs`: what each command says and does, for owners, for operators, and at the store."""

from __future__ import annotations

import getpass
import json
import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from cli.conftest import Shell
from outlast import OutcomeUnknown
from outlast.client import operating
from outlast.domain.work import Admission

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
NOBODY = "01900000-0000-7000-8000-000000000000"


def shown(shell: Shell, job_id: str, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell.run("jobs", "show", job_id, "--json", *more).stdout)
    return found


# -- submit -----------------------------------------------------------------------------------------------------


def test_submit_prints_the_id_and_then_the_state(either: Shell) -> None:
    said = either.run("jobs", "submit", "shop:jobs", "order", "--input", "-", "--as", "acme:ann", stdin='{"how": "quick"}').stdout
    first, second = said.splitlines()
    assert ID.fullmatch(first)
    assert second == "queued"


def test_the_same_key_and_request_again_are_the_same_job_and_said_to_be_replayed(either: Shell) -> None:
    command = ("jobs", "submit", "shop:jobs", "order", "--input", "-", "--as", "acme:ann", "--key", "k1")
    first = either.run(*command, stdin="{}").stdout.splitlines()
    again = either.run(*command, stdin="{}").stdout.splitlines()
    assert again == [first[0], "queued (replayed: this key and request came before)"]
    assert json.loads(either.run(*command, "--json", stdin="{}").stdout) == {
        "id": first[0],
        "state": "queued",
        "replayed": True,
        "expired": False,
    }
    refused = either.run(*command, stdin='{"seconds": 1.5}', code=4).stderr
    assert "belongs to another request" in refused
    assert refused.endswith("(key_reused)\n")


def test_the_input_may_be_a_file(shell: Shell) -> None:
    (shell.folder / "order.json").write_text('{"how": "quick"}')
    said = shell.run("jobs", "submit", "shop:jobs", "order", "--input", "order.json", "--as", "acme:ann").stdout
    assert ID.match(said)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{", "The input is not JSON at line 1, column 2"),
        ('{"how": NaN}', "NaN or infinite"),
        ('{"how": "a", "how": "b"}', "gives a key twice"),
        ('{"howw": "quick"}', "does not fit Order"),
        ('{"how": 3}', "/how"),
        (b"\xff{}", "not UTF-8"),
        ('{"how": "' + "x" * 300_000 + '"}', "larger than 262144 bytes"),
    ],
)
def test_an_input_that_cannot_be_is_refused_and_nothing_is_written(shell: Shell, body: str | bytes, words: str) -> None:
    refused = shell.run("jobs", "submit", "shop:jobs", "order", "--input", "-", "--as", "acme:ann", stdin=body, code=2).stderr
    assert words in refused
    assert json.loads(shell.run("jobs", "list", "--json").stdout)["items"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("orders", "--input", "-", "--as", "a:b"), "shop:jobs registers no kind 'orders'. Its kinds: hang, mail, order, pack, rare."),
        (("order", "--input", "gone.json", "--as", "a:b"), "The input 'gone.json' cannot be read: No such file or directory."),
        (("order", "--input", "-", "--as", "ann"), "write TENANT:SUBJECT, or TENANT:SUBJECT:operator, for example acme:ann"),
        (("order", "--input", "-", "--as", "a:\tb"), "control characters"),
        (("order", "--input", "-", "--as", "a:b", "--not-before", "2030-01-01T00:00:00"), "the time has no zone; add Z for UTC"),
        (("order", "--input", "-", "--as", "a:b", "--not-before", "tomorrow"), "write ISO 8601 with a zone"),
        (("order", "--input", "-", "--as", "a:b", "--key", "a b"), "1 to 255 visible ASCII characters"),
        (("order", "--as", "a:b"), "Missing option '--input'"),
    ],
)
def test_a_wrong_submit_says_what_to_do(shell: Shell, arguments: tuple[str, ...], words: str) -> None:
    assert words in shell.run("jobs", "submit", "shop:jobs", *arguments, stdin="{}", code=2).stderr


def test_not_before_is_kept(shell: Shell) -> None:
    job_id = shell.submit("{}", "--not-before", "2130-01-01T00:00:00+01:00")
    (task, _) = shown(shell, job_id)["tasks"]
    assert task["next_attempt_at"] == "2129-12-31T23:00:00Z"


# -- list -------------------------------------------------------------------------------------------------------


def test_list_shows_the_owner_their_own_an_operator_the_tenant_and_the_store_everything(either: Shell) -> None:
    ann, bob, eve = (either.submit(owner=who) for who in ("acme:ann", "acme:bob", "other:eve"))

    def ids(*more: str) -> list[str]:
        return [job["id"] for job in json.loads(either.run("jobs", "list", "--json", *more).stdout)["items"]]

    assert ids() == [eve, bob, ann]
    assert ids("--as", "acme:ann") == [ann]
    assert ids("--as", "acme:ann:operator") == [bob, ann]
    assert ids("--as", "acme:eve") == []
    table = either.run("jobs", "list").stdout.splitlines()
    assert table[0].split() == ["ID", "STATE", "KIND", "LABEL", "DONE", "AGE", "TENANT", "OWNER"]
    assert "other   eve" in table[1]
    assert "OWNER" not in either.run("jobs", "list", "--as", "acme:ann").stdout


def test_list_filters_and_goes_on_page_by_page(either: Shell) -> None:
    jobs = [either.submit() for _ in range(3)] + [either.submit(kind="mail")]
    either.run("jobs", "cancel", jobs[0])

    def page(*more: str) -> tuple[list[str], str | None]:
        found = json.loads(either.run("jobs", "list", "--json", *more).stdout)
        return [job["id"] for job in found["items"]], found["next"]

    assert page("--state", "cancelled") == ([jobs[0]], None)
    assert page("--kind", "mail") == ([jobs[3]], None)
    first, cursor = page("--state", "active", "--limit", "2")
    assert first == [jobs[3], jobs[2]]
    assert cursor is not None
    assert page("--state", "active", "--limit", "2", "--cursor", cursor) == ([jobs[1]], None)
    assert "belongs to another list" in either.run("jobs", "list", "--cursor", cursor, code=2).stderr
    assert f"more: --cursor {cursor}" in either.run("jobs", "list", "--state", "active", "--limit", "2").stderr


def test_an_empty_list_says_so_to_people_only(shell: Shell) -> None:
    said = shell.run("jobs", "list")
    assert (said.stdout, said.stderr) == ("", "no jobs\n")


# -- show -------------------------------------------------------------------------------------------------------


def test_show_tells_all_at_the_store_and_the_owner_what_is_theirs(either: Shell) -> None:
    job_id = either.submit('{"how": "break"}')
    either.work()
    all_of_it = shown(either, job_id)
    assert all_of_it["job"]["state"] == "needs_attention"
    assert (all_of_it["job"]["tenant"], all_of_it["job"]["owner"]) == ("acme", "ann")
    assert [a["code"] for a in all_of_it["attempts"]] == ["error", "error"]
    assert "the secret lies in" in all_of_it["attempts"][0]["detail"]
    assert all_of_it["tasks"][0]["fence"] == 2
    assert all_of_it["tasks"][0]["worker"] == all_of_it["attempts"][1]["worker"]
    assert all_of_it["steps"] == [{"label": "Pack", "stored": 1}]
    (question,) = all_of_it["attention"]
    assert question["actions"] == ["retry", "dismiss"]

    mine = either.run("jobs", "show", job_id, "--json", "--as", "acme:ann").stdout
    assert "secret" not in mine
    assert not {"worker", "detail"} & set(json.loads(mine)["attempts"][0])
    assert not {"worker", "fence"} & set(json.loads(mine)["tasks"][0])
    assert not {"tenant", "owner"} & set(json.loads(mine)["job"])
    assert json.loads(mine)["attention"] == [question]

    theirs = json.loads(either.run("jobs", "show", job_id, "--json", "--as", "acme:op:operator").stdout)
    assert (theirs["attempts"], theirs["attention"]) == (None, None)
    assert theirs["tasks"][0]["state"] == "needs_attention"


def test_show_reads_well(shell: Shell) -> None:
    job_id = shell.submit('{"how": "break"}')
    shell.work()
    said = shell.run("jobs", "show", job_id).stdout
    assert said.startswith(f"{job_id}  needs_attention\n")
    for words in ("\nTasks\n", "\nAttempts\n", "\nSteps stored\n", "\nNeeds attention\n", "acme / ann", "RuntimeError: the secret"):
        assert words in said
    assert f"outlast jobs retry {job_id}" in said
    mine = shell.run("jobs", "show", job_id, "--as", "acme:ann").stdout
    assert "secret" not in mine
    assert "WORKER" not in mine
    assert "without --as" in shell.run("jobs", "show", job_id, "--as", "acme:op:operator").stdout


@pytest.mark.parametrize("verb", ["show", "cancel", "retry", "rerun"])
@pytest.mark.parametrize("as_whom", [(), ("--as", "acme:eve"), ("--as", "other:ann"), ("--as", "other:ann:operator")])
def test_a_job_that_is_unknown_or_not_theirs_is_code_3(shell: Shell, verb: str, as_whom: tuple[str, ...]) -> None:
    mine = shell.submit()
    more = ("--target", "shop:jobs") if verb == "rerun" else ()
    for job_id in (NOBODY, "nonsense", *([mine] if as_whom else [])):
        said = shell.run("jobs", verb, job_id, *as_whom, *more, code=3).stderr
        assert said.startswith("error: There is no such job")
        assert said.endswith("(not_found)\n")


def test_an_id_may_be_written_in_capitals(shell: Shell) -> None:
    job_id = shell.submit()
    assert shown(shell, job_id.upper())["job"]["id"] == job_id


# -- cancel, retry, rerun ---------------------------------------------------------------------------------------


def test_cancel_again_is_no_error_and_a_completed_job_is_code_4(either: Shell) -> None:
    job_id, done = either.submit(), either.submit(kind="mail", owner="acme:bob")
    assert either.run("jobs", "cancel", job_id).stdout == f"{job_id} cancelled\n"
    assert json.loads(either.run("jobs", "cancel", job_id, "--json", "--as", "acme:ann").stdout)["state"] == "cancelled"
    either.work()
    refused = either.run("jobs", "cancel", done, code=4).stderr
    assert refused == "error: The job had completed before. (already_completed)\n"


def test_a_cancel_at_the_store_records_the_account(shell: Shell) -> None:
    job_id = shell.submit()
    shell.run("jobs", "cancel", job_id)
    with closing(sqlite3.connect(shell.folder / "shop.db")) as connection:
        assert connection.execute("select cancelled_by from outlast_job").fetchall() == [(f"cli:{getpass.getuser()}",)]


def test_retry_acts_on_every_open_question_that_offers_it(either: Shell) -> None:
    job_id = either.submit('{"how": "fail"}')
    assert "it is queued. Its workers go on with it by themselves." in either.run("jobs", "retry", job_id, code=4).stderr
    either.work()
    (question,) = shown(either, job_id)["attention"]
    said = json.loads(either.run("jobs", "retry", job_id, "--json").stdout)
    assert said["retried"] == [question["id"]]
    assert said["job"]["state"] == "running"
    either.work()
    assert len(shown(either, job_id)["attempts"]) == 2
    assert either.run("jobs", "retry", job_id, "--as", "acme:op:operator").stdout == f"{job_id} running\n"


def test_a_question_without_a_retry_is_left_to_its_owner(shell: Shell) -> None:
    job_id = shell.submit('{"how": "ask"}')
    shell.work()
    said = shell.run("jobs", "retry", job_id, code=1)
    assert said.stdout == f"{job_id} needs_attention\n"
    assert "Pack: which_colour offers no retry, but answer, dismiss; its owner decides" in said.stderr


def test_replay_is_an_operators_and_needs_a_reason(either: Shell) -> None:
    job_id = either.submit('{"how": "fail"}')
    either.work()
    assert "--reason" in either.run("jobs", "replay", job_id, code=2).stderr
    command = ("jobs", "replay", job_id, "--reason", "There is paper again.")
    assert either.run(*command).stdout == f"{job_id} running\n"
    assert json.loads(either.run(*command, "--json").stdout)["state"] == "running", "again is no error"
    either.work()
    assert len(shown(either, job_id)["attempts"]) == 2
    assert either.run(*command, "--as", "acme:op:operator").stdout == f"{job_id} running\n"
    assert "not do this" in either.run(*command, "--as", "acme:ann", code=7).stderr
    assert "one visible character" in either.run("jobs", "replay", job_id, "--reason", " ", code=2).stderr
    either.run("jobs", "cancel", job_id)
    assert "was cancelled" in either.run(*command, code=4).stderr


def test_rerun_needs_the_application_and_a_final_job(either: Shell) -> None:
    job_id = either.submit()
    assert "--target module:attribute, or the environment variable OUTLAST_TARGET" in either.run("jobs", "rerun", job_id, code=2).stderr
    command = ("jobs", "rerun", job_id, "--target", "shop:jobs", "--key", "again")
    assert "Only a job that is final" in either.run(*command, code=4).stderr
    either.run("jobs", "cancel", job_id)
    new, state = either.run(*command).stdout.splitlines()
    assert state == "queued"
    again = json.loads(either.run(*command, "--json").stdout)
    assert again == {"id": new, "state": "queued", "replayed": True, "expired": False, "rerun_of": job_id}
    job = shown(either, new)["job"]
    assert (job["rerun_of"], job["owner"]) == (job_id, "ann")


def test_an_unknown_outcome_names_the_key_to_repeat_with(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[str] = []

    def lost(_call: object, prepared: list[Admission], _store: object) -> None:
        keys.append(str(prepared[0].key))
        raise OutcomeUnknown("lost")

    monkeypatch.setattr("outlast.cli.submit.drive_admission", lost)
    said = shell.run("jobs", "submit", "shop:jobs", "order", "--input", "-", "--as", "a:b", stdin="{}", code=5).stderr
    assert f"Run the same command again with --key {keys[0]}" in said


OLDER = """
from dataclasses import dataclass
from outlast import Context, Outlast, Plan
jobs = Outlast("sqlite:///shop.db")

@dataclass
class Parcel:
    weight: int

@jobs.task
async def pack(ctx: Context, parcel: Parcel) -> int:
    return parcel.weight

@jobs.kind("parcel", version=2)
def parcel(plan: Plan[Parcel], given: Parcel) -> None:
    plan.task(pack, label="Pack")

@parcel.upgrade(from_version=1)
def from_1(old):
    return {"weight": old["grams"] // 1000}
"""


def test_an_input_of_an_earlier_version_is_submitted_by_its_number(either: Shell) -> None:
    (either.folder / "older.py").write_text(OLDER)
    command = ("jobs", "submit", "older:jobs", "parcel", "--input", "-", "--as", "acme:ann", "--key", "k")
    said = [either.run(*command, "--schema-version", "1", "--json", stdin='{"grams": 2000}').stdout for _ in range(2)]
    first, again = (json.loads(text) for text in said)
    assert (again["id"], again["replayed"]) == (first["id"], True)
    assert shown(either, first["id"])["job"]["schema_version"] == 2
    assert "belongs to another request" in either.run(*command, stdin='{"weight": 2}', code=4).stderr
    refused = {
        "0": "is not in the range x>=1",
        "3": "knows versions 1 to 2 of the kind 'parcel', not version 3",
        "1": "cannot be brought up to version 2",
    }
    for version, words in refused.items():
        assert words in either.run(*command, "--schema-version", version, stdin='{"weight": 2}', code=2).stderr
    assert len(json.loads(either.run("jobs", "list", "--json").stdout)["items"]) == 1


def failed(shell: Shell, *owners: str, how: str = "fail") -> list[str]:
    """Jobs that need attention, in key order."""
    jobs = [shell.submit(f'{{"how": "{how}"}}', owner=owner) for owner in owners]
    shell.work()
    return jobs


def replayed(shell: Shell, *more: str, code: int = 0) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(shell.run("jobs", "replay", "--all", "--reason", "It is back.", "--json", *more, code=code).stdout)
    return said


def test_all_that_needs_attention_is_taken_up_by_filter_and_with_a_preview(either: Shell) -> None:
    ann, bob, eve = failed(either, "acme:ann", "acme:bob", "other:eve")
    (asking,) = failed(either, "acme:ann", how="ask")
    everything = [ann, bob, asking, eve]
    seen = replayed(either, "--dry-run")
    assert (seen["dry_run"], seen["done"]) == (True, everything)
    assert replayed(either, "--kind", "none")["done"] == []
    assert replayed(either, "--code", "worker_lost")["done"] == []
    assert replayed(either, "--raised-before", "2020-01-01T00:00:00Z")["done"] == []
    assert replayed(either, "--limit", "1", "--code", "out_of_stock", "--as", "other:op:operator")["done"] == [eve]
    said = either.run("jobs", "replay", "--all", "--reason", "It is back.", "--kind", "order", code=1)
    assert said.stdout == f"{ann}\n{bob}\n"
    assert f"refused {asking}: nothing that it asks offers a retry; its owner has to decide (not_offered)" in said.stderr
    assert said.stderr.endswith("2 done, 0 skipped, 1 refused\n")
    assert shown(either, ann)["job"]["state"] == "running"


def test_what_was_decided_meanwhile_is_skipped(either: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled, retried, left = failed(either, "acme:ann", "acme:ann", "acme:ann")
    begun = False

    def quicker(*args: Any) -> Any:
        nonlocal begun
        if not begun:  # between the list and the first replay
            begun = True
            either.run("jobs", "cancel", cancelled)
            either.run("jobs", "retry", retried)
        return operating.replayed(*args)

    monkeypatch.setattr("outlast.cli.replay.replayed", quicker)
    said = replayed(either)
    assert said["done"] == [left]
    assert said["skipped"] == [{"id": one, "code": "attention_superseded"} for one in (cancelled, retried)]
    assert shown(either, cancelled)["job"]["state"] == "cancelled"


@pytest.mark.parametrize(
    "wrong", [("ID", "--all"), (), ("ID", "--dry-run"), ("ID", "--kind", "order"), ("ID", "--limit", "1"), ("--all", "--limit", "0")]
)
def test_one_job_or_all_of_them(shell: Shell, wrong: tuple[str, ...]) -> None:
    shell.run("jobs", "replay", *wrong, "--reason", "x", code=2)


def test_only_an_operator_takes_up_all(shell: Shell) -> None:
    (job,) = failed(shell, "acme:ann")
    assert "outlast jobs retry" in shell.run("jobs", "replay", "--all", "--reason", "x", "--as", "acme:ann", code=7).stderr
    shell.run("jobs", "replay", "--all", "--reason", " ", code=2)
    assert shown(shell, job)["job"]["state"] == "needs_attention"


@pytest.mark.parametrize(
    "arguments", [("jobs", "list", "--limit", "x"), ("prune", "--limit", "x"), ("jobs", "replay", "--all", "--limit", "x")]
)
def test_what_is_no_number_is_no_whole_number(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert "'x' is not a valid whole number" in shell.run(*arguments, code=2).stderr
