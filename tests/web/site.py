"""Calls an application without a server in between: what is sent and answered is bytes, as the application sees them."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from outlast import Outlast
from outlast.http.app import Application
from outlast.http.development import identify
from outlast.store.open import open_store
from outlast.worker.runtime import Exit, Options, Worker

ANN, BOB, OPS = "acme:ann", "acme:bob", "acme:olga:operator"
"""Two owners of one tenant, and its operator."""
OTHER, OTHER_OPS = "globex:ann", "globex:olga:operator"
"""The same subject in another tenant, and an operator of that."""


@dataclass(slots=True)
class Answer:
    """A whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a problem document."""
        assert self.headers["content-type"] == "application/problem+json", self
        return str(self.json["code"])


@dataclass(slots=True)
class Open:
    """An answer that goes on: its parts as they come."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    parts: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue[bytes | None])
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    frozen: asyncio.Event = field(default_factory=asyncio.Event)

    async def events(self, seconds: float = 5.0) -> AsyncIterator[dict[str, str]]:
        """The events, one by one, until the stream ends or nothing comes for so long."""
        rest = ""
        while True:
            part = await asyncio.wait_for(self.parts.get(), seconds)
            if part is None:
                return
            rest += part.decode()
            while "\n\n" in rest:
                block, _, rest = rest.partition("\n\n")
                lines = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
                found = {name: value for name, _, value in lines}
                if "data" in found:
                    yield found


def scope_of(method: str, target: str, headers: Sequence[tuple[bytes, bytes]], *, root: str = "") -> dict[str, Any]:
    """The scope of a request, as a server makes it."""
    path, _, query = target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": root + unquote(path),
        "raw_path": (root + path).encode(),
        "query_string": query.encode(),
        "root_path": root,
        "headers": list(headers),
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 80),
        "state": {},
    }


class Site:
    """An application and who calls it."""

    def __init__(self, jobs: Outlast, app: Application | None = None) -> None:
        self.jobs = jobs
        self.app = app or jobs.asgi(identify=identify)

    async def call(
        self,
        method: str,
        target: str,
        who: str | None = ANN,
        *,
        json_body: Any = None,
        body: bytes | Sequence[bytes] | None = None,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        root: str = "",
    ) -> Answer:
        """One request and its whole answer. json_body: sent as JSON; body: as it is, in one part or several."""
        pairs = [(b"host", b"testserver")]
        if who is not None:
            pairs.append((b"authorization", f"Bearer dev:{who}".encode()))
        if json_body is not None:
            body = json.dumps(json_body).encode()
            pairs.append((b"content-type", b"application/json"))
        given = headers.items() if isinstance(headers, Mapping) else headers
        pairs += [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in given]
        parts = list(body) if isinstance(body, list | tuple) else [body or b""]
        if isinstance(body, bytes):
            pairs.append((b"content-length", str(len(body)).encode()))
        return await self.raw(scope_of(method, target, pairs, root=root), parts)

    async def raw(self, scope: dict[str, Any], parts: Sequence[bytes]) -> Answer:
        """One request as the server would hand it on."""
        waiting = list(parts)
        started: dict[str, Any] = {}
        collected: list[bytes] = []
        ended = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if waiting:
                part = waiting.pop(0)
                return {"type": "http.request", "body": part, "more_body": bool(waiting)}
            await ended.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            else:
                collected.append(message.get("body", b""))
                if not message.get("more_body", False):
                    ended.set()

        await self.app(scope, receive, send)
        names = [name.decode() for name, _ in started["headers"]]
        assert len(set(names)) == len(names) or "set-cookie" in names, f"a header twice: {names}"
        return Answer(started["status"], {n.decode(): v.decode("latin-1") for n, v in started["headers"]}, b"".join(collected))

    @asynccontextmanager
    async def opened(self, target: str, who: str = ANN, *, headers: Mapping[str, str] | None = None) -> AsyncIterator[Open]:
        """A GET whose answer goes on; the reader goes away at the end of the block."""
        one = Open()
        pairs = [(b"host", b"testserver"), (b"authorization", f"Bearer dev:{who}".encode())]
        pairs += [(n.lower().encode(), v.encode()) for n, v in (headers or {}).items()]
        first = True

        async def receive() -> dict[str, Any]:
            nonlocal first
            if first:
                first = False
                return {"type": "http.request", "body": b"", "more_body": False}
            await one.gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                one.status = message["status"]
                one.headers = {n.decode(): v.decode() for n, v in message["headers"]}
                one.begun.set()
                return
            if one.frozen.is_set():
                await asyncio.Event().wait()
            if message.get("body"):
                one.parts.put_nowait(message["body"])
            if not message.get("more_body", False):
                one.parts.put_nowait(None)

        task = asyncio.create_task(self.app(scope_of("GET", target, pairs), receive, send))
        await asyncio.wait_for(one.begun.wait(), 10)
        try:
            yield one
        finally:
            one.gone.set()
            await asyncio.wait_for(task, 10)

    async def submit(
        self, kind: str = "note", who: str = ANN, *, key: str = "", seconds: float = 0.0, text: str = "hello"
    ) -> dict[str, Any]:
        """A job, admitted over HTTP."""
        answer = await self.call(
            "POST",
            "/v1/jobs",
            who,
            json_body={"kind": kind, "input": {"text": text, "seconds": seconds}},
            headers={"Idempotency-Key": key or uuid.uuid4().hex},
        )
        assert answer.status in (200, 202), answer
        found: dict[str, Any] = answer.json
        return found

    async def until(self, job_id: str, reached: Callable[[dict[str, Any]], bool], who: str = ANN) -> dict[str, Any]:
        """The job as soon as it is so."""
        async with asyncio.timeout(15):
            while True:
                job: dict[str, Any] = (await self.call("GET", f"/v1/jobs/{job_id}", who)).json
                if reached(job):
                    return job
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def working(self, options: Options | None = None) -> AsyncIterator[Worker]:
        """A worker of the application, in this process, while the block lasts."""
        store = open_store(self.jobs.url, worker=True)
        self.jobs.store.hints.subscribe(store.hints.send)
        worker = Worker(store, self.jobs.registry, self.jobs.settings, options or Options(lease=5))
        ready = asyncio.Event()
        task = asyncio.create_task(worker.run(on_ready=lambda _id: ready.set()))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        try:
            yield worker
        finally:
            worker.stop()
            assert await task is Exit.CLEAN
            await store.close()


def final(job: dict[str, Any]) -> bool:
    return job["state"] in ("completed", "cancelled")


async def until(reached: Callable[[], bool]) -> None:
    """Returns when it is so; fails after a time that no machine is too slow for."""
    async with asyncio.timeout(15):
        while not reached():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.01)
