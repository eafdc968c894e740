"""An application around Outlast, as a real server: its pages, its jobs, a worker, and faults between them and the browser."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import socket
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from browser.works import gates, make
from outlast import Outlast
from outlast.http.development import COOKIE, identify
from outlast.store.open import migrate, open_store
from outlast.worker.runtime import Options, Worker

MOUNT: Final = "/a/jobs"
Kind = Literal["answer", "silent", "buffered", "lost"]
POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""What the host's pages allow: nothing inline, nothing foreign, no text that becomes markup or code."""


@dataclass(slots=True)
class Seen:
    """A request that reached the server. `status` is 0 until it is answered; `open`: the answer still goes on."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes = b""
    status: int = 0
    open: bool = True

    @property
    def who(self) -> str:
        """Who the request says it is from, such as acme:ann; empty for nobody."""
        said = self.headers.get("authorization", self.headers.get("cookie", ""))
        found = re.search(rf"(?:{COOKIE}=|Bearer )dev:([^;]*)", said)
        return found[1] if found else ""


@dataclass(slots=True)
class Fault:
    """What happens to requests whose method and path (below the mount, with its query) match.

    answer: this status instead of the application's. silent: no answer until the fault ends. buffered: as behind a proxy that hands an
    answer on when it is complete. lost: the application answers, and the connection breaks before that arrives.
    """

    method: str
    path: str
    kind: Kind
    status: int = 503
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    times: int | None = None
    met: int = 0
    over: bool = False

    def takes(self, scope: Scope) -> bool:
        """Whether this request is one of them; counts it."""
        query = scope["query_string"].decode()
        target = scope["path"].removeprefix(MOUNT) + (f"?{query}" if query else "")
        if self.over or self.method != scope["method"] or not re.fullmatch(self.path, target):
            return False
        if self.times is not None and self.met >= self.times:
            return False
        self.met += 1
        return True


class Host:
    """The server. Its methods may be called from the thread of the test."""

    def __init__(self, folder: Path) -> None:
        self.jobs: Outlast = make(f"sqlite:///{folder / 'jobs.db'}")
        self.requests: list[Seen] = []
        self.faults: list[Fault] = []
        self.open_calls: set[asyncio.Task[None]] = set()
        self.url = ""
        self._pages: dict[str, tuple[str, str, str]] = {}
        self._gates: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="host", daemon=True)
        self._ready = threading.Event()
        self._stopping = asyncio.Event()

    # -- pages

    def page(self, body: str, script: str = "", *, policy: str = POLICY, style: str = "") -> str:
        """The URL of a new page of the host; the script runs, and then the component, so that no event is missed."""
        name = f"{next(self._numbers)}"
        links = f'<script type="module" src="/pages/{name}.js"></script><script type="module" src="{MOUNT}/component.js"></script>'
        if style:
            links += f'<link rel="stylesheet" href="/pages/{name}.css">'
        viewport = '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        head = f'<meta charset="utf-8"><title>Host</title>{viewport}{links}'
        html = f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>'
        self._pages[f"{name}.html"] = (html, "text/html; charset=utf-8", policy)
        self._pages[f"{name}.js"] = (script, "text/javascript; charset=utf-8", policy)
        self._pages[f"{name}.css"] = (style, "text/css; charset=utf-8", policy)
        return f"{self.url}/pages/{name}.html"

    # -- what the server has seen

    def seen(self, method: str, path: str, who: str = "") -> list[Seen]:
        """The requests of somebody whose path below the mount (with its query) is this pattern's."""
        return [
            one
            for one in self.requests
            if one.method == method
            and who in ("", one.who)
            and re.fullmatch(path, one.path.removeprefix(MOUNT) + (f"?{one.query}" if one.query else ""))
        ]

    @contextmanager
    def fault(self, method: str, path: str, kind: Kind, **more: Any) -> Generator[Fault]:
        """A fault while the block lasts."""
        made = Fault(method, path, kind, **more)
        self.faults.append(made)
        try:
            yield made
        finally:
            made.over = True
            self.faults.remove(made)

    def clear(self) -> None:
        """Lets every job go on to its end, and forgets faults and requests."""
        for gate in self._gates.values():
            gates.open(gate)
        self._gates.clear()
        self.faults.clear()
        self.requests.clear()

    def break_streams(self) -> None:
        """Breaks the connections of all streams and waits that are open."""
        for task in tuple(self.open_calls):
            self._loop.call_soon_threadsafe(task.cancel)

    # -- jobs, without the browser

    def submit(self, who: str, kind: str = "letter", *, gate: str = "", **more: str) -> str:
        """The id of a new job of somebody; its tasks wait at gates of the job's own name, or of this one, until a test opens them."""
        gate = gate or uuid.uuid4().hex
        job = self.ask(who, "POST", "/v1/jobs", {"kind": kind, "input": {"gate": gate, **more}})
        self._gates[job["id"]] = gate
        return str(job["id"])

    def open(self, job_id: str, *tasks: str) -> None:
        """Lets tasks of a job go on; all of them if none is named."""
        gates.open(self._gates[job_id], *tasks)

    def job(self, who: str, job_id: str) -> dict[str, Any]:
        """A job as it stands."""
        found: dict[str, Any] = self.ask(who, "GET", f"/v1/jobs/{job_id}")
        return found

    def jobs_of(self, who: str) -> list[dict[str, Any]]:
        """All jobs of somebody."""
        found: list[dict[str, Any]] = self.ask(who, "GET", "/v1/jobs")["items"]
        return found

    def until(self, who: str, job_id: str, reached: Callable[[dict[str, Any]], bool], seconds: float = 30) -> dict[str, Any]:
        """The job as soon as it is so."""
        limit = time.monotonic() + seconds
        while not reached(job := self.job(who, job_id)):
            assert time.monotonic() < limit, job
            time.sleep(0.02)
        return job

    def ask(self, who: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """What the API answers; it is asked past all faults."""
        sent = {"Authorization": f"Bearer dev:{who}", "Idempotency-Key": uuid.uuid4().hex, **(headers or {})}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        request = urllib.request.Request(f"{self.url}/past{path}", data, sent, method=method)  # noqa: S310 - our own server
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.loads(answer.read())

    # -- running

    def start(self) -> None:
        """Returns when it takes connections and the worker works."""
        migrate(self.jobs.url)
        self._thread.start()
        if not self._ready.wait(30):
            raise RuntimeError("the host did not start")

    def stop(self) -> None:
        """Ends streams, requests, the worker and the server."""
        self.clear()
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        asgi = self.jobs.asgi(identify=identify)
        routes = [
            Route("/pages/{name}", self._page),
            Mount(MOUNT, app=_Between(asgi, self)),
            Mount("/past", app=asgi),
        ]
        sock = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        config = uvicorn.Config(Starlette(routes=routes), log_level="critical", lifespan="off", timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        store = open_store(self.jobs.url, worker=True)
        worker = Worker(store, self.jobs.registry, self.jobs.settings, Options(queues={"default": 32}, lease=30, grace=1))
        ready = asyncio.Event()
        working = asyncio.create_task(worker.run(on_ready=lambda _id: ready.set()))
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        await ready.wait()
        while not server.started:  # noqa: ASYNC110 - it tells in no other way
            await asyncio.sleep(0.01)
        self._ready.set()
        await self._stopping.wait()
        asgi.stop()
        server.should_exit = True
        await serving
        worker.stop()
        await working
        await store.close()
        await self.jobs.close()

    async def _page(self, request: Request) -> Response:
        text, media_type, policy = self._pages[request.path_params["name"]]
        return Response(text, headers={"Content-Type": media_type, "Content-Security-Policy": policy, "Cache-Control": "no-cache"})


class _Between:
    """Stands between the server and Outlast: notes requests, and lets faults happen."""

    def __init__(self, app: ASGIApp, host: Host) -> None:
        self._app = app
        self._host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        seen = Seen(scope["method"], scope["path"], scope["query_string"].decode(), headers)
        self._host.requests.append(seen)

        async def reading() -> Message:
            message = await receive()
            seen.body += message.get("body", b"")
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
            await send(message)

        fault = next((one for one in self._host.faults if one.takes(scope)), None)
        try:
            if fault is None:
                await self._answer(scope, reading, sending)
            elif fault.kind == "answer":
                await Response(fault.body, fault.status, fault.headers, media_type="application/json")(scope, reading, sending)
            elif fault.kind == "silent":
                await _silent(fault, receive)
                await _break(send)
            elif fault.kind == "buffered":
                await self._buffered(fault, scope, reading, sending)
            else:
                await self._lost(scope, reading, sending)
        finally:
            seen.open = False

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        answering = asyncio.ensure_future(self._app(scope, receive, send))
        self._host.open_calls.add(answering)
        try:
            await answering
        except asyncio.CancelledError:
            if not answering.cancelled():
                answering.cancel()
                raise
            # It was broken: an answer that ends here, without its end, closes the connection.
        finally:
            self._host.open_calls.discard(answering)

    async def _buffered(self, fault: Fault, scope: Scope, receive: Receive, send: Send) -> None:
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        await self._app(scope, receive, hold)
        for message in held:
            await send(message)

    async def _lost(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def drop(message: Message) -> None:
            pass

        await self._app(scope, receive, drop)
        await _break(send)


async def _break(send: Send) -> None:
    """An answer that ends without its body: the server breaks the connection."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _silent(fault: Fault, receive: Receive) -> None:
    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    leaving = asyncio.ensure_future(gone())
    while not fault.over and not leaving.done():  # noqa: ASYNC110 - another thread says when it is over
        await asyncio.sleep(0.05)
    leaving.cancel()
