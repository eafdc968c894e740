"""Your work: what needs you, then what goes on, then what has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from outlast.client import reading
from outlast.domain.errors import Invalid
from outlast.domain.model import JobView
from outlast.http.call import Call, query
from outlast.http.page.frame import frame_of
from outlast.http.page.rendering import render
from outlast.http.problems import Problem

SOONEST: Final = 5
"""Seconds after which a page may look again by itself, at the least."""
_ROUNDS: Final = 8


@dataclass(frozen=True, slots=True)
class _Section:
    """Which jobs stand in it: of those in this state (None: all) the ones that belong; how many at a time."""

    state: str | None
    belongs: Callable[[JobView], bool]
    most: int


_SECTIONS: Final[Mapping[str, _Section]] = {
    "needs": _Section("needs_attention", lambda _job: True, 50),
    "going": _Section("active", lambda job: job.state != "needs_attention", 50),
    "done": _Section(None, lambda job: job.final, 20),
}


@dataclass(frozen=True, slots=True)
class Shelf:
    """A section as it is shown; `next` is the cursor of what follows."""

    name: str
    jobs: tuple[JobView, ...]
    next: str | None


async def your_work(call: Call) -> Response:
    """All sections from their beginning; or one of them from a cursor on."""
    wanted = query(call.request, *_SECTIONS)
    if len(wanted) > 1:
        raise Problem("invalid_query", "Give one cursor, of one section.")
    names = tuple(wanted) or tuple(_SECTIONS)
    shelves = [await _shelf(call, name, wanted.get(name)) for name in names]
    return render(
        frame_of(call),
        "work.html",
        shelves=shelves,
        empty=not wanted and not any(shelf.jobs or shelf.next for shelf in shelves),
        paged=bool(wanted),
        pace=None if wanted else pace(call, [job for shelf in shelves for job in shelf.jobs]),
    )


def pace(call: Call, jobs: list[JobView]) -> int | None:
    """Seconds after which to look again; None where nothing changes any more by itself."""
    seconds = [retry_after for job in jobs if (retry_after := call.service.pacing.retry_after(job)) is not None]
    if any(job.stopping for job in jobs):
        seconds.append(SOONEST)
    return max(min(seconds), SOONEST) if seconds else None


async def _shelf(call: Call, name: str, cursor: str | None) -> Shelf:
    """Reads on until the section is full; a shelf may be short though more follows, where few of those read belong to it."""
    section = _SECTIONS[name]
    found: list[JobView] = []
    for _ in range(_ROUNDS):
        try:
            page = await call.desk.drive(
                reading.list_jobs(
                    call.desk.app, call.principal, state=section.state, kind=None, limit=section.most - len(found), cursor=cursor
                )
            )
        except Invalid as error:
            raise Problem("invalid_query", error.message) from error
        found += filter(section.belongs, page.items)
        cursor = page.next
        if cursor is None or len(found) == section.most:
            break
    return Shelf(name, tuple(found), cursor)
