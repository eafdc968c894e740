"""Secrets in inputs, results, exceptions, credentials and addresses: nowhere but where their owner reads results."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from msgspec import Struct
from starlette.requests import Request

from outlast import Context, Outlast, Permanent, Plan, Principal, SyncContext
from outlast.http.routes import ROUTES
from outlast.observe.logging import JsonFormatter
from outlast.store.open import migrate
from servers.postgres import PostgresServer
from web.exchange import answered
from web.matrix.entries import TOKEN
from web.shop import alone
from web.site import Answer, Site, scope_of

PAYLOAD: Final = "MARKER-payload-password"
RESULT: Final = "MARKER-result"
MESSAGE: Final = "MARKER-message postgresql://u:MARKER-dsn-in-text@db/x"
CAUSE: Final = "MARKER-cause"
LOCAL: Final = "MARKER-local"
OBJECT: Final = "MARKER-repr"
CREDENTIAL: Final = "MARKER-credential"
OPERATORS: Final = "MARKER-operators"
PASSWORD: Final = "MARKER-of-the-dsn"
_numbers: Final = itertools.count(1)
_SHOWS_RESULTS: Final = frozenset({"get_result", "get_task_result", "page_result", "page_task_result"})
_CODES: Final[dict[str, str | None]] = {
    "good": None,
    "raises": "error",
    "raises_in_thread": "error",
    "unserialisable": "result_invalid",
    "refuses": "refused",
    "raises_in_a_step": "error",
}
"""The kinds, and the code that their owner is shown."""


class Login(Struct, kw_only=True):
    password: str
    authorization: str
    dsn: str


class Opaque:
    def __repr__(self) -> str:
        return OBJECT


def _fail(login: Login) -> None:
    token = f"Bearer {LOCAL}"
    try:
        int(f"{CAUSE} {token}")
    except ValueError as error:
        raise RuntimeError(f"{MESSAGE} {login.password} /etc/secret/path") from error


def make(url: str) -> Outlast:  # noqa: C901 - one task after the other
    jobs = Outlast(url)

    @jobs.task
    async def echo(ctx: Context, login: Login) -> dict[str, str]:
        return {"result": RESULT, "password": login.password}

    @jobs.task(name="do_raises", max_attempts=1)
    async def raises(ctx: Context, login: Login) -> None:
        _fail(login)

    @jobs.task(name="do_raises_in_thread", max_attempts=1)
    def raises_in_thread(ctx: SyncContext, login: Login) -> None:
        _fail(login)

    @jobs.task(name="do_unserialisable", max_attempts=1)
    async def unserialisable(ctx: Context, login: Login) -> dict[str, Any]:
        return {"a": Opaque()}

    @jobs.task(name="do_refuses", max_attempts=1)
    async def refuses(ctx: Context, login: Login) -> None:
        try:
            _fail(login)
        except RuntimeError as error:
            raise Permanent("refused", "The provider refuses this account.") from error

    @jobs.task(name="do_raises_in_a_step", max_attempts=1)
    async def raises_in_a_step(ctx: Context, login: Login) -> None:
        async def failing() -> None:
            _fail(login)

        await ctx.step("login", failing)

    @jobs.kind("good")
    def good(plan: Plan[Login], input: Login) -> None:
        plan.task(echo, label="Echo", usable=True)

    for task in (raises, raises_in_thread, unserialisable, refuses, raises_in_a_step):
        alone(jobs, task.name.removeprefix("do_"), task)
    return jobs


def identify(request: Request) -> Principal | None:
    known = {f"Bearer {CREDENTIAL}": (), f"Bearer {OPERATORS}": ("operator",)}
    roles = known.get(request.headers.get("authorization", ""))
    return None if roles is None else Principal("acme", "olga" if roles else "ann", roles=roles)


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store; on PostgreSQL the address has a password, which the server of these tests does not ask for."""
    if request.param == "sqlite":
        made = f"sqlite:///{tmp_path / 'jobs.db'}"
        migrate(made)
        return made
    server: PostgresServer = request.getfixturevalue("postgres_server")
    dsn = server.create_database(f"secrets_{next(_numbers)}")
    migrate(dsn)
    return with_password(dsn)


def with_password(dsn: str) -> str:
    parts = urlsplit(dsn)
    user, _, where = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.partition(':')[0]}:{PASSWORD}@{where}").geturl()


@dataclass(slots=True)
class Everything:
    """Every answer that was given, with the route and who asked."""

    site: Site
    answers: list[tuple[str, str, Answer]]

    async def ask(self, route: str, who: str, method: str, path: str, body: bytes = b"", /, **headers: str) -> Answer:
        more = ((name.lower().replace("_", "-").encode(), value.encode()) for name, value in headers.items())
        pairs = [(b"host", b"testserver"), *more]
        if who:
            pairs.append((b"authorization", f"Bearer {who}".encode()))
        answer = await answered(self.site, scope_of(method, path, pairs), [body])
        self.answers.append((route, who, answer))
        return answer


@pytest.fixture
async def everything(address: str, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Everything]:
    caplog.set_level(logging.DEBUG)
    jobs = make(address)
    site = Site(jobs, jobs.asgi(identify=identify))
    yield Everything(site, [])
    site.app.stop()
    await site.jobs.close()


async def test_markers_are_nowhere_but_in_the_owners_results(everything: Everything, caplog: pytest.LogCaptureFixture) -> None:
    made: dict[str, str] = {}
    body = '{"kind":"%s","input":{"password":"%s","authorization":"Bearer %s","dsn":"%s"}}'
    for kind in _CODES:
        sent = (body % (kind, PAYLOAD, PAYLOAD, PAYLOAD)).encode()
        headers = {"Content_Type": "application/json", "Idempotency_Key": kind}
        made[kind] = (await everything.ask("submit_job", CREDENTIAL, "POST", "/v1/jobs", sent, **headers)).json["id"]
    async with everything.site.working():
        ended = {kind: await _settled(everything, job_id) for kind, job_id in made.items()}
    assert {kind: job["attention"] and job["attention"]["code"] for kind, job in ended.items()} == _CODES
    for job_id in made.values():
        for route in ROUTES:
            for who in (CREDENTIAL, OPERATORS, ""):
                path = route.path.replace("{id}", job_id).replace("{no}", "0").replace("{name}", "x")
                headers = {"Cookie": f"outlast_form={TOKEN}", "Accept": "text/html" if route.page else "*/*"}
                if route.method == "GET":
                    await everything.ask(route.name, who, "GET", path, **headers)
                elif "{id}" in route.path:
                    more = {"If_Match": '"99"', "Idempotency_Key": f"key-{PAYLOAD}", "Content_Type": "application/json"}
                    refused = f'{{"attention_id": "9.9", "action": "dismiss", "input": {{"password": "{PAYLOAD}"}}}}'.encode()
                    await everything.ask(route.name, who, route.method, path, refused, **headers, **more)
    leaks = [
        f"{route} for {who or 'nobody'}: {answer}"
        for route, who, answer in everything.answers
        if "MARKER" in str(answer.headers) + answer.body.decode() and not (route in _SHOWS_RESULTS and who == CREDENTIAL)
    ]
    assert not leaks, "\n".join(leaks)
    shown = [answer for route, who, answer in everything.answers if route == "get_result" and who == CREDENTIAL and answer.status == 200]
    assert [(answer.json["result"], answer.json["password"]) for answer in shown] == [(RESULT, PAYLOAD)]
    assert len({route for route, _, _ in everything.answers}) > 20
    assert_silent(caplog)


async def _settled(everything: Everything, job_id: str) -> dict[str, Any]:
    async with asyncio.timeout(15):
        while True:
            answer = await everything.ask("get_job", CREDENTIAL, "GET", f"/v1/jobs/{job_id}")
            if answer.json["state"] in ("completed", "needs_attention"):
                found: dict[str, Any] = answer.json
                return found
            await asyncio.sleep(0.02)


def assert_silent(caplog: pytest.LogCaptureFixture) -> None:
    """No record of any library has a marker: not in its text, its fields, its exception, nor as a line of JSON."""
    assert [record for record in caplog.records if record.name.startswith("outlast") and record.levelno == logging.DEBUG]
    found = [record for record in caplog.records if "MARKER" in f"{vars(record)} {record.getMessage()} {JsonFormatter().format(record)}"]
    assert not found
    assert "MARKER" not in caplog.text


async def test_an_error_of_the_hosts_own_function_is_not_told(everything: Everything, caplog: pytest.LogCaptureFixture) -> None:
    def failing(request: Request) -> Principal | None:
        _fail(Login(password=PAYLOAD, authorization=PAYLOAD, dsn=PAYLOAD))
        return None

    everything.site.app.service.authenticator._identify = failing
    for path in ("/v1/jobs", "/v1/events", "/"):
        answer = await everything.ask("x", CREDENTIAL, "GET", path)
        assert answer.status == 500
        assert "MARKER" not in str(answer)
    failed = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(failed) == 3
    assert_silent(caplog)


@pytest.mark.timeout(60)
async def test_a_store_that_is_away_keeps_its_password(postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    parts = urlsplit(with_password(postgres_server.dsn("nowhere")))
    pairs = [(b"host", b"testserver"), (b"authorization", f"Bearer {CREDENTIAL}".encode())]
    applications = [make(parts._replace(netloc=netloc).geturl()) for netloc in (parts.netloc, f"u:{PASSWORD}@127.0.0.1:1")]
    sites = [Site(jobs, jobs.asgi(identify=identify)) for jobs in applications]
    calls = [answered(site, scope_of("GET", path, pairs)) for site in sites for path in ("/v1/jobs", "/readyz", "/")]
    for answer in await asyncio.gather(*calls):
        assert answer.status == 503
        assert "MARKER" not in str(answer)
    for jobs in applications:
        await jobs.close()
    assert_silent(caplog)
