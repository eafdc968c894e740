"""A store that is away, read-only, not migrated, or that lost its answer; and defects: what callers are told, and what they are not."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from starlette.exceptions import HTTPException

from outlast import NotFound, NotMigrated, OutcomeUnknown, Outlast, Principal, StoreUnavailable
from outlast.domain.errors import Contended
from outlast.http.watcher import rest_after
from outlast.observe.events import reason_of
from outlast.store.program import Operation
from web.shop import make
from web.site import Answer, Site

SECRET = "hunter2"


async def post(site: Site, key: str = "k") -> Answer:
    return await site.call("POST", "/v1/jobs", json_body={"kind": "note", "input": {"text": "x"}}, headers={"Idempotency-Key": key})


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreUnavailable(f"cannot reach postgresql://u:{SECRET}@db/x"), "store_unavailable"),
        (OutcomeUnknown(f"lost {SECRET}"), "outcome_unknown"),
        (NotMigrated(f"missing 0001 in {SECRET}"), "not_migrated"),
        (Contended("again"), "contended"),
    ],
)
async def test_trouble_of_the_store_is_503_in_words_for_callers(
    small: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, code: str
) -> None:
    job = await small.submit()

    async def fail(operation: Operation[Any]) -> Any:
        raise error

    monkeypatch.setattr(small.jobs.store, "run", fail)
    calls = [
        await post(small),
        await small.call("GET", "/v1/jobs"),
        await small.call("GET", f"/v1/jobs/{job['id']}"),
        await small.call("GET", f"/v1/jobs/{job['id']}/events"),
        await small.call("GET", "/v1/events"),
        await small.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"}),
    ]
    for answer in calls:
        assert (answer.status, answer.code, answer.json["retryable"]) == (503, code, True)
        assert int(answer.headers["retry-after"]) >= 1
        assert SECRET not in answer.body.decode()
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(said) == len(calls), "an operator sees each, with its reason and without its text"
    assert all(f"failed ({type(error).__name__})" in line and SECRET not in line for line in said)
    ready = await small.call("GET", "/readyz", None)
    assert (ready.status, ready.json) == (503, {"status": "unavailable", "code": code})
    assert (await small.call("GET", "/healthz", None)).status == 200


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)  # a file that cannot be written: test_cases.py
async def test_a_database_that_only_reads_accepts_nothing_and_shows_everything(site: Site) -> None:
    job = await site.submit()
    await site.jobs.close()
    with psycopg.connect(site.jobs.url, autocommit=True) as admin:
        admin.execute(f'alter database "{admin.info.dbname}" set default_transaction_read_only = on')
    answer = await post(site)
    assert (answer.status, answer.code) == (503, "store_unavailable")
    assert (await site.call("GET", f"/v1/jobs/{job['id']}")).json["id"] == job["id"]


async def test_a_store_that_is_not_there_is_said_in_time() -> None:
    site = Site(make(f"postgresql://ann:{SECRET}@127.0.0.1:1/nothing"))
    answer = await asyncio.wait_for(post(site), 15)
    assert (answer.status, answer.code) == (503, "store_unavailable")
    assert SECRET not in answer.body.decode()
    site.app.stop()
    await site.jobs.close()


async def test_a_store_that_is_not_migrated(tmp_path: Path) -> None:
    site = Site(make(f"sqlite:///{tmp_path / 'new.db'}"))
    answer = await post(site)
    assert (answer.status, answer.code) == (503, "not_migrated")
    assert (await site.call("GET", "/readyz", None)).json["code"] == "not_migrated"
    site.app.stop()
    await site.jobs.close()


async def test_a_stream_outlives_an_outage(small: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await small.submit()
    store = small.jobs.store
    run = store.run
    away = asyncio.Event()
    failed = asyncio.Event()

    async def sometimes(operation: Operation[Any]) -> Any:
        if away.is_set() and operation.name == "watched":
            failed.set()
            raise StoreUnavailable("away")
        return await run(operation)

    monkeypatch.setattr(store, "run", sometimes)
    monkeypatch.setattr("outlast.http.watcher.TROUBLE", 0.2)
    async with small.opened(f"/v1/jobs/{job['id']}/events") as stream:
        away.set()
        await asyncio.wait_for(failed.wait(), 8)
        away.clear()
        await small.call("POST", f"/v1/jobs/{job['id']}/cancel", headers={"If-Match": "*"})
        seen = [event["id"] async for event in stream.events(8)]
    assert seen == ["1.queued", "2.cancelled"]


def raising(error: BaseException) -> Any:
    def identify(_request: Any) -> Any:
        raise error

    return identify


async def test_a_defect_is_an_opaque_500_that_the_log_knows(small: Site, caplog: pytest.LogCaptureFixture) -> None:
    site = Site(small.jobs, small.jobs.asgi(identify=raising(RuntimeError(f"password {SECRET}"))))
    answer = await site.call("GET", "/v1/jobs", headers={"X-Request-Id": "find-me"})
    assert (answer.status, answer.code, answer.json["correlation_id"]) == (500, "internal", "find-me")
    assert SECRET not in answer.body.decode()
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert record.__dict__["outlast_correlation_id"] == "find-me"
    assert "RuntimeError at" in record.getMessage()
    assert SECRET not in record.getMessage()


async def test_what_identify_may_say(small: Site) -> None:
    async def later(_request: Any) -> None:
        return None

    unauthorized = HTTPException(401, "who?", headers={"WWW-Authenticate": "Basic", "X-Other": "no"})
    for identify, status, challenge in (
        (lambda _request: None, 401, 'Bearer realm="outlast"'),
        (later, 401, 'Bearer realm="outlast"'),
        (raising(unauthorized), 401, "Basic"),
        (raising(HTTPException(401)), 401, 'Bearer realm="outlast"'),
        (raising(HTTPException(403)), 403, None),
        (raising(HTTPException(418)), 403, None),
        (raising(HTTPException(404)), 404, None),
        (raising(HTTPException(303, headers={"Location": "/login"})), 401, 'Bearer realm="outlast"'),
        (raising(HTTPException(502)), 503, None),
        (raising(HTTPException(500)), 500, None),
        (lambda _request: "ann", 500, None),
    ):
        site = Site(small.jobs, small.jobs.asgi(identify=identify))
        answer = await site.call("GET", "/v1/jobs")
        assert (answer.status, answer.headers.get("www-authenticate")) == (status, challenge)
        assert "x-other" not in answer.headers


async def test_errors_of_outlast_that_identify_raises_are_its_own_failure(small: Site, caplog: pytest.LogCaptureFixture) -> None:
    for identify, named in (
        (raising(NotFound(f"nobody {SECRET}")), "identify: NotFound at"),
        (lambda _request: Principal("acme", ""), "identify: Invalid at"),
        (lambda _request: Principal("acme", None), "identify: Invalid at"),  # type: ignore[arg-type]
        (lambda _request: "ann", "identify must return a Principal or None, not a str"),
    ):
        caplog.clear()
        site = Site(small.jobs, small.jobs.asgi(identify=identify))
        answer = await site.call("GET", "/v1/jobs")
        assert (answer.status, answer.code) == (500, "internal")
        assert SECRET not in answer.body.decode()
        (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
        assert named in record.getMessage()
        assert SECRET not in record.getMessage()


async def test_a_plain_identify_may_block(small: Site) -> None:
    """Each stays until the other has come: on the event loop neither would."""
    met = threading.Barrier(2)

    def slow(_request: Any) -> Principal:
        met.wait(20)
        return Principal("acme", "ann")

    site = Site(small.jobs, small.jobs.asgi(identify=slow))
    answers = await asyncio.gather(site.call("GET", "/v1/jobs"), site.call("GET", "/v1/jobs"))
    assert [answer.status for answer in answers] == [200, 200]


def test_the_reason_of_an_error_is_its_types_and_the_databases_code(tmp_path: Path) -> None:
    def opening() -> None:
        try:
            sqlite3.connect(f"file:{tmp_path}/none?mode=ro", uri=True)
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(SECRET) from error

    with pytest.raises(StoreUnavailable) as caught:
        opening()
    assert reason_of(caught.value) == "StoreUnavailable, from OperationalError SQLITE_CANTOPEN"


def test_one_slow_read_keeps_nobody_blind_for_long() -> None:
    assert [rest_after(cost) for cost in (0.001, 0.1, 3.0, 60.0)] == [0.05, 0.5, 2.0, 2.0]


def test_an_application_without_an_authenticator_cannot_be_made() -> None:
    jobs = Outlast("sqlite:///x.db")
    with pytest.raises(Exception, match="identify"):
        jobs.asgi(identify=None)  # type: ignore[arg-type]
