"""A project's settings, addresses, users, pages and commands."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.models import Session
from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.core.wsgi import get_wsgi_application
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client, SimpleTestCase, override_settings
from django.test.testcases import DatabaseOperationForbidden
from starlette.requests import Request

from integrations.django.conftest import on, tidy
from integrations.django.shop.jobs import Order, parcel
from outlast import Invalid, NotMigrated, Principal
from outlast.cli.main import commands
from outlast.integrations.django import Mounted, MountedWsgi, identify, jobs, principal_of, store_url
from outlast.integrations.django.addresses import _postgresql
from outlast.integrations.django.checks import check_settings
from outlast.integrations.django.commands import TARGET, targeted, without_djangos
from outlast.integrations.django.project import Project
from outlast.store.open import parse, pending

User = get_user_model()
PASSWORD = "s3 cr/et@:%"


# ── settings and addresses ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Connection:
    """What an alias of PostgreSQL gives the driver."""

    def __init__(self, options: dict[str, Any] | None = None, **params: Any) -> None:
        self.settings_dict = {"OPTIONS": options or {}}
        self._params = params

    def get_connection_params(self) -> dict[str, Any]:
        return {**self._params, "cursor_factory": object, "prepare_threshold": None, "context": object()}


@pytest.mark.parametrize(
    ("connection", "url"),
    [
        (Connection(dbname="shop"), "postgresql:///shop"),
        (Connection(dbname="shop", user="ann", host="db.example", port="5433"), "postgresql://ann@db.example:5433/shop"),
        (Connection(dbname="a/b", user="a@b", password=PASSWORD), "postgresql://a%40b:s3%20cr%2Fet%40%3A%25@/a%2Fb"),
        (Connection(dbname="shop", host="/var/run/postgresql"), "postgresql:///shop?host=%2Fvar%2Frun%2Fpostgresql"),
        (Connection(dbname="shop", host="a,b", port="1,2"), "postgresql:///shop?host=a%2Cb&port=1%2C2"),
        (Connection(service="shop", sslmode="require"), "postgresql:///?service=shop&sslmode=require"),
        (Connection({"assume_role": "app"}, dbname="shop"), "postgresql:///shop?options=-c%20role%3Dapp"),
    ],
)
def test_the_address_of_an_alias(connection: Connection, url: str) -> None:
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    assert _postgresql(connection) == url
    read = conninfo_to_dict(url)
    for name, value in connection._params.items():
        assert read[name] == value
    assert PASSWORD not in parse(url).shown


def test_an_sqlite_alias(databases: Path) -> None:
    url = store_url("lite")
    assert parse(url).target == str(databases / "shop 100%.sqlite3")
    for alias, words in (("memory", "in memory"), ("nowhere", "dummy")):
        with pytest.raises(ImproperlyConfigured, match=words):
            store_url(alias)


def test_two_libraries_on_one_file_are_refused(databases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_SQLITE_DRIVER", "apsw")
    with pytest.raises(ImproperlyConfigured, match="corrupts"):
        store_url("lite")


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ({"database": "typo"}, "outlast.E002", "'typo'"),
        ({"database": "nowhere"}, "outlast.E003", "dummy"),
        ({"database": "memory"}, "outlast.E003", "TEST"),
        ({"database": 7}, "outlast.E001", "alias"),
        ({"databse": "default"}, "outlast.E001", "'databse'"),
        ({"tenant": "nowhere.at_all"}, "outlast.E001", "nowhere.at_all"),
        ({"roles": 3}, "outlast.E001", "function"),
        ({"migrate": "yes"}, "outlast.E001", "True or False"),
        ({"base_url": "jobs"}, "outlast.E001", "base_url"),
        ([], "outlast.E001", "dict"),
        ({"database": "deferred"}, "outlast.W001", "IMMEDIATE"),
        ({"base_url": "/"}, "outlast.W002", "/jobs"),
    ],
)
def test_what_check_says(said: Any, code: str, words: str, default: None) -> None:
    with override_settings(OUTLAST=said):
        (found,) = check_settings()
    assert found.id == code
    assert words in f"{found.msg} {found.hint}"


@pytest.mark.parametrize("said", [{"base_url": "jobs"}, {"tenant": "nowhere.at_all"}])
def test_wrong_settings_are_for_the_check_to_say_and_for_each_call(said: Any, default: None) -> None:
    with override_settings(OUTLAST=said):
        project = Project()  # as an app's jobs.py does, before any check runs
        with pytest.raises(ImproperlyConfigured):
            project.sync.get("x", principal=Principal("acme", "ann"))


def test_good_settings(alias: str) -> None:
    connections[alias].close()
    del connections[alias]  # as in a process that has not connected yet
    assert check_settings() == []


def test_migrate_brings_the_store_up(databases: Path, tmp_path: Path) -> None:
    connections["deferred"].close()
    before = connections["deferred"].settings_dict["NAME"]
    connections["deferred"].settings_dict["NAME"] = str(tmp_path / "new.sqlite3")
    try:
        with override_settings(OUTLAST={"database": "deferred", "migrate": False}):
            call_command("migrate", database="deferred", verbosity=0)
            assert pending(store_url("deferred"))
            with pytest.raises(NotMigrated):
                jobs.sync.submit(parcel, Order("x"), owner=Principal("acme", "ann"), transaction="deferred")
        with on("deferred"):
            call_command("migrate", database="deferred", verbosity=0)
            assert not pending(store_url("deferred"))
            jobs.sync.submit(parcel, Order("x"), owner=Principal("acme", "ann"), transaction="deferred")
    finally:
        jobs.sync.close()
        connections["deferred"].close()
        connections["deferred"].settings_dict["NAME"] = before


def test_a_test_database_can_be_destroyed(default: None) -> None:
    connection: Any = connections["default"]
    before = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        jobs.sync.submit(parcel, Order("x"), owner=Principal("acme", "ann"))
    finally:
        connection.creation.destroy_test_db(before, verbosity=0)
    assert connection.settings_dict["NAME"] == before


def test_an_alias_that_django_forgets_is_opened_anew(databases: Path) -> None:
    with on("lite"):
        first = jobs.sync.store
        assert jobs.sync.store is first
    with on("default"):
        assert jobs.sync.store is not first


class Apart(SimpleTestCase):
    """A test that may not touch the database."""

    __test__ = False

    def runTest(self) -> None:  # noqa: N802 - unittest's name
        with pytest.raises(DatabaseOperationForbidden):
            jobs.sync.submit(parcel, Order("x"), owner=Principal("acme", "apart"))
        with pytest.raises(DatabaseOperationForbidden):
            asyncio.run(self._submit())
        jobs.sync.close()

    async def _submit(self, subject: str = "apart") -> None:
        try:
            await jobs.submit(parcel, Order("x"), owner=Principal("acme", subject))
        finally:
            await jobs.close()


class Allowed(Apart):
    databases = frozenset({"lite"})

    def runTest(self) -> None:  # noqa: N802
        jobs.sync.submit(parcel, Order("x"), owner=Principal("acme", "allowed"))
        asyncio.run(self._submit("allowed"))


def run(case: type[SimpleTestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest.TestSuite([case()]).run(result)
    return result


@pytest.mark.parametrize("alias", ["lite"], indirect=True)
@pytest.mark.parametrize("connected", [False, True])
def test_a_test_that_may_not_touch_the_database_does_not(alias: str, connected: bool) -> None:
    assert not jobs.sync.list(principal=Principal("acme", "apart")).items
    if connected:
        connections[alias].ensure_connection()
    result = run(Apart)
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])
    assert not jobs.sync.list(principal=Principal("acme", "apart")).items
    result = run(Allowed)
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])


@pytest.mark.parametrize("alias", ["lite"], indirect=True)
def test_pytest_djangos_guard_is_asked(alias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def blocked(*args: object) -> None:
        raise RuntimeError("Database access not allowed")

    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", blocked)
    with pytest.raises(RuntimeError, match="not allowed"):
        jobs.sync.submit(parcel, Order("x"), owner=Principal("acme", "blocked"))


# ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def company(user: Any) -> str:
    return f"company-{user.username}"


def accountants(user: Any) -> list[str]:
    return ["accountant"] if user.username == "ann" else []


@pytest.fixture
def ann(alias: str) -> Iterator[Any]:
    """A user, where Django's sessions are: in the default database."""
    user = User.objects.create_user("ann", password="x")
    yield user
    user.delete()


def test_whose_a_user_is(ann: Any) -> None:
    assert principal_of(ann) == Principal("site", str(ann.pk))
    ann.is_superuser = True
    assert principal_of(ann).roles == {"operator"}
    ann.is_superuser = False
    with override_settings(OUTLAST={"tenant": company, "roles": accountants}):
        assert principal_of(ann) == Principal("company-ann", str(ann.pk), roles=["accountant"])
    with pytest.raises(Invalid, match="Nobody"):
        principal_of(AnonymousUser())
    with pytest.raises(Invalid, match="not saved"):
        principal_of(User(username="new"))


def signed_in(user: Any) -> str:
    client = Client()
    client.force_login(user)
    return f"sessionid={client.cookies['sessionid'].value}"


@pytest.mark.parametrize("alias", ["lite"], indirect=True)
def test_a_session_is_only_read(alias: str, ann: Any) -> None:
    client = Client()
    client.force_login(ann)
    key = client.cookies["sessionid"].value
    request = Request({"type": "http", "headers": [(b"cookie", f"sessionid={key}".encode())]})
    kept = Session.objects.get(pk=key)

    def untouched() -> bool:
        return Session.objects.get(pk=key).session_data == kept.session_data

    assert identify(request) == principal_of(ann)
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["for-tests"]):
        assert identify(request) == principal_of(ann)
        assert untouched()
    ann.set_password("y")
    ann.save()
    assert identify(request) is None
    assert untouched()
    assert identify(Request({"type": "http", "headers": [(b"cookie", b"sessionid=stolen")]})) is None


async def ask(app: Any, path: str, **headers: str) -> tuple[int, str]:
    """What an ASGI application answers."""
    sent: list[dict[str, Any]] = []
    named = [(b"host", b"localhost"), *((name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items())]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": named,
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
    }
    gone, bodies = asyncio.Event(), [b""]

    async def receive() -> dict[str, Any]:
        if bodies:
            bodies.clear()
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    gone.set()
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]).decode()


async def test_under_asgi_the_sessions_user_sees_their_jobs(alias: str, ann: Any) -> None:
    handle = await jobs.submit(parcel, Order("x"), owner=principal_of(ann))
    cookie = await sync_to_async(signed_in)(ann)
    assert handle.url == f"/jobs/v1/jobs/{handle.id}"
    app = Mounted(get_asgi_application())
    assert (await ask(app, handle.url))[0] == 401
    assert (await ask(app, handle.url, cookie="sessionid=stolen"))[0] == 401
    status, body = await ask(app, handle.url, cookie=cookie)
    assert (status, json.loads(body)["id"]) == (200, handle.id)
    status, page = await ask(app, "/jobs/", cookie=cookie, accept="text/html")
    assert status == 200
    assert handle.id in page
    other = await User.objects.acreate_user("bob", password="x")
    assert (await ask(app, handle.url, cookie=await sync_to_async(signed_in)(other)))[0] == 404
    await other.adelete()
    assert (await ask(app, "/admin/login/"))[0] == 200  # Django's own
    assert (await ask(app, "/jobsite"))[0] == 404
    await tidy()


async def test_a_servers_lifespan_gives_connections_back(alias: str) -> None:
    told = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    said: list[str] = []

    async def receive() -> dict[str, str]:
        return told.pop(0)

    async def send(message: dict[str, str]) -> None:
        said.append(message["type"])

    app = Mounted(get_asgi_application())
    await app({"type": "lifespan"}, receive, send)
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    app.stop()


@pytest.mark.parametrize("alias", ["lite"], indirect=True)  # the adapter's loop never ends, and would keep a pool of PostgreSQL's
def test_under_wsgi_too(alias: str, ann: Any) -> None:
    handle = jobs.sync.submit(parcel, Order("x"), owner=principal_of(ann))
    application = MountedWsgi(get_wsgi_application())

    def answer(path: str, cookie: str = "", script: str = "", application: Any = application) -> tuple[str, bytes]:
        said: list[str] = []
        environ = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": path,
            "SCRIPT_NAME": script,
            "QUERY_STRING": "",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "localhost",
            "HTTP_COOKIE": cookie,
            "wsgi.url_scheme": "http",
            "wsgi.input": open(os.devnull, "rb"),  # noqa: SIM115, PTH123 - closed with the process
            "wsgi.errors": sys.stderr,
        }
        body = application(environ, lambda status, headers, exc_info=None: said.append(status))
        data = b"".join(body)
        environ["wsgi.input"].close()
        return said[0], data

    assert answer(handle.url)[0].startswith("401")
    status, body = answer(handle.url, signed_in(ann))
    assert status.startswith("200")
    assert json.loads(body)["id"] == handle.id
    assert answer("/admin/login/")[0].startswith("200")
    with override_settings(OUTLAST={"database": alias, "base_url": "/app/jobs"}):
        below = MountedWsgi(get_wsgi_application())
        assert answer(handle.url, signed_in(ann), "/app", below)[0].startswith("200")
        assert answer(f"/app{handle.url}", signed_in(ann), "", below)[0].startswith("200")
        assert answer(handle.url, signed_in(ann), "", below)[0].startswith("404")
        assert answer("/admin/login/", "", "/app", below)[0].startswith("200")


async def test_an_identify_of_the_projects_own(databases: Path) -> None:
    def who(request: Any) -> Principal | None:
        name = request.headers.get("X-User")
        return Principal("acme", name) if name else None

    handle = await jobs.submit(parcel, Order("x"), owner=Principal("acme", "ann"))
    with override_settings(OUTLAST={"identify": who}):
        app = Mounted(get_asgi_application())
        assert (await ask(app, handle.url, x_user="ann"))[0] == 200
        assert (await ask(app, handle.url))[0] == 401
    await tidy()


def test_no_sessions_and_nobody_who_says_who_calls(databases: Path) -> None:
    with (
        override_settings(INSTALLED_APPS=["outlast.integrations.django", "django.contrib.auth", "django.contrib.contenttypes"]),
        pytest.raises(ImproperlyConfigured, match="identify"),
    ):
        Mounted(get_asgi_application())
    with override_settings(OUTLAST={"base_url": ""}), pytest.raises(Invalid, match="path"):
        Mounted(get_asgi_application())


def test_the_admin_leads_to_the_page(databases: Path) -> None:
    root = User.objects.create_superuser("root", password="x")
    client = Client()
    client.force_login(root)
    try:
        index = client.get("/admin/").content.decode()
        one_app = client.get("/admin/auth/").content.decode()
    finally:
        root.delete()
    assert index.count('href="/jobs/"') >= 1
    assert "Background jobs" in index
    assert "Users" in index
    assert "Users" in one_app


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("worker", ["--queue", "mail=2"], [TARGET, "--queue", "mail=2"]),
        ("jobs", ["submit", "parcel", "--as", "a:b"], ["submit", TARGET, "parcel", "--as", "a:b"]),
        ("jobs", ["list"], ["list"]),
        ("jobs", ["--help"], ["--help"]),
        ("queues", [], []),
        ("doctor", ["--json"], [TARGET, "--json"]),
        ("migrate", ["--check"], ["--check"]),
    ],
)
def test_where_a_command_takes_an_application_it_is_the_projects(name: str, given: list[str], wanted: list[str]) -> None:
    import click  # noqa: PLC0415

    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    assert targeted(command, given) == wanted


def test_every_command_of_manage_py_ends_its_process(databases: Path) -> None:
    with pytest.raises(CommandError, match=r"manage\.py"):
        call_command("outlast_migrate")
    with pytest.raises(CommandError, match=r"manage\.py"):
        call_command("outlast_jobs", "list", "--json")


def test_what_every_command_of_manage_py_takes_is_djangos() -> None:
    given = ["list", "--settings", "a.b", "--json", "-v", "2", "-v3", "--verbosity=1", "--traceback", "--pythonpath=x", "--", "-v", "2"]
    assert without_djangos(given) == ["list", "--json", "--", "-v", "2"]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_commands_run_on_the_projects_store(tmp_path: Path) -> None:
    def manage(*args: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "PYTHONPATH": str(tmp_path), "DJANGO_SETTINGS_MODULE": "small", "PYTHONWARNINGS": "ignore"}
        environ["OUTLAST_STORE"] = f"sqlite:///{tmp_path}/of-another-program.sqlite3"
        return subprocess.run(
            [sys.executable, "-m", "django", *args], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
        )

    (tmp_path / "small.py").write_text(
        "from pathlib import Path\n"
        "DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': Path(__file__).parent / 'small.sqlite3',\n"
        "    'OPTIONS': {'transaction_mode': 'IMMEDIATE'}}}\n"
        "INSTALLED_APPS = ['outlast.integrations.django', 'orders']\n"
        "OUTLAST = {'database': 'default'}\nSECRET_KEY = 'x'\nUSE_TZ = True\n"
    )
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "__init__.py").write_text("")
    (tmp_path / "orders" / "jobs.py").write_text(
        "from dataclasses import dataclass\nfrom outlast import SyncContext\nfrom outlast.integrations.django import jobs\n\n"
        "@dataclass\nclass Note:\n    text: str\n\n"
        "@jobs.task\ndef note(ctx: SyncContext, note: Note) -> str:\n    return note.text\n"
    )
    assert manage("outlast_migrate", "--check").returncode == 1
    done = manage("outlast_migrate")
    assert done.returncode == 0, done.stderr
    assert "is up to date" in done.stdout
    assert not (tmp_path / "of-another-program.sqlite3").exists()
    (tmp_path / "note.json").write_text('{"text": "hello"}')
    made = manage("outlast_jobs", "submit", "note", "--input", "note.json", "--as", "acme:ann")
    assert made.returncode == 0, made.stderr
    listed = json.loads(manage("outlast_jobs", "list", "--json").stdout)
    assert [job["kind"] for job in listed["items"]] == ["note"]
    wrong = manage("outlast_worker", "--nonsense", "-v", "2", "--settings=small")
    assert wrong.returncode == 2
    assert "Usage: __main__.py outlast_worker [OPTIONS]\n" in wrong.stderr
    assert "--nonsense" in wrong.stderr
