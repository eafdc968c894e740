"""What is looked at in the answer to a cell's call, and in the store behind it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from outlast.http.problems import CATALOGUE
from outlast.http.table import EVENT_STREAM, Access, Route
from web.matrix.cells import Cell, Stage
from web.site import Answer
from web.world import EVERYBODY, STATES, World

_OPEN: Final = ("queued", "question", "doubt", "broken")


def judged(cell: Cell, stage: Stage, answer: Answer) -> Iterator[str]:
    """What is wrong with an answer."""
    if answer.status != cell.wanted:
        yield f"it is answered {answer.status}, not {cell.wanted}"
    if answer.headers.get("x-content-type-options") != "nosniff" or not answer.headers.get("x-request-id"):
        yield "a header that every answer has is missing"
    if answer.status >= 400 and cell.route.page:
        if answer.headers["content-type"] != "text/html; charset=utf-8":
            yield "a refusal for people that is no page"
    elif answer.status >= 400:
        code = answer.code
        if code not in CATALOGUE or CATALOGUE[code].status != answer.status:
            yield f"the code {code} is not one of this status"
    if answer.status == 401 and "www-authenticate" not in answer.headers:
        yield "a 401 without a challenge"
    yield from leaks(cell, stage.world, answer)
    found = listed(cell.route, answer) if answer.status == 200 else None
    if found is not None:
        person = cell.caller.person
        states = _OPEN if EVENT_STREAM in answer.headers["content-type"] else STATES
        wanted: set[str] = set() if person is None else {stage.world.id(person, state) for state in states}
        if found != wanted:
            yield f"it lists {found}, not {wanted}"


def leaks(cell: Cell, world: World, answer: Answer) -> Iterator[str]:
    """What stands in an answer though it is not for who called."""
    text = answer.body.decode() + json.dumps(answer.headers)
    caller = cell.caller
    for person in EVERYBODY:
        if caller.person is None or not caller.owns(person):
            overseen = cell.owner == person and caller.oversees(person)
            if person.secret in text:
                yield f"it holds the secret of {person.who}"
            if person.mark in text and not overseen:
                yield f"it holds a label of {person.who}"
            for job_id in (job["id"] for job in world.jobs[person.who].values()):
                if job_id in text and not (overseen and job_id == cell.named):
                    yield f"it names job {job_id} of {person.who}"


def listed(route: Route, answer: Answer) -> set[str] | None:
    """The ids in a list or stream of all jobs; None for another route."""
    if route.access is not Access.SIGNED_IN or route.method != "GET" or route.page:
        return None
    if EVENT_STREAM in answer.headers["content-type"]:
        return {json.loads(line.removeprefix("data: "))["id"] for line in answer.body.decode().split("\n") if line.startswith("data: ")}
    return {job["id"] for job in answer.json["items"]}


def changed(cell: Cell, stage: Stage, rows: Counter[str], job: Mapping[str, Any], answer: Answer) -> Iterator[str]:
    """What is wrong with what an allowed call did to the store, which had these rows, and this one of the job."""
    if not stage.books.written():
        yield "nothing was written"
        return
    more = stage.books.rows()["outlast_job"] - rows["outlast_job"]
    new = cell.entry.changes == "new"
    if more != new:
        yield f"{more} new jobs"
    after = stage.books.job(cell.named) if cell.named else {}
    if after != dict(job) if new else after["version"] != job["version"] + 1:
        yield f"the job was {job} and is {after}"
    if new and answer.status < 400:
        owner = cell.owner or cell.caller.person
        made = stage.books.job(answer.headers["location"].rpartition("/")[2])
        if owner is None or (made["tenant"], made["owner"]) != (owner.tenant, owner.subject):
            yield f"the new job belongs to {made['owner']} of {made['tenant']}"
