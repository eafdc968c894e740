"""Inside a FastAPI application: identities by its dependencies, its lifespan, its errors and its document."""

import inspect
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import PlainTextResponse
from fastapi.security import OAuth2PasswordBearer
from fastapi.testclient import TestClient
from openapi_spec_validator import validate
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from starlette.applications import Starlette

from integrations.conftest import engine_url
from outlast import Invalid, Outlast, OutlastError, Principal, TransactionMisused
from outlast.integrations.fastapi import Submit, SyncSubmit, accepted, mount, submitter, sync_submitter
from web.shop import Note, make
from web.site import Site, scope_of

scheme = OAuth2PasswordBearer(tokenUrl="token")
ANN = {"Authorization": "Bearer ann"}


class Shop:
    """An application and what its dependencies did."""

    def __init__(self, url: str) -> None:
        self.jobs = make(url, base_url="/jobs")
        self.open = 0
        self.asked = 0
        self.app = FastAPI(lifespan=self.lifespan)
        self.app.state.company = "acme"
        self.up = False

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[dict[str, str]]:
        self.up = True
        yield {"own": "state"}
        self.up = False

    async def resource(self) -> AsyncIterator[int]:
        self.open += 1
        try:
            yield self.open
        finally:
            self.open -= 1

    def principal(self, request: Request, token: Annotated[str, Depends(scheme)], resource: int = 0) -> Principal | None:
        self.asked += 1
        if token == "banned":
            raise HTTPException(403)
        if token == "broken":
            raise RuntimeError("MARKER")
        return None if token == "nobody" else Principal(request.app.state.company, token)


@pytest.fixture
def shop(url: str) -> Shop:
    return Shop(url)


@pytest.fixture
def client(shop: Shop) -> Iterator[TestClient]:
    async def principal(
        found: Annotated[Principal | None, Depends(shop.principal)], resource: Annotated[int, Depends(shop.resource)]
    ) -> Any:
        assert resource == shop.open
        return found

    mount(shop.app, shop.jobs, identify=principal)
    engine = create_async_engine(engine_url(shop.jobs.url).replace("sqlite:", "sqlite+aiosqlite:"), poolclass=NullPool)
    blocking = create_engine(engine_url(shop.jobs.url), poolclass=NullPool)

    async def session() -> AsyncIterator[AsyncSession]:
        async with AsyncSession(engine) as db:
            yield db

    def sync_session() -> Iterator[Session]:
        with Session(blocking) as db:
            yield db

    note = shop.jobs.registry.kinds["note"]

    @shop.app.get("/own/{job_id}")
    async def own(job_id: str, who: Annotated[Principal, Depends(principal)]) -> str:
        return (await shop.jobs.get(job_id, principal=who)).state

    @shop.app.post("/notes", status_code=202)
    async def create(
        said: str,
        db: Annotated[AsyncSession, Depends(session)],
        submit: Annotated[Submit, Depends(submitter(shop.jobs, identify=principal, session=session))],
        fail: bool = False,
    ) -> Any:
        await db.execute(text("insert into business values (:note)"), {"note": said})
        handle = await submit(note, Note(text=said))
        if fail:
            raise HTTPException(418)
        await db.commit()
        return accepted(handle)

    @shop.app.post("/blocking", status_code=202)
    def create_blocking(
        said: str,
        db: Annotated[Session, Depends(sync_session)],
        submit: Annotated[SyncSubmit, Depends(sync_submitter(shop.jobs, identify=Depends(principal), session=Depends(sync_session)))],
    ) -> Any:
        db.execute(text("insert into business values (:note)"), {"note": said})
        handle = submit(note, Note(text=said))
        db.commit()
        return accepted(handle)

    with TestClient(shop.app, raise_server_exceptions=False) as found:
        yield found


def rows(shop: Shop, note: str) -> int:
    """How many rows of the application's own say so."""
    with create_engine(engine_url(shop.jobs.url), poolclass=NullPool).connect() as db:
        return int(db.execute(text("select count(*) from business where note = :note"), {"note": note}).scalar_one())


def submit(client: TestClient, key: str) -> Any:
    return client.post("/jobs/v1/jobs", json={"kind": "note", "input": {"text": "x"}}, headers={**ANN, "Idempotency-Key": key})


@pytest.mark.parametrize(
    ("token", "status", "challenge"),
    [(None, 401, "Bearer"), ("nobody", 401, 'Bearer realm="outlast"'), ("banned", 403, None), ("broken", 500, None), ("ann", 200, None)],
)
def test_a_dependency_says_who_calls(client: TestClient, shop: Shop, token: str | None, status: int, challenge: str | None) -> None:
    answer = client.get("/jobs/v1/jobs", headers={} if token is None else {"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.headers.get("www-authenticate")) == (status, challenge)
    assert "MARKER" not in answer.text
    assert shop.open == 0, "what the dependency opened is closed again"


def test_a_missing_header_is_nobody(url: str) -> None:
    jobs = make(url, base_url="/jobs")
    app = FastAPI()

    async def principal(x_user: Annotated[str, Header()]) -> Principal:
        return Principal("acme", x_user)

    mount(app, jobs, identify=Depends(principal))
    with TestClient(app) as client:
        assert client.get("/jobs/v1/jobs").status_code == 401
        assert client.get("/jobs/v1/jobs", headers={"X-User": "ann"}).status_code == 200


def test_overrides_of_a_test_hold(client: TestClient, shop: Shop) -> None:
    shop.app.dependency_overrides[shop.principal] = lambda: Principal("acme", "carl")
    assert client.get("/jobs/v1/jobs").status_code == 200
    shop.app.dependency_overrides.clear()
    assert client.get("/jobs/v1/jobs").status_code == 401


def test_a_stream_asks_again_and_holds_nothing(client: TestClient, shop: Shop) -> None:
    job = submit(client, "stream").json()
    client.post(f"/jobs/v1/jobs/{job['id']}/cancel", headers={**ANN, "If-Match": "*"})
    asked = shop.asked
    answer = client.get(f"/jobs/v1/jobs/{job['id']}/events", headers=ANN)
    assert (answer.status_code, answer.text.count("event: job")) == (200, 1)
    assert shop.asked > asked
    assert shop.open == 0


def test_links_lead_to_where_it_is_mounted(client: TestClient) -> None:
    answer = submit(client, "links")
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/jobs/v1/jobs/{answer.json()['id']}"
    assert client.get(answer.headers["location"], headers=ANN).json()["state"] == "queued"
    assert "Your work" in client.get("/jobs/", headers=ANN).text


def test_refusals_in_own_routes_are_problem_documents(client: TestClient) -> None:
    answer = client.get("/own/unknown", headers={**ANN, "X-Request-Id": "r-1"})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.json() == {
        "type": "/jobs/problems#not_found",
        "title": "Nothing is here for you",
        "status": 404,
        "detail": "There is no such job.",
        "instance": "urn:outlast:request:r-1",
        "code": "not_found",
        "retryable": False,
        "correlation_id": "r-1",
    }


def test_an_application_that_handles_them_itself_goes_first(url: str) -> None:
    jobs = make(url, base_url="/jobs")
    app = FastAPI()

    @app.exception_handler(OutlastError)
    async def mine(request: Request, error: Exception) -> Any:
        return PlainTextResponse("mine", 499)

    mount(app, jobs, identify=lambda: Principal("acme", "ann"))

    @app.get("/own")
    async def own() -> None:
        await jobs.get("unknown", principal=Principal("acme", "ann"))

    with TestClient(app) as client:
        assert client.get("/own").status_code == 499


@pytest.mark.parametrize("path", ["/notes", "/blocking"])
def test_a_row_and_its_job_are_committed_together(client: TestClient, shop: Shop, path: str) -> None:
    answer = client.post(path, params={"said": path}, headers={**ANN, "X-Request-Id": "r-2"})
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert (answer.headers["location"], answer.headers["retry-after"]) == (job["url"], "2")
    shown = client.get(job["url"], headers=ANN).json()
    assert (shown["state"], shown["correlation_id"]) == ("queued", "r-2")
    assert client.get(job["url"], headers={"Authorization": "Bearer bob"}).status_code == 404
    assert rows(shop, path) == 1


def test_a_route_that_fails_leaves_neither(client: TestClient, shop: Shop) -> None:
    before = client.get("/jobs/v1/jobs", headers=ANN).json()["items"]
    assert client.post("/notes", params={"said": "lost", "fail": True}, headers=ANN).status_code == 418
    assert client.get("/jobs/v1/jobs", headers=ANN).json()["items"] == before
    assert rows(shop, "lost") == 0


def test_a_misuse_is_the_applications_own_defect(shop: Shop) -> None:
    """It is no refusal: the application's log has it, with its words."""
    mount(shop.app, shop.jobs, identify=shop.principal)

    @shop.app.post("/wrong")
    async def wrong() -> None:
        no_session: Any = create_engine("sqlite://")
        await shop.jobs.submit(shop.jobs.registry.kinds["note"], Note(text="x"), owner=Principal("acme", "ann"), transaction=no_session)

    with TestClient(shop.app) as client, pytest.raises(TransactionMisused):
        client.post("/wrong")


def test_a_store_that_fails_is_503(url: str, tmp_path: Path) -> None:
    jobs = make(f"sqlite:///{tmp_path / 'empty.db'}", base_url="/jobs")
    app = FastAPI()
    mount(app, jobs, identify=lambda: None)

    @app.get("/own")
    async def own() -> None:
        await jobs.get("01a231c7-710f-7319-853f-c82537995874", principal=Principal("acme", "ann"))

    with TestClient(app) as client:
        answer = client.get("/own")
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "not_migrated", "2")
    assert "outlast migrate" not in answer.text


async def test_a_server_of_its_own_asks_the_same_dependency(shop: Shop) -> None:
    """`outlast serve`, where the application's middleware does not stand around it."""
    site = Site(shop.jobs, mount(shop.app, shop.jobs, identify=shop.principal))
    pairs = [(b"host", b"testserver"), (b"authorization", b"Bearer ann")]
    assert (await site.raw(scope_of("GET", "/v1/jobs", pairs), [b""])).status == 200
    assert (await site.raw(scope_of("GET", "/v1/jobs", pairs[:1]), [b""])).status == 401
    await shop.jobs.close()


def test_a_session_of_another_scope_is_given_as_such(shop: Shop) -> None:
    """As the document says: FastAPI tells sessions of different scopes apart."""
    if "scope" not in inspect.signature(Depends).parameters:
        pytest.skip("NOT TESTED WITH SCOPES: this FastAPI has none")
    given: Any = Depends(shop.resource, scope="function")  # type: ignore[call-arg, unused-ignore]
    seen: list[tuple[int, int, int]] = []

    @shop.app.get("/scopes")
    async def scopes(
        resource: Annotated[int, given],
        same: Annotated[Submit, Depends(submitter(shop.jobs, identify=lambda: Principal("acme", "ann"), session=given))],
        other: Annotated[Submit, Depends(submitter(shop.jobs, identify=lambda: Principal("acme", "ann"), session=shop.resource))],
    ) -> None:
        seen.append((resource, same._transaction, other._transaction))

    with TestClient(shop.app) as client:
        client.get("/scopes")
    assert seen[0][0] == seen[0][1] != seen[0][2]


def test_nobody_submits_nothing(client: TestClient) -> None:
    answer = client.post("/notes", params={"said": "x"}, headers={"Authorization": "Bearer nobody"})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_the_lifespan_of_the_application_holds_both(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    async def close() -> None:
        closed.append(shop.up)

    mount(shop.app, shop.jobs, identify=shop.principal)
    monkeypatch.setattr(shop.jobs, "close", close)
    for _ in range(2):  # as tests do
        with TestClient(shop.app) as client:
            assert shop.up
            assert client.get("/jobs/readyz").status_code == 200
    assert len(closed) == 2


async def test_streams_end_when_the_server_is_told_to_stop(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the thread of a server, whose own handler comes after."""
    heard: list[str] = []
    earlier = signal.signal(signal.SIGTERM, lambda *_: heard.append("server"))
    try:
        application = mount(shop.app, shop.jobs, identify=shop.principal)
        monkeypatch.setattr(application.service.watcher, "stop", lambda: heard.append("streams"))
        servers = signal.getsignal(signal.SIGTERM)
        async with shop.app.router.lifespan_context(shop.app):
            signal.raise_signal(signal.SIGTERM)
        assert heard == ["streams", "server"]
        assert signal.getsignal(signal.SIGTERM) is servers
    finally:
        signal.signal(signal.SIGTERM, earlier)


def test_its_calls_are_in_the_applications_document(client: TestClient) -> None:
    said = client.get("/openapi.json").json()
    validate(said)
    operation = said["paths"]["/jobs/v1/jobs"]["post"]
    assert operation["security"] == [{"OAuth2PasswordBearer": []}]
    assert operation["operationId"] == "outlast_submit_job"
    assert "security" not in said["paths"]["/jobs/healthz"]["get"]
    assert "OutlastJob" in said["components"]["schemas"]
    assert list(said["components"]["securitySchemes"]) == ["OAuth2PasswordBearer"]
    assert client.get("/openapi.json").json() == said


@pytest.mark.parametrize("base", ["", "/", "https://jobs.example"])
def test_without_a_path_of_its_own_it_is_refused(base: str) -> None:
    with pytest.raises(Invalid, match="base_url='/jobs'"):
        mount(FastAPI(), Outlast("sqlite:///x.db", base_url=base), identify=lambda: None)


def test_what_is_no_dependency_is_refused() -> None:
    wrong: Any = "ann"
    with pytest.raises(Invalid, match="Depends"):
        mount(FastAPI(), Outlast("sqlite:///x.db", base_url="/jobs"), identify=wrong)


def test_behind_a_proxy_that_takes_the_prefix_away(url: str, tmp_path: Path) -> None:
    jobs = make(url, base_url="https://shop.example/app/jobs")
    app = FastAPI()
    mount(app, jobs, identify=lambda: Principal("acme", "ann"), path="/jobs")
    with TestClient(app) as client:
        answer = submit(client, "proxied")
        assert answer.headers["location"].startswith("https://shop.example/app/jobs/v1/jobs/")
        assert client.get("/jobs/v1/jobs").status_code == 200


def test_a_session_that_is_none_submits_nothing(shop: Shop) -> None:
    """It would be no transaction at all."""
    mount(shop.app, shop.jobs, identify=shop.principal)
    note = shop.jobs.registry.kinds["note"]
    ann = Principal("acme", "none")

    async def forgotten() -> None:
        """Without its yield."""

    @shop.app.post("/none")
    async def none(submit: Annotated[Submit, Depends(submitter(shop.jobs, identify=lambda: ann, session=forgotten))]) -> None:
        await submit(note, Note(text="x"))

    @shop.app.post("/blocking-none")
    def blocking(submit: Annotated[SyncSubmit, Depends(sync_submitter(shop.jobs, identify=lambda: ann, session=forgotten))]) -> None:
        submit(note, Note(text="x"))

    with TestClient(shop.app) as client:
        for path in ("/none", "/blocking-none"):
            with pytest.raises(TransactionMisused, match="None") as refused:
                client.post(path)
            assert refused.value.code == "session_invalid"
    assert shop.jobs.sync.list(principal=ann).items == ()
    shop.jobs.sync.close()


@pytest.mark.parametrize("wrong", ["owner", "key", "kind", "unregistered"])
def test_what_a_route_did_wrong_is_no_refusal(shop: Shop, wrong: str) -> None:
    """Its client can do nothing about it."""
    mount(shop.app, shop.jobs, identify=shop.principal)
    note: Any = shop.jobs.registry.kinds["note"]
    given: dict[str, Any] = {"owner": Principal("acme", "ann")}
    given |= {"owner": {"owner": "ann"}, "key": {"key": "mein Schlüssel"}}.get(wrong, {})
    kind: Any = {"kind": "note", "unregistered": make("sqlite:///other.db").registry.kinds["note"]}.get(wrong, note)

    @shop.app.post("/wrong")
    async def route() -> None:
        await shop.jobs.submit(kind, Note(text="x"), **given)

    with TestClient(shop.app) as client, pytest.raises(OutlastError):
        client.post("/wrong")


def test_an_input_that_does_not_fit_is_the_clients(shop: Shop) -> None:
    mount(shop.app, shop.jobs, identify=shop.principal)
    misfit: Any = Note(text=5)  # type: ignore[arg-type]

    @shop.app.post("/misfit")
    async def route() -> None:
        await shop.jobs.submit(shop.jobs.registry.kinds["note"], misfit, owner=Principal("acme", "ann"))

    with TestClient(shop.app) as client:
        answer = client.post("/misfit")
    assert (answer.status_code, answer.json()["pointers"]) == (422, ["/text"])


@pytest.mark.parametrize(
    ("raised", "api", "page"),
    [
        (HTTPException(303, headers={"Location": "/login"}), 401, 303),
        (HTTPException(404), 404, 404),
        (HTTPException(418), 403, 403),
        (HTTPException(503, headers={"Retry-After": "7"}), 503, 503),
        (HTTPException(500), 500, 500),
    ],
)
def test_other_answers_of_a_dependency(shop: Shop, raised: HTTPException, api: int, page: int) -> None:
    async def principal() -> Principal:
        raise raised

    mount(shop.app, shop.jobs, identify=principal)
    with TestClient(shop.app, follow_redirects=False) as client:
        answers = client.get("/jobs/v1/jobs"), client.get("/jobs/", headers={"Accept": "text/html"})
    assert [answer.status_code for answer in answers] == [api, page]
    assert answers[1].headers.get("location") == ("/login" if page == 303 else None)
    assert answers[0].headers.get("retry-after") == ("7" if api == 503 else None)


def test_a_dependency_that_wants_a_body_is_refused() -> None:
    async def principal(note: dict[str, str]) -> Principal:
        return Principal("acme", note["text"])

    with pytest.raises(Invalid, match="body"):
        mount(FastAPI(), Outlast("sqlite:///x.db", base_url="/jobs"), identify=principal)


def test_a_parameter_of_the_address_is_logged_once(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    async def principal(user: str) -> Principal:
        return Principal("acme", user)

    mount(shop.app, shop.jobs, identify=principal)
    with TestClient(shop.app) as client:
        for _ in range(2):
            assert client.get("/jobs/v1/jobs").status_code == 401
    said = [record for record in caplog.records if "takes user from the address" in record.getMessage()]
    assert len(said) == 1


def test_a_root_path_whose_proxy_took_it_away(url: str) -> None:
    """As the framework's own routes are found with it."""
    jobs = make(url, base_url="/pre/jobs")
    app = FastAPI()
    app.root_path = "/pre"  # as an argument it is deprecated in the newest, and does the same
    mount(app, jobs, identify=lambda: Principal("acme", "ann"), path="/jobs")
    with TestClient(app) as client:
        assert client.get("/jobs/v1/jobs").status_code == 200
        assert 'href="/pre/jobs/' in client.get("/jobs/").text
        assert client.get("/pre/jobs/v1/jobs").status_code == 200


async def test_streams_end_in_an_application_within_another(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody runs its lifespan."""
    heard: list[str] = []
    application = mount(shop.app, shop.jobs, identify=shop.principal)
    monkeypatch.setattr(application.service.watcher, "stop", lambda: heard.append("streams"))
    main = FastAPI()
    main.mount("/sub", shop.app)
    earlier = signal.signal(signal.SIGTERM, lambda *_: heard.append("server"))
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        site: Any = main
        for _ in range(2):
            asked = scope_of("GET", "/sub/jobs/healthz", [(b"host", b"testserver")])
            assert (await Site(shop.jobs, site).raw({**asked, "root_path": ""}, [b""])).status == 200
        signal.raise_signal(signal.SIGTERM)
        assert heard == ["streams", "server"]
    finally:
        signal.signal(signal.SIGTERM, earlier)
        signal.signal(signal.SIGINT, interrupt)
        await shop.jobs.close()


@pytest.mark.parametrize("path", ["jobs", "/", ""])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(Invalid, match="path= is a path from the root"):
        mount(FastAPI(), Outlast("sqlite:///x.db", base_url="/jobs"), identify=lambda: None, path=path)


def test_what_cannot_be_mounted_is_refused() -> None:
    wrong: Any = Starlette()
    jobs, app = Outlast("sqlite:///x.db", base_url="/jobs"), FastAPI()
    with pytest.raises(Invalid, match="takes the FastAPI application"):
        mount(wrong, jobs, identify=lambda: None)
    mount(app, jobs, identify=lambda: None)
    for path in ("/jobs", "/other"):
        with pytest.raises(Invalid, match="once"):
            mount(app, jobs, identify=lambda: None, path=path)
    nothing: Any = None
    for make_one in (submitter, sync_submitter):
        with pytest.raises(Invalid, match="Outlast"):
            make_one(nothing, identify=lambda: None, session=lambda: None)
