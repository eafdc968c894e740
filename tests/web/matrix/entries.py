"""What the table of routes cannot say by itself: on which of its owner's jobs a route is tried, with what, and what then comes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlencode

from outlast.http.table import Access, Route
from web.world import PURGED, STATES, Person, World

MALFORMED: Final = {
    "no uuid": "17",
    "upper case": "0190A8C0-4B5E-7C3D-8F00-0123456789AB",
    "no dashes": "0190a8c04b5e7c3d8f000123456789ab",
    "braces": "%7B0190a8c0-4b5e-7c3d-8f00-0123456789ab%7D",
    "blank behind": "0190a8c0-4b5e-7c3d-8f00-0123456789ab%20",
    "newline behind": "0190a8c0-4b5e-7c3d-8f00-0123456789ab%0A",
    "sql": "'%20or%201=1--",
    "like": "%25",
    "dots": "..%252f",
    "long": "0" * 300,
    "other script": "%D9%A1%D9%A2%D9%A3",
}
"""Ids that are none, as they stand in a path."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a route is tried. `changes`: what an allowed call does to the store; job: whose version rises, new: a job more."""

    state: str = "completed"
    good: int = 200
    body: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    changes: str = "nothing"
    deed: str = ""

    def content(self, world: World, person: Person) -> tuple[bytes, str]:
        """The body and its media type, with version and question of this person's job where braces say so."""
        job = world.jobs[person.who][self.state]
        asked: dict[str, str] = job["attention"] or {}
        known = {"{version}": str(job["version"]), "{attention}": asked.get("id", "")}

        def filled(members: Mapping[str, Any]) -> dict[str, Any]:
            return {name: known.get(value, value) if isinstance(value, str) else value for name, value in members.items()}

        if self.body is not None:
            return json.dumps(filled(self.body)).encode(), "application/json"
        if self.form is not None:
            return urlencode(filled({**self.form, "token": TOKEN})).encode(), "application/x-www-form-urlencoded"
        return b"", ""


_WORDS: Final = {"mark": "MARK-submitted", "secret": "SECRET-submitted"}
_KEY: Final = {"Idempotency-Key": "a-new-key"}
TOKEN: Final = "t" * 43
_BROWSER: Final = {"Cookie": f"outlast_form={TOKEN}", "Accept": "text/html"}
"""A browser that has been here before: its cookie says what its forms carry."""

ENTRIES: Final[Mapping[str, tuple[Entry, ...]]] = {
    "submit_job": (Entry(good=202, body={"kind": "memo", "input": _WORDS}, headers=_KEY, changes="new"),),
    "list_jobs": (Entry(),),
    "get_job": (Entry("queued"), Entry("completed")),
    "job_events": (Entry("queued"), Entry("completed")),
    "all_events": (Entry(),),
    "list_tasks": (Entry("completed"),),
    "get_result": (Entry("completed"), Entry("queued", good=409)),
    "get_task_result": (Entry("completed"), Entry("queued", good=409)),
    "get_recovery": (Entry("broken"),),
    "cancel_job": (Entry("queued", headers={"If-Match": "*"}, changes="job"), Entry("completed", good=409, headers={"If-Match": "*"})),
    "act_on_job": (
        Entry(
            "question",
            good=202,
            body={"attention_id": "{attention}", "action": "answer", "input": {"colour": "red"}},
            changes="job",
            deed="decide",
        ),
        Entry("question", good=202, body={"attention_id": "{attention}", "action": "dismiss"}, changes="job", deed="decide"),
        Entry("doubt", good=202, body={"attention_id": "{attention}", "action": "skip"}, changes="job", deed="decide"),
        Entry("broken", good=202, body={"attention_id": "{attention}", "action": "retry"}, changes="job", deed="retry"),
    ),
    "rerun_job": (Entry("completed", good=202, headers=_KEY, changes="new"),),
    # No job here has a target: tests/web/test_targets.py has those that do.
    "take_over": (Entry("queued", good=409, headers={"If-Match": "*"}), Entry("completed", good=409, headers={"If-Match": "*"})),
    "attach_result": (Entry("completed", good=409, body={"no": 0, "target_version": "1"}),),
    "page_work": (Entry(headers=_BROWSER),),
    "page_job": tuple(Entry(state, headers=_BROWSER) for state in STATES),
    "page_result": (Entry("completed", headers=_BROWSER), Entry("queued", good=409, headers=_BROWSER)),
    "page_task_result": (Entry("completed", headers=_BROWSER), Entry("queued", good=409, headers=_BROWSER)),
    "page_cancel": (
        Entry("queued", good=303, form={"version": "{version}"}, headers=_BROWSER, changes="job"),
        Entry("completed", good=409, form={"version": "{version}"}, headers=_BROWSER),
        Entry("question", good=412, form={"version": "1"}, headers=_BROWSER),
    ),
    "page_takeover": (Entry("queued", good=409, form={"version": "{version}"}, headers=_BROWSER),),
    "page_attach": (Entry("completed", good=409, form={"no": "0", "target_version": "1"}, headers=_BROWSER),),
    "page_act": tuple(
        Entry(
            state,
            good=303,
            form={"attention_id": "{attention}", "action": action, **typed},
            headers=_BROWSER,
            changes="job",
            deed="retry" if action == "retry" else "decide",
        )
        for state, action, typed in (
            ("question", "answer", {"input": '{"colour": "red"}'}),
            ("question", "dismiss", {}),
            ("doubt", "skip", {}),
            ("broken", "retry", {}),
        )
    ),
    "page_rerun": (Entry("completed", good=303, form={"key": "a-new-key"}, headers=_BROWSER, changes="new"),),
    "page_problems": (Entry(headers=_BROWSER),),
    # Nobody signs in here but in development.
    "page_sign_in": (Entry(good=404, headers=_BROWSER),),
    "page_signed_in": (Entry(good=404, form={"tenant": "acme", "subject": "ann", "next": "/"}, headers=_BROWSER),),
    "page_signed_out": (Entry(good=404, form={}, headers=_BROWSER),),
    "page_asset": (Entry(headers=_BROWSER),),
    "component": (Entry(headers=_BROWSER),),
    "component_types": (Entry(headers=_BROWSER),),
    "healthz": (Entry(),),
    "readyz": (Entry(),),
    "openapi": (Entry(),),
}

GONE: Final = {"good": 410, "changes": "nothing"}
"""Of the owner's own job that is no longer kept there is this to say to its owner, and nothing to anybody else."""


def entries_of(route: Route) -> tuple[Entry, ...]:
    """How a route is tried: as it says, and where it names a job, in the same way on one that was purged."""
    tried = ENTRIES[route.name]
    return (*tried, replace(tried[0], state=PURGED, **GONE)) if "{id}" in route.path else tried


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, seen from the job: None is nobody."""

    person: Person | None

    def owns(self, owner: Person) -> bool:
        """Whether it is their job."""
        return self.person == owner

    def oversees(self, owner: Person) -> bool:
        """Whether they are an operator of its tenant, and it is not their own."""
        return self.person is not None and self.person.operator and self.person.tenant == owner.tenant and self.person != owner

    def reads(self, owner: Person) -> bool:
        """Whether they may see that it is there."""
        return self.owns(owner) or self.oversees(owner)


def expected(route: Route, entry: Entry, caller: Caller, owner: Person | None) -> int:
    """The status that follows from the route's access; owner None: the id is nobody's, or none."""
    if route.access is Access.PUBLIC:
        return entry.good
    if caller.person is None:
        return 401
    if "{id}" not in route.path:
        return entry.good
    if owner is None or not caller.reads(owner) or (entry.state == PURGED and not caller.owns(owner)):
        return 404
    return entry.good if caller.owns(owner) or _overseers_may(route.access, entry) else 403


def _overseers_may(access: Access, entry: Entry) -> bool:
    match access:
        case Access.READ | Access.CONTROL:
            return True
        case Access.OWNER:
            return False
        case Access.DECIDE:
            assert entry.deed in ("decide", "retry"), "say by deed= which decision it is"
            return entry.deed == "retry"
        case _:
            raise AssertionError(f"no rule says who gets {access}")
