"""`prune` and `forget`: what they delete, what they say, and what they refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.conftest import Shell
from invariants import query
from outlast import Outlast, Principal, SyncContext
from outlast.client.operating import person_digest
from outlast.store.open import open_store
from outlast.store.program import Operation
from outlast.store.programs import claims, control

NOBODYS = {"jobs": 0, "passed": 0, "oldest": None, "keys": 0}


def run(shell: Shell, operation: Operation[Any]) -> Any:
    store = open_store(shell.url)
    try:
        return store.run_sync(operation)
    finally:
        store.close_sync()


def told(shell: Shell, *args: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell.run(*args, "--json", code=code).stdout)
    return found


def ended(shell: Shell, *keys: str, owner: str = "acme:ann") -> list[str]:
    jobs = [shell.submit("{}", *(("--key", key) if key else ()), owner=owner) for key in keys]
    for job in jobs:
        shell.run("jobs", "cancel", job)
    return jobs


def listed(shell: Shell) -> set[str]:
    return {job["id"] for job in told(shell, "jobs", "list")["items"]}


def test_prune_deletes_what_is_due_and_says_so(either: Shell) -> None:
    gone, stands = ended(either, "a", ""), either.submit()
    finished = told(either, "jobs", "show", gone[0])["job"]["finished_at"]
    assert told(either, "prune") == {"dry_run": False, **NOBODYS}
    wanted = {"jobs": 2, "passed": 0, "oldest": finished, "keys": 0}
    assert told(either, "prune", "--before", "0s", "--dry-run") == {"dry_run": True, **wanted}
    assert listed(either) == {*gone, stands}
    assert told(either, "prune", "--before", "0s", "--horizon", "0s") == {"dry_run": False, **wanted, "keys": 2}
    assert listed(either) == {stands}
    assert told(either, "prune", "--before", "0s") == {"dry_run": False, **NOBODYS}


def test_prune_takes_no_more_than_it_is_told_to(shell: Shell) -> None:
    ended(shell, *"abc")
    assert "2 jobs would be deleted; the oldest ended 20" in shell.run("prune", "--before", "0s", "--limit", "2", "--dry-run").stdout
    said = shell.run("prune", "--before", "0s", "--limit", "2").stdout
    assert said.startswith("2 jobs deleted; the oldest ended 20")
    assert said.endswith("\n0 keys whose horizon is over deleted\n")
    assert len(listed(shell)) == 1
    assert shell.run("prune", "--before", "1h").stdout.startswith("0 jobs deleted\n")


@pytest.mark.parametrize("duration", ["", "d", "x", "7", "0", "1.5", "-1s", "1w", "nan", "inf", "1 2"])
def test_a_duration_that_is_none_is_wrong_usage(shell: Shell, duration: str) -> None:
    (job,) = ended(shell, "a")
    assert "is not a duration; write for example 90s, 45m, 12h or 7d" in shell.run("prune", "--before", duration, code=2).stderr
    assert listed(shell) == {job}


@pytest.mark.parametrize("duration", ["3651d", "99999d", "315360001s"])
def test_a_duration_that_is_too_long_says_so(shell: Shell, duration: str) -> None:
    assert "is too long: 3650d (ten years) at most" in shell.run("prune", "--before", duration, code=2).stderr


def test_one_is_no_plural(shell: Shell) -> None:
    ended(shell, "a")
    assert shell.run("prune", "--before", "0s", "--dry-run").stdout.startswith("1 job would be deleted; ")


def test_who_may_forget_is_said_in_the_help(shell: Shell) -> None:
    assert "TENANT:SUBJECT:operator" in shell.run("forget", "--help").stdout


def test_a_key_of_what_was_pruned_says_that_it_is_no_longer_kept(shell: Shell) -> None:
    (job,) = ended(shell, "a")
    shell.run("prune", "--before", "0s")
    again = ("jobs", "submit", "shop:jobs", "order", "--input", "-", "--as", "acme:ann", "--key", "a")
    said = "cancelled (replayed: this key and request came before, and the job is no longer kept"
    assert shell.run(*again, stdin="{}").stdout.startswith(f"{job}\n{said}")
    assert "another request" in shell.run(*again, stdin='{"how": "fail"}', code=4).stderr
    said = shell.run("jobs", "show", job, "--as", "acme:ann", code=3).stderr
    assert "This job was cancelled on" in said
    assert said.endswith("(expired)\n")
    for who in ("acme:bob", "acme:op:operator", "other:ann"):
        assert shell.run("jobs", "show", job, "--as", who, code=3).stderr.endswith("(not_found)\n")


def audit(shell: Shell) -> list[dict[str, Any]]:
    return query(shell.url, "select * from {audit} order by id")


FORGET = ("forget", "--owner", "acme:ann", "--reason", "Asked for by letter 17.")


def test_forget_deletes_all_that_is_a_persons_and_nothing_else(either: Shell) -> None:
    ended(either, "old")
    either.run("prune", "--before", "0s")
    ended(either, "a", "")
    live = either.submit()
    theirs = {*ended(either, "a", owner="acme:bob"), either.submit(owner="other:ann")}
    for who in ("acme:ann", "acme:bob"):
        either.run("schedules", "add", "shop:jobs", "order", "--name", "n", "--every", "60", "--input", "-", "--as", who, stdin="{}")
    assert told(either, *FORGET[:3], "--dry-run") == {"dry_run": True, "jobs": 3, "open": 1, "keys": 1, "schedules": 1}
    assert listed(either) > {live, *theirs}

    done = told(either, *FORGET, "--yes")
    digest = person_digest("acme", "ann")
    assert done == {"dry_run": False, "jobs": 3, "cancelled": 1, "stopping": 0, "keys": 1, "schedules": 1, "record": digest}
    assert [item["owner"] for item in told(either, "schedules", "list")["items"]] == ["bob"]
    assert listed(either) == theirs
    assert either.run("jobs", "show", live, "--as", "acme:ann", code=3).stderr.endswith("(not_found)\n")
    assert either.submit("{}", "--key", "old") not in theirs
    (row,) = audit(either)
    assert (row["tenant"], row["action"], row["subject"], row["reason"], row["jobs"]) == ("acme", "forget", digest, FORGET[-1], 3)
    assert row["actor"].startswith("cli:")


def test_forget_waits_for_nobody_and_is_finished_by_another_call(either: Shell) -> None:
    job = either.submit()
    (held,) = run(either, claims.claim("default", ["order@1:pack"], 1, "w:1", 30_000))
    said = either.run(*FORGET, "--yes", code=1)
    assert said.stdout.startswith("0 jobs, 0 schedules and 0 keys deleted; 1 open job cancelled\n")
    assert "run the same command again" in said.stderr
    assert told(either, "jobs", "show", job)["job"]["stopping"]
    run(either, control.stop(held.ref))
    done = told(either, *FORGET, "--yes", "--as", "acme:olga:operator")
    assert (done["jobs"], done["cancelled"], done["stopping"]) == (1, 0, 0)
    assert [(row["actor"].partition(":")[0], row["jobs"]) for row in audit(either)] == [("cli", None), ("olga", 1)]


def test_forget_names_a_subject_by_all_behind_the_first_colon(either: Shell) -> None:
    theirs = {who: run_submit(either, who) for who in ("ann", "ann:operator", "ann:x:y")}
    kept = set(theirs.values())
    for who, job in theirs.items():
        told(either, "forget", "--owner", f"acme:{who}", "--reason", "Asked for.", "--yes")
        kept -= {job}
        assert listed(either) == kept


def run_submit(shell: Shell, subject: str) -> str:
    """A job of any subject, those too that --as cannot name."""
    jobs = Outlast(shell.url)

    @jobs.task
    def nothing(ctx: SyncContext, number: int) -> None: ...

    try:
        return jobs.sync.submit(nothing, 1, owner=Principal("acme", subject)).id
    finally:
        jobs.sync.close()


@pytest.mark.parametrize("dry", [True, False])
def test_forget_of_nobody_ends_with_3_and_records_nothing(either: Shell, dry: bool) -> None:
    job = either.submit()
    how = ("--dry-run",) if dry else ("--yes",)
    for nobody in ("acme:anna", "acme:ann:operator", "other:ann"):
        said = either.run("forget", "--owner", nobody, "--reason", "Asked for.", *how, code=3).stderr
        assert "Nobody of that name has anything here" in said
    assert listed(either) == {job}
    assert audit(either) == []


def test_forget_asks_before_it_does_it(shell: Shell) -> None:
    job = shell.submit()
    said = shell.run(*FORGET, stdin="n\n", code=1)
    assert "Delete 1 job of acme:ann, 1 of them open, and 0 schedules, for good?" in said.stderr
    assert listed(shell) == {job}
    assert audit(shell) == []
    shell.run(*FORGET, stdin="y\n")
    assert listed(shell) == set()


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (FORGET[:3], 2, "Say why, for the record"),
        (("forget", "--owner", "acme", "--reason", "x"), 2, "write TENANT:SUBJECT"),
        ((*FORGET, "--yes", "--as", "acme:bob"), 7, "Only an operator"),
        ((*FORGET, "--yes", "--as", "acme:ann"), 7, "Only an operator"),
        ((*FORGET, "--yes", "--as", "other:olga:operator"), 7, "Only an operator"),
        ((*FORGET[:3], "--reason", "two\nlines", "--yes"), 2, "reason"),
    ],
)
def test_what_forget_refuses_changes_nothing(shell: Shell, args: tuple[str, ...], code: int, said: str) -> None:
    job = shell.submit()
    assert said in shell.run(*args, code=code).stderr
    assert told(shell, "jobs", "show", job)["job"]["state"] == "queued"
    assert audit(shell) == []
