"""One request and its answer, whatever the answer is: of one that goes on, the first part, and then the reader leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from web.site import Answer, Site, scope_of

Pairs = Sequence[tuple[bytes, bytes]]


def bearer(who: str | None) -> list[tuple[bytes, bytes]]:
    """The header by which somebody signs in here; none for nobody."""
    return [] if who is None else [(b"authorization", f"Bearer dev:{who}".encode())]


async def exchange(site: Site, method: str, target: str, headers: Pairs, parts: Iterable[bytes] = (b"",)) -> Answer:
    """Sends the headers as they are, and a host. Parts of the body are taken one by one, as far as the application reads."""
    return await answered(site, scope_of(method, target, [(b"host", b"testserver"), *headers]), parts)


async def answered(site: Site, scope: dict[str, Any], parts: Iterable[bytes] = (b"",)) -> Answer:
    """The answer to a request as a server would hand it on."""
    waiting = iter(parts)
    body: list[bytes] = []
    gone = asyncio.Event()
    started: dict[str, Any] = {}
    ahead = next(waiting, None)

    async def receive() -> dict[str, Any]:
        nonlocal ahead
        if ahead is not None:
            part, ahead = ahead, next(waiting, None)
            return {"type": "http.request", "body": part, "more_body": ahead is not None}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            assert not started, "two answers to one request"
            started.update(message)
            return
        body.append(message.get("body", b""))
        if body[-1] or not message.get("more_body", False):
            gone.set()

    async with asyncio.timeout(15):
        await site.app(scope, receive, send)
    pairs = [(name.decode("ascii"), value.decode("latin-1")) for name, value in started["headers"]]
    names = [name for name, _ in pairs]
    assert len({*names}) == len(names) or "set-cookie" in names, f"a header twice: {names}"
    return Answer(started["status"], dict(pairs), b"".join(body))
