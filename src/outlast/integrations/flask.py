"""Flask: the HTTP side below an application's own routes, who calls by a function in the request's context, and its commands.

extension = FlaskJobs(jobs, identify=principal)  # def principal() -> Principal | None: ... flask.session ...
extension.init_app(app)
"""

from __future__ import annotations

import asyncio
import contextvars
import io
import os
import threading
from collections.abc import Callable, Generator, Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import click
import flask
from a2wsgi import ASGIMiddleware
from flask import Flask
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException as Refusal
from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from werkzeug.exceptions import HTTPException
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import EnvironBuilder

from outlast.app import Outlast
from outlast.cli.main import main
from outlast.cli.options import STORE, TARGET
from outlast.domain.errors import Invalid, OutlastError
from outlast.domain.model import Handle, Principal
from outlast.domain.refusal import article
from outlast.domain.values import takes
from outlast.http.app import Application
from outlast.http.problems import Problem
from outlast.integrations.answering import ACCEPTED, correlated, headers_of, prefix_of, refusal, signed_in, told

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["FlaskJobs", "accepted"]

_NAME: Final = "outlast"
_ENVIRON: Final = "wsgi_environ"
_TASK: Final = "outlast.task"
in_hand = SimpleNamespace()
"""Holds, in a process that runs a command of `flask outlast`, the `Outlast` of its application: the command's TARGET."""


class FlaskJobs:
    """The extension: API and page below the path of the jobs' base_url, problem documents, and `flask outlast`.

    identify: a function without arguments, called in a request context of its own (so with `flask.request`, `session`, `current_user`)
    for each request and again while a stream lasts; it returns a Principal, or None for nobody, and may `abort(401)` or `abort(403)`.
    path: where a proxy takes a prefix away. Invalid without a base_url.
    """

    def __init__(
        self, jobs: Outlast, app: Flask | None = None, *, identify: Callable[[], Principal | None], path: str | None = None
    ) -> None:
        if not callable(identify) or not takes(identify, 0):
            raise Invalid("identify= takes a function without arguments that returns a Principal, or None for nobody.")
        self.jobs = jobs
        self._identify = identify
        self._prefix = prefix_of(jobs, path)
        self._mounted: list[_Mounted] = []
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Mounts API and page in the application, and adds the handler of errors and the commands."""
        if not isinstance(app, Flask):
            raise Invalid(f"init_app takes the Flask application, not {article(app)}.")
        if _NAME in app.extensions:
            raise Invalid("This application has its jobs already; call init_app once.")
        app.extensions[_NAME] = self
        application = self.jobs.asgi(identify=_Caller(app, self._identify))
        hosting: Any = app
        hosting.wsgi_app = _Mounted(app.wsgi_app, self._prefix, application)
        self._mounted.append(hosting.wsgi_app)

        def refused(error: OutlastError | Problem) -> flask.Response:
            rule = flask.request.url_rule
            answer = refusal(application, error, {"root_path": ""}, route="" if rule is None else rule.rule)
            return flask.Response(bytes(answer.body), answer.status_code, dict(answer.headers))

        app.register_error_handler(OutlastError, refused)
        app.register_error_handler(Problem, refused)
        app.cli.add_command(_command(self.jobs))

    def principal(self) -> Principal:
        """Who calls the present route, by `identify`; nobody is answered 401, as by the HTTP API."""
        return signed_in(flask.current_app.ensure_sync(self._identify)())

    def close(self) -> None:
        """Gives this process's connections back, where no request is under way: at the end of a test, say. The next one opens new ones."""
        for mounted in self._mounted:
            mounted.close(self.jobs)
        self.jobs.sync.close()


def accepted(handle: Handle) -> flask.Response:
    """202 with Location, Retry-After and `{"id", "state", "url"}`. To be returned after the commit."""
    answer = flask.jsonify(told(handle))
    answer.status_code = ACCEPTED
    answer.autocorrect_location_header = False  # a path, as the API gives it
    answer.headers.update(headers_of(handle))
    return answer


class _Mounted:
    """The application with the HTTP side below its prefix."""

    def __init__(self, app: WSGIApplication, prefix: str, application: Application) -> None:
        self._app = app
        self._application = application
        self._dispatch = DispatcherMiddleware(self._own, {prefix: self._adapted})
        self._loops: dict[int, _Loop] = {}
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return self._dispatch(environ, start_response)

    def _own(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        sent = {
            name: environ[key]
            for name, key in (("x-request-id", "HTTP_X_REQUEST_ID"), ("traceparent", "HTTP_TRACEPARENT"))
            if key in environ
        }
        with correlated(Headers(sent)):
            return self._app(environ, start_response)

    def _adapted(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """By the loop of this process: its thread does not come along through a fork."""
        with self._lock:
            loop = self._loops.get(os.getpid())
            if loop is None:
                loop = self._loops[os.getpid()] = _Loop(self._application)
        return loop.answer(environ, start_response)

    def close(self, jobs: Outlast) -> None:
        """Closes what the loop of this process holds, and ends it."""
        with self._lock:
            loop = self._loops.pop(os.getpid(), None)
        if loop is not None:
            loop.close(jobs)


class _Loop:
    """A thread in which the HTTP side runs, and the adapter to it."""

    def __init__(self, application: Application) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="outlast-http", daemon=True)
        self._thread.start()
        self._application = application
        self._adapter = ASGIMiddleware(self._begin, loop=self._loop)  # type: ignore[arg-type]  # its words for it

    def answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Generator[bytes]:
        """The answer in parts. One that is left before its end ends there: the adapter would keep it waiting."""
        try:
            yield from self._adapter(environ, start_response)  # type: ignore[arg-type]  # its words for it
        finally:
            task: asyncio.Task[None] | None = environ.pop(_TASK, None)
            if task is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(task.cancel)

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_ENVIRON][_TASK] = asyncio.current_task()
        await self._application(scope, receive, send)

    def close(self, jobs: Outlast) -> None:
        """Gives connections back, and ends the thread."""
        asyncio.run_coroutine_threadsafe(jobs.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()


class _Caller:
    """Asks the application's function, in a request context, who calls."""

    def __init__(self, app: Flask, identify: Callable[[], Principal | None]) -> None:
        self._app = app
        self._identify = identify

    def __call__(self, request: Request) -> Principal | None:
        """Who calls; what the function aborts with as Starlette's refusal. The body is not there: it is another's to read."""
        with self._app.request_context(_environ_of(request)):
            try:
                return cast("Principal | None", self._app.ensure_sync(self._identify)())
            except HTTPException as error:
                answer = error.get_response()
                raise Refusal(answer.status_code, headers=dict(answer.headers)) from error


def _environ_of(request: Request) -> WSGIEnvironment:
    """The request as WSGI has it: as the server gave it, or made anew under a server of ASGI (`outlast serve`)."""
    given: WSGIEnvironment | None = request.scope.get(_ENVIRON)
    if given is None:
        builder = EnvironBuilder(
            path=request.url.path,
            base_url=f"{request.url.scheme}://{request.url.netloc}",
            query_string=request.url.query,
            method=request.method,
            headers=request.headers.items(),
        )
        given = builder.get_environ()
    return {**given, "wsgi.input": io.BytesIO(), "CONTENT_LENGTH": "0"}


def _command(jobs: Outlast) -> click.Command:
    @click.command(_NAME, add_help_option=False, context_settings={"ignore_unknown_options": True})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def command(arguments: tuple[str, ...]) -> None:
        """The commands of Outlast, on this application's jobs and store."""
        in_hand.jobs = jobs
        os.environ.setdefault(TARGET, f"{__name__}:in_hand.jobs")
        os.environ.setdefault(STORE, jobs.url)
        # Without Flask's context, which all handlers of the worker would share: one that needs it makes its own.
        contextvars.Context().run(main, arguments, name="flask outlast")

    return command
