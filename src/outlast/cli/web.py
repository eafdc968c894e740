"""Runs the HTTP side on uvicorn: its socket, its one line when it is ready, and an end in which streams end first."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from outlast.app import Outlast
from outlast.cli.exits import Refused

if TYPE_CHECKING:
    from outlast.http.app import Application

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
PORT: Final = 8000
_KEEP_ALIVE: Final = 15
_NEEDS: Final = "needs uvicorn and Starlette: pip install 'outlast[web]' uvicorn"


def application(app: Outlast, *, development: bool) -> Application:
    """The ASGI application of a target: with identities for development, or with the authenticator that the target configures."""
    try:
        from outlast.http import development as identities  # noqa: PLC0415 - an extra
        from outlast.http.app import build  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise Refused(f"The HTTP side {_NEEDS}.", code="extra_missing") from error
    if development:
        return build(app.desk, identities.identify, development=True)
    if app.identify is None:
        raise Refused(
            "TARGET configures no authenticator, so nobody could be told from anybody. Call jobs.asgi(identify=...) in its module, "
            "with a function of the request that returns a Principal; or, on this machine only, use --dev-identities.",
            code="no_authenticator",
        )
    return build(app.desk, app.identify)


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections; Refused where it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen(2048)
    except OSError as error:
        taken.close()
        raise Refused(f"Port {port} on {host} cannot be used ({error.strerror}). Name another one with --port.", code="port") from error
    taken.setblocking(False)  # noqa: FBT003 - the name of the one argument is in the method
    return taken


class Web:
    """One server. `run` serves until `stop` was called, from whatever thread."""

    def __init__(self, app: Outlast, asgi: Application, sock: socket.socket, *, grace: float) -> None:
        try:
            from uvicorn import Config, Server  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise Refused(f"A server of its own {_NEEDS}.", code="extra_missing") from error
        from outlast.http.hosting import Hosted  # noqa: PLC0415 - an extra

        class Told(Server):
            """Leaves signals to the process, and says when it takes connections."""

            on_ready: Callable[[], None] = staticmethod(lambda: None)

            @contextmanager
            def capture_signals(self) -> Generator[None]:
                yield

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                self.on_ready()

        self._asgi = asgi
        self._socket = sock
        host, port = sock.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{port}"
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        self._server = Told(
            Config(
                Hosted(asgi, app.desk.app.base_url, loopback_only=asgi.service.development),
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                http="h11",
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=max(1, round(grace)),
            )
        )

    async def run(self, on_ready: Callable[[str], None]) -> None:
        """Serves; calls `on_ready` with the address once connections are taken."""
        self._server.on_ready = lambda: on_ready(self.url)
        await self._server.serve([self._socket])

    def stop(self) -> None:
        """Takes no new connections, ends streams and waits, and lets requests that run end within the grace period."""
        self._asgi.stop()
        self._server.should_exit = True


class WebThread:
    """A server in a thread of its own, so that a handler that blocks the worker's loop does not freeze the page."""

    def __init__(self, web: Web, app: Outlast, on_ready: Callable[[str], None]) -> None:
        self._web = web
        self._app = app
        self._on_ready = on_ready
        self._thread = threading.Thread(target=self.run, name="outlast-web", daemon=True)

    def start(self) -> None:
        """Begins to serve."""
        self._thread.start()

    def stop(self, *, patience: float) -> None:
        """Ends, and waits for that at most so many seconds."""
        self._web.stop()
        self._thread.join(patience)

    def run(self) -> None:
        """Serves in this thread instead, until the server is stopped."""
        asyncio.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        try:
            await self._web.run(self._on_ready)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(1):
                    await self._app.close()
