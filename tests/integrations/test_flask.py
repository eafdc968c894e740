"""Inside a Flask application: identities by a function in its request context, its errors, its commands, its processes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flask
import pytest
from click.testing import Result
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.orm import Session

from integrations.conftest import engine_url
from outlast import Invalid, Outlast, Principal, TransactionMisused
from outlast.integrations.flask import FlaskJobs, accepted, in_hand
from web.served import Process
from web.shop import Note, make
from web.site import Site, scope_of


class Shop:
    """An application and what was asked of it."""

    def __init__(self, url: str) -> None:
        self.jobs = make(url, base_url="/jobs")
        self.extension = FlaskJobs(self.jobs, identify=self.principal)
        self.app = Flask(__name__)
        self.app.secret_key = "for tests"
        self.app.testing = True
        self.torn_down = 0
        self.app.teardown_appcontext(self._tear_down)
        self.path = ""

    def _tear_down(self, _: object) -> None:
        self.torn_down += 1

    def principal(self) -> Principal | None:
        self.path = flask.request.full_path
        if flask.request.headers.get("X-Banned"):
            flask.abort(403)
        if flask.request.headers.get("X-Broken"):
            raise RuntimeError("MARKER")
        user = flask.session.get("user")
        return None if user is None else Principal(flask.current_app.name and "acme", user)


@pytest.fixture
def shop(url: str) -> Iterator[Shop]:
    shop = Shop(url)
    shop.extension.init_app(shop.app)
    engine = create_engine(engine_url(url), poolclass=NullPool)
    note = shop.jobs.registry.kinds["note"]

    @shop.app.post("/login/<name>")
    def login(name: str) -> str:
        flask.session["user"] = name
        return ""

    @shop.app.get("/own/<job_id>")
    def own(job_id: str) -> str:
        return shop.jobs.sync.get(job_id, principal=Principal("acme", "ann")).state

    @shop.app.post("/notes/<said>")
    def create(said: str) -> flask.Response:
        with Session(engine) as db, db.begin():
            db.execute(text("insert into business values (:note)"), {"note": said})
            handle = shop.jobs.sync.submit(note, Note(text=said), owner=Principal("acme", "ann"), transaction=db)
            if said == "lost":
                flask.abort(418)
        return accepted(handle)

    yield shop
    shop.extension.close()


@pytest.fixture
def client(shop: Shop) -> FlaskClient:
    found = shop.app.test_client()
    found.post("/login/ann")
    return found


def rows(shop: Shop, note: str) -> int:
    """How many rows of the application's own say so."""
    with create_engine(engine_url(shop.jobs.url), poolclass=NullPool).connect() as db:
        return int(db.execute(text("select count(*) from business where note = :note"), {"note": note}).scalar_one())


@pytest.mark.parametrize(
    ("user", "header", "status", "challenge"),
    [
        (None, {}, 401, 'Bearer realm="outlast"'),
        ("ann", {}, 200, None),
        ("ann", {"X-Banned": "1"}, 403, None),
        ("ann", {"X-Broken": "1"}, 500, None),
    ],
)
def test_a_function_in_the_request_context_says_who_calls(
    shop: Shop, user: str | None, header: dict[str, str], status: int, challenge: str | None
) -> None:
    client = shop.app.test_client()
    if user is not None:
        client.post(f"/login/{user}")
    before = shop.torn_down
    answer = client.get("/jobs/v1/jobs?limit=7", headers=header)
    assert (answer.status_code, answer.headers.get("www-authenticate")) == (status, challenge)
    assert "MARKER" not in answer.text
    assert shop.path.endswith("/v1/jobs?limit=7")
    assert shop.torn_down == before + 1, "the context is left as after any request"


def test_the_body_is_left_to_whom_it_is_for(client: FlaskClient, shop: Shop) -> None:
    seen: list[bytes] = []
    ask = shop.principal

    def reading() -> Principal | None:
        seen.append(flask.request.get_data())
        return ask()

    app = Flask(__name__)
    app.secret_key = "for tests"
    extension = FlaskJobs(shop.jobs, app, identify=reading)
    other = app.test_client()
    with other.session_transaction() as session:
        session["user"] = "ann"
    answer = other.post("/jobs/v1/jobs", json={"kind": "note", "input": {"text": "x"}}, headers={"Idempotency-Key": "body"})
    assert (answer.status_code, seen) == (202, [b""])
    assert answer.headers["location"].startswith("/jobs/v1/jobs/")
    extension.close()


def test_the_page_is_there_and_own_routes_stay(client: FlaskClient) -> None:
    assert "Your work" in client.get("/jobs/").text
    assert client.get("/nowhere").status_code == 404
    assert client.get("/jobsx").status_code == 404


def test_refusals_in_own_routes_are_problem_documents(client: FlaskClient) -> None:
    answer = client.get("/own/unknown", headers={"X-Request-Id": "r-1"})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.json == {
        "type": "/jobs/problems#not_found",
        "title": "Nothing is here for you",
        "status": 404,
        "detail": "There is no such job.",
        "instance": "urn:outlast:request:r-1",
        "code": "not_found",
        "retryable": False,
        "correlation_id": "r-1",
    }


def test_a_row_and_its_job_are_committed_together(client: FlaskClient, shop: Shop) -> None:
    answer = client.post("/notes/together", headers={"X-Request-Id": "r-2"})
    assert answer.status_code == 202
    job: Any = answer.json
    assert (answer.headers["location"], answer.headers["retry-after"]) == (job["url"], "2")
    shown: Any = client.get(job["url"]).json
    assert (shown["state"], shown["correlation_id"]) == ("queued", "r-2")
    assert rows(shop, "together") == 1


def test_a_route_that_fails_leaves_neither(client: FlaskClient, shop: Shop) -> None:
    before = client.get("/jobs/v1/jobs").json
    assert client.post("/notes/lost").status_code == 418
    assert client.get("/jobs/v1/jobs").json == before
    assert rows(shop, "lost") == 0


def test_a_misuse_is_the_applications_own_defect(shop: Shop) -> None:
    """It is no refusal: the application's log has it, with its words."""

    @shop.app.post("/wrong")
    def wrong() -> None:
        no_session: Any = create_engine("sqlite://")
        note = shop.jobs.registry.kinds["note"]
        shop.jobs.sync.submit(note, Note(text="x"), owner=Principal("acme", "ann"), transaction=no_session)

    with pytest.raises(TransactionMisused):
        shop.app.test_client().post("/wrong")


async def test_a_server_of_asgi_may_serve_it_too(client: FlaskClient, shop: Shop) -> None:
    """`outlast serve` gives the same function a request made anew."""
    cookie = client.get_cookie("session")
    assert cookie is not None
    assert shop.jobs.identify is not None
    site = Site(shop.jobs, shop.jobs.asgi(identify=shop.jobs.identify))
    pairs = [(b"host", b"testserver"), (b"cookie", f"session={cookie.value}".encode())]
    assert (await site.raw(scope_of("GET", "/v1/jobs", pairs), [b""])).status == 200
    assert (await site.raw(scope_of("GET", "/v1/jobs", pairs[:1]), [b""])).status == 401
    await shop.jobs.close()


def run(shop: Shop, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    for name in ("OUTLAST_STORE", "OUTLAST_TARGET"):  # monkeypatch takes away what the command sets
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return shop.app.test_cli_runner().invoke(args=["outlast", *arguments])


def test_its_commands_work_on_this_store_and_these_kinds(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run(shop, monkeypatch, "jobs", "list", "--json")
    assert shown.exit_code == 0, shown.output
    assert os.environ["OUTLAST_STORE"] == shop.jobs.url
    assert run(shop, monkeypatch, "jobs", "show", "unknown").exit_code == 3
    assert "Usage: flask outlast" in run(shop, monkeypatch, "--help").output
    assert run(shop, monkeypatch, "doctor").exit_code in (0, 1)
    assert in_hand.jobs is shop.jobs


def test_what_was_closed_is_opened_again(client: FlaskClient, shop: Shop) -> None:
    before = threading.enumerate()
    assert client.get("/jobs/v1/jobs").status_code == 200
    shop.extension.close()
    shop.extension.close()
    assert client.get("/jobs/v1/jobs").status_code == 200
    shop.extension.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "outlast-http" and thread not in before]


def test_without_a_path_of_its_own_it_is_refused() -> None:
    with pytest.raises(Invalid, match="base_url='/jobs'"):
        FlaskJobs(Outlast("sqlite:///x.db"), identify=lambda: None)


def test_a_second_time_is_refused(shop: Shop) -> None:
    with pytest.raises(Invalid, match="once"):
        FlaskJobs(shop.jobs, shop.app, identify=shop.principal)


def test_an_identify_that_takes_the_request_is_refused() -> None:
    wrong: Any = lambda request: None  # noqa: E731
    with pytest.raises(Invalid, match="without arguments"):
        FlaskJobs(Outlast("sqlite:///x.db", base_url="/jobs"), identify=wrong)


FORKED = """
import os, sys
from flask import Flask
from outlast import Outlast, Principal
from outlast.integrations.flask import FlaskJobs
from outlast.store.open import migrate
migrate("sqlite:///jobs.db")
app = Flask("forked")
FlaskJobs(Outlast("sqlite:///jobs.db", base_url="/jobs"), app, identify=lambda: Principal("acme", "ann"))
print("before", app.test_client().get("/jobs/healthz").status_code, flush=True)
if os.fork() == 0:
    print("child", app.test_client().get("/jobs/v1/healthz").status_code, app.test_client().get("/jobs/healthz").status_code, flush=True)
    os._exit(0)
os.wait()
print("done", flush=True)
"""


def test_a_process_that_was_forked_answers(tmp_path: Path) -> None:
    """As a server does that loads the application before it forks."""
    with Process(tmp_path, ["-W", "ignore", "-c", FORKED]) as process:
        assert process.process.wait(15) == 0, process.log
        assert process.said.splitlines() == ["before 200", "child 404 200", "done"]


def test_nobody_in_an_own_route_is_401(shop: Shop) -> None:
    @shop.app.post("/whose")
    def whose() -> str:
        return shop.extension.principal().subject

    client = shop.app.test_client()
    client.post("/login/ann")
    assert client.post("/whose").text == "ann"
    answer = shop.app.test_client().post("/whose")
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")


def test_a_wrong_argument_of_an_own_route_is_its_own_defect(shop: Shop) -> None:
    @shop.app.post("/wrong")
    def wrong() -> None:
        nobody: Any = None
        shop.jobs.sync.submit(shop.jobs.registry.kinds["note"], Note(text="x"), owner=nobody)

    with pytest.raises(Invalid, match="owner="):
        shop.app.test_client().post("/wrong")


@pytest.mark.parametrize(("status", "api", "page"), [(302, 401, 302), (404, 404, 404), (418, 403, 403)])
def test_other_answers_of_the_function(shop: Shop, status: int, api: int, page: int) -> None:
    def nobody() -> Principal | None:
        flask.abort(flask.redirect("/login") if status == 302 else status)

    app = Flask(__name__)
    extension = FlaskJobs(shop.jobs, app, identify=nobody)
    answers = [app.test_client().get(path, headers={"Accept": "text/html"}) for path in ("/jobs/v1/jobs", "/jobs/")]
    assert [answer.status_code for answer in answers] == [api, page]
    assert answers[1].headers.get("location") == ("/login" if page == 302 else None)
    extension.close()


def test_a_server_of_one_thread_opens_no_streams(shop: Shop, client: FlaskClient) -> None:
    """One of them would hold up all other requests."""
    sent: Any = {"json": {"kind": "note", "input": {"text": "x"}}, "headers": {"Idempotency-Key": "one-thread"}}
    job: Any = client.post("/jobs/v1/jobs", **sent).json
    one: Any = {"environ_overrides": {"wsgi.multithread": False}}
    for path in ("/jobs/v1/events", f"/jobs/v1/jobs/{job['id']}/events"):
        answer = client.get(path, **one)
        assert (answer.status_code, answer.json and answer.json["code"]) == (429, "too_many_streams")
    tag = client.get(f"/jobs/v1/jobs/{job['id']}").headers["etag"]
    answer = client.get(f"/jobs/v1/jobs/{job['id']}?wait=20", headers={"If-None-Match": tag}, **one)
    assert (answer.status_code, answer.json and answer.json["code"]) == (429, "too_many_waits")


def test_a_stream_that_is_left_ends(shop: Shop, client: FlaskClient) -> None:
    answer = client.get("/jobs/v1/events", environ_overrides={"wsgi.multithread": True})
    assert answer.status_code == 200
    limits = shop.app.wsgi_app._application.service.limits  # type: ignore[attr-defined]
    assert limits.open("streams") == 1
    answer.close()
    while limits.open("streams"):  # its task is cancelled in the thread of its loop
        time.sleep(0.01)


@pytest.mark.parametrize("path", ["jobs", "/"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(Invalid, match="path= is a path from the root"):
        FlaskJobs(Outlast("sqlite:///x.db", base_url="/jobs"), identify=lambda: None, path=path)
