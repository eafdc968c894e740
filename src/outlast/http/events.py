"""Event streams and long polls: told by the one watcher, bounded per principal, authorised again while they last."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Send
from starlette.types import Scope as AsgiScope

from outlast.client import reading
from outlast.domain.access import Scope, reading_scope
from outlast.domain.errors import OutlastError, StoreUnavailable
from outlast.domain.model import JobView, Principal
from outlast.http import etags, wire
from outlast.http.call import Call, header, query, unchanged
from outlast.http.problems import Problem
from outlast.http.watcher import Subscription
from outlast.observe.correlation import correlation_id
from outlast.observe.events import RequestFailed, place_of
from outlast.observe.hub import emit

HEARTBEAT: Final = 15.0
WSGI_BEAT: Final = 2.0
"""Seconds between two signs of life where a server of WSGI is around: it learns only by sending that its reader has gone."""
_ENVIRON: Final = "wsgi_environ"
RETRY_MS: Final = 2_000
SEND_LIMIT: Final = 20.0
"""Seconds that a reader may leave what is sent to it unread."""
_LOOK: Final = 1.0
LONGEST_WAIT: Final = 25
MOST_OPEN: Final = 1_000
"""Open jobs that a stream of all jobs begins with."""
_MOST_TAG: Final = 100
_PADDING: Final = b": " + b" " * 2_048 + b"\n"
"""Some proxies hold the first two kilobytes back."""
_HEADERS: Final = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}


def event(job: JobView, base: str) -> bytes:
    """A job as one event: its id is the job's tag."""
    return b"event: job\nid: " + etags.tag_of(job).encode() + b"\ndata: " + wire.encode(wire.job(job, base)) + b"\n\n"


class Stream:
    """An answer that goes on: sends events until the end, the reader's or its own."""

    def __init__(self, call: Call, principal: Principal, first: list[JobView], known: list[JobView], *, all_jobs: bool) -> None:
        self._call = call
        self._principal = principal
        self._first = first
        self._known = known
        self._all_jobs = all_jobs

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Ends when the reader has gone, whatever the writer waits for."""
        limits = self._call.service.limits
        head = dict(_HEADERS)
        if scope["method"] == "HEAD":
            await Response(status_code=200, headers=head)(scope, receive, send)
            return
        key = limits.take("streams", self._principal)
        try:
            await _until_gone(receive, self._write(send, head))
        except TimeoutError:
            # It is there and reads nothing. Its connection cannot be cut from here, so that its place stays taken until it is gone.
            await self._frozen(receive)
            raise ClientDisconnect from None
        finally:
            limits.give_back(key)

    async def _frozen(self, receive: Receive) -> None:
        leaving = asyncio.ensure_future(_gone(receive))
        try:
            while not leaving.done() and not self._call.service.watcher.stopped:
                await asyncio.wait({leaving}, timeout=_LOOK)
        finally:
            leaving.cancel()

    async def _write(self, send: Send, head: dict[str, str]) -> None:
        await _within(
            send, {"type": "http.response.start", "status": 200, "headers": [(n.lower().encode(), v.encode()) for n, v in head.items()]}
        )
        opening = _PADDING + f"retry: {RETRY_MS}\n\n".encode() + b"".join(event(job, self._call.base) for job in self._first)
        await _part(send, opening)
        if not self._all_jobs and self._known[0].final and not self._known[0].stopping:
            await _end(send)
            return
        own = Scope(self._principal.tenant, self._principal.subject)
        scope = own if self._all_jobs else reading_scope(self._principal)
        async with self._call.service.watcher.watching(scope, self._known, all_jobs=self._all_jobs) as subscription:
            await self._follow(send, subscription)
        await _end(send)

    async def _follow(self, send: Send, subscription: Subscription) -> None:
        every = WSGI_BEAT if _ENVIRON in self._call.request.scope else HEARTBEAT
        now = time.monotonic()
        beat, ask = now + every, now + HEARTBEAT
        while True:
            for job in await subscription.news(max(beat - time.monotonic(), 0.0)):
                await _part(send, event(job, self._call.base))
                if not self._all_jobs and job.final and not job.stopping:
                    return
            if subscription.ended:
                return
            if time.monotonic() >= beat:
                due = time.monotonic() >= ask
                if due and not await self._still_allowed():
                    return
                await _part(send, b": \n\n")
                now = time.monotonic()
                beat, ask = now + every, now + HEARTBEAT if due else ask

    async def _still_allowed(self) -> bool:
        """Whether the same principal still stands behind the request, and may still see the job."""
        try:
            now = await self._call.service.authenticator.principal(self._call.request)
            if (now.tenant, now.subject, now.roles) != (self._principal.tenant, self._principal.subject, self._principal.roles):
                return False
            if not self._all_jobs:
                await self._call.desk.drive(reading.get(self._call.desk.app, self._known[0].id, now))
        except StoreUnavailable:
            return True  # nothing can be read, so nothing is shown; asked again at the next heartbeat
        except (Problem, OutlastError):
            return False
        except Exception as error:  # noqa: BLE001 - the host's function failed: nobody is let in by that
            emit(RequestFailed("stream", place_of(error), correlation_id.get() or ""))
            return False
        return True


async def job_events(call: Call) -> Response | Stream:
    """The stream of one job."""
    query(call.request)
    job = await call.job()
    if not job.final:
        _check_threads(call, "too_many_streams")
    known = _last_event_id(call)
    if known == etags.tag_of(job):
        if job.final and not job.stopping:
            return Response(status_code=204)
        return Stream(call, call.principal, [], [job], all_jobs=False)
    return Stream(call, call.principal, [job], [job], all_jobs=False)


async def all_events(call: Call) -> Stream:
    """The stream of all jobs of the principal: it begins with all that are open."""
    query(call.request)
    _check_threads(call, "too_many_streams")
    _last_event_id(call)
    open_jobs = await _pages(call, state="active", most=MOST_OPEN)
    newest = await call.desk.drive(reading.list_jobs(call.desk.app, call.principal, state=None, kind=None, limit=100, cursor=None))
    listed = {job.id: job for job in (*newest.items, *open_jobs)}
    return Stream(call, call.principal, open_jobs, list(listed.values()), all_jobs=True)


async def _pages(call: Call, *, state: str, most: int) -> list[JobView]:
    found: list[JobView] = []
    cursor: str | None = None
    while len(found) < most:
        page = await call.desk.drive(reading.list_jobs(call.desk.app, call.principal, state=state, kind=None, limit=200, cursor=cursor))
        found += page.items
        cursor = page.next
        if cursor is None:
            break
    return found


def _check_threads(call: Call, code: str) -> None:
    """Problem 429 under a server of WSGI that answers one request at a time: what stays open would hold up all others."""
    environ = call.request.scope.get(_ENVIRON)
    if environ is not None and not environ.get("wsgi.multithread"):
        raise Problem(
            code, "This server answers one request at a time. Ask for the job again and again instead.", headers={"Retry-After": "60"}
        )


def _last_event_id(call: Call) -> str | None:
    said = header(call.request, "last-event-id")
    if said is not None and len(said) > _MOST_TAG:
        raise Problem("bad_request", "The Last-Event-ID is none that was sent from here.")
    return said


async def wait(call: Call, job: JobView, seconds: int) -> Response:
    """The job when it differs from what If-None-Match names, or 304 at the limit; authorised again before the answer."""
    known = header(call.request, "if-none-match")
    if known is None or not etags.matches(known, etags.strong(job)) or job.final:
        return _answer(call, job, known)
    _check_threads(call, "too_many_waits")
    with call.service.limits.held("waits", call.principal):
        async with call.service.watcher.watching(reading_scope(call.principal), [job]) as subscription:
            listening = asyncio.ensure_future(subscription.news(min(seconds, LONGEST_WAIT)))
            await _until_gone(call.request.receive, _quiet(listening))
    again = Call(call.request, call.service, call.base, await call.service.authenticator.principal(call.request))
    return _answer(again, await again.job(), known)


def _answer(call: Call, job: JobView, known: str | None) -> Response:
    if etags.matches(known, etags.strong(job)):
        return unchanged(call.job_headers(job))
    return call.show(job)


async def _quiet(listening: asyncio.Future[list[JobView]]) -> None:
    try:
        await listening
    finally:
        listening.cancel()


async def _until_gone(receive: Callable[[], Awaitable[Message]], work: Awaitable[None]) -> None:
    """Runs the work; it is cancelled when the reader goes away."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
    finally:
        for task in (working, leaving):
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task


async def _gone(receive: Callable[[], Awaitable[Message]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _part(send: Send, body: bytes) -> None:
    await _within(send, {"type": "http.response.body", "body": body, "more_body": True})


async def _end(send: Send) -> None:
    await _within(send, {"type": "http.response.body", "body": b"", "more_body": False})


async def _within(send: Send, message: Message) -> None:
    """Sends; a reader that takes nothing for too long is given up."""
    async with asyncio.timeout(SEND_LIMIT):
        await send(message)
