"""Target, takeover and attach over HTTP."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from outlast import Completion, Context, Outlast, Plan
from outlast.store.open import migrate
from web.reading import Visitor, read
from web.site import ANN, BOB, OPS, OTHER, Answer, Site, final


@dataclass
class Draft:
    """The text to attach."""

    text: str


def change(db: sqlite3.Connection, ref: str, expected: str, text: str) -> str | None:
    changed = db.execute("update document set text = ?, version = version + 1 where ref = ? and version = ?", (text, ref, int(expected)))
    return str(int(expected) + 1) if changed.rowcount else None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "jobs.db"
    migrate(f"sqlite:///{file}")
    connection = sqlite3.connect(file)
    connection.execute("create table document (ref text primary key, text text not null, version integer not null)")
    connection.execute("insert into document values ('d1', 'empty', 1)")
    connection.commit()
    connection.close()
    return file


@pytest.fixture
async def drafts(path: Path) -> AsyncIterator[Site]:
    jobs = Outlast(f"sqlite:///{path}")
    target = jobs.target("document")(change)

    @jobs.task
    async def write(ctx: Context, draft: Draft) -> Completion[str]:
        return ctx.attach(draft.text)

    @jobs.kind("draft", target=target)
    def draft(plan: Plan[Draft], input: Draft) -> None:
        plan.task(write, label="Write")

    @jobs.kind("plain")
    def plain(plan: Plan[Draft], input: Draft) -> None:
        plan.task(write, label="Write")

    site = Site(jobs)
    yield site
    site.app.stop()
    await jobs.close()


def now(path: Path) -> tuple[str, int]:
    connection = sqlite3.connect(path)
    row: tuple[str, int] = connection.execute("select text, version from document").fetchone()
    connection.close()
    return row


async def submit(site: Site, kind: str = "draft", key: str = "k", **target: Any) -> Answer:
    body: dict[str, Any] = {"kind": kind, "input": {"text": "hello"}}
    if target:
        body["target"] = target
    return await site.call("POST", "/v1/jobs", json_body=body, headers={"Idempotency-Key": key})


async def test_a_job_shows_its_target_and_lists_find_it(drafts: Site, path: Path) -> None:
    job = (await submit(drafts, ref="d1", version="1")).json
    assert (job["target"], job["attach"], job["taken_over_at"]) == ({"ref": "d1", "version": "1"}, "none", None)
    assert [j["id"] for j in (await drafts.call("GET", "/v1/jobs?target=d1")).json["items"]] == [job["id"]]
    assert (await drafts.call("GET", "/v1/jobs?target=d2")).json["items"] == []
    other = await submit(drafts, ref="d1", version="2")
    assert other.code == "key_reused"
    async with drafts.working():
        done = await drafts.until(job["id"], final)
    assert (done["target"], done["attach"]) == ({"ref": "d1", "version": "2"}, "attached")
    assert now(path) == ("hello", 2)


@pytest.mark.parametrize(
    ("target", "pointers"),
    [
        ({"ref": "d1"}, ["/target/version"]),
        ({"ref": "", "version": "1"}, ["/target/ref"]),
        ({"ref": 1, "version": "1"}, ["/target/ref"]),
        ({"ref": "d1", "version": "1", "more": 1}, ["/target/more"]),
        ({"ref": "a\nb", "version": "1"}, ["/target"]),
    ],
)
async def test_targets_that_are_none(drafts: Site, target: dict[str, Any], pointers: list[str]) -> None:
    answer = await submit(drafts, **target)
    assert (answer.status, answer.code, answer.json["pointers"]) == (422, "invalid", pointers)


async def test_a_kind_without_a_target_takes_none(drafts: Site) -> None:
    answer = await submit(drafts, "plain", ref="d1", version="1")
    assert (answer.status, answer.code, answer.json["pointers"]) == (422, "invalid", ["/target"])
    plain = (await submit(drafts, "plain", "p")).json
    taken = await drafts.call("POST", f"/v1/jobs/{plain['id']}/takeover")
    assert (taken.status, taken.code) == (409, "no_target")


async def test_a_version_that_the_application_cannot_read_is_no_defect(drafts: Site, path: Path) -> None:
    job = (await submit(drafts, ref="d1", version="2")).json
    async with drafts.working():
        assert (await drafts.until(job["id"], final))["attach"] == "parked"
    failed = await drafts.call("POST", f"/v1/jobs/{job['id']}/attach", json_body={"no": 0, "target_version": "abc"})
    assert (failed.status, failed.code, failed.json["job"]["attach"]) == (409, "target_failed", "parked")
    visitor = Visitor(drafts)
    page = await visitor.get(f"/jobs/{job['id']}")
    refused = read(await visitor.send(page, "attach-form-0", target_version="abc"))
    assert "could not be put there" in refused.text
    assert now(path) == ("empty", 1)


async def test_takeover_and_attach(drafts: Site, path: Path) -> None:
    job = (await submit(drafts, ref="d1", version="1")).json
    url = f"/v1/jobs/{job['id']}"
    for who, status in ((None, 401), (BOB, 404), (OTHER, 404), (OPS, 403)):
        assert (await drafts.call("POST", f"{url}/takeover", who, headers={"If-Match": "*"})).status == status
        assert (await drafts.call("POST", f"{url}/attach", who, json_body={"no": 0, "target_version": "1"})).status == status
    assert (await drafts.call("POST", f"{url}/takeover")).code == "precondition_required"
    assert (await drafts.call("POST", f"{url}/takeover", headers={"If-Match": '"9"'})).code == "stale_version"
    taken = await drafts.call("POST", f"{url}/takeover", headers={"If-Match": '"1.queued"'})
    assert (taken.status, taken.json["version"], taken.json["taken_over_at"] is not None) == (200, 2, True)
    again = await drafts.call("POST", f"{url}/takeover", headers={"If-Match": '"1.queued"'})
    assert (again.status, again.json) == (200, taken.json)
    async with drafts.working():
        parked = await drafts.until(job["id"], final)
    assert (parked["attach"], now(path)) == ("parked", ("empty", 1))
    for body, code in (
        ({"no": 0, "target_version": "7"}, "target_changed"),
        ({"no": 5, "target_version": "1"}, "nothing_parked"),
        ({"no": -1, "target_version": "1"}, "invalid"),
        ({"no": 0}, "invalid"),
    ):
        answer = await drafts.call("POST", f"{url}/attach", json_body=body)
        assert answer.code == code
        assert (answer.status == 409) == ("job" in answer.json)
    applied = await drafts.call("POST", f"{url}/attach", ANN, json_body={"no": 0, "target_version": "1"})
    assert (applied.status, applied.json["attach"], applied.json["target"]["version"]) == (200, "attached", "2")
    assert now(path) == ("hello", 2)
    assert (await drafts.call("POST", f"{url}/attach", json_body={"no": 0, "target_version": "2"})).code == "nothing_parked"


def notice(answer: Answer) -> tuple[int, str]:
    return answer.status, read(answer).one("h2", id="notice-title").text


async def test_the_page_takes_over_and_applies(drafts: Site, path: Path) -> None:
    job = (await submit(drafts, ref="d1", version="1")).json
    visitor = Visitor(drafts)
    page = await visitor.get(f"/jobs/{job['id']}")
    assert "d1" in page.one(id="target").text
    stale = await visitor.send(page, "takeover-form", version="7")
    assert notice(stale) == (412, "Not done: the job had changed")
    taken = await visitor.follow(await visitor.send(page, "takeover-form"))
    assert "You took it over" in taken.one(id="target").text
    assert not taken.has("form", id="takeover-form")
    async with drafts.working():
        await drafts.until(job["id"], final)
    page = await visitor.get(f"/jobs/{job['id']}")
    assert "kept aside" in page.one(id="target").text
    wrong = await visitor.send(page, "attach-form-0", target_version="7")
    assert notice(wrong) == (409, "Not done: it has another version by now")
    assert now(path) == ("empty", 1)
    done = await visitor.follow(await visitor.send(page, "attach-form-0", target_version="1"))
    assert "The result was put there" in done.one(id="target").text
    assert now(path) == ("hello", 2)
    again = await visitor.send(page, "attach-form-0", target_version="2")
    assert notice(again) == (409, "Not done: there is nothing to put there")
