"""Fixtures that every part of the suite shares: real servers, started when a test first asks for one."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from servers.mariadb import MariaDbServer, installed
from servers.postgres import PostgresServer, available_servers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for software of Debian, so that `-m "not debian"` leaves it out."""
    for item in items:
        if {"postgres_15", "mariadb_server"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.debian)


def _heard_by() -> tuple[object, ...]:
    """Who hears the signals of this process."""
    wakes = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakes)
    return wakes, *(signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """A test that takes the signals over gives them back: what keeps them would end this process during another test."""
    before = _heard_by()
    yield
    assert _heard_by() == before


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The PostgreSQL that most tests use: the wheel's, one for each test process."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_15() -> Iterator[PostgresServer]:
    """Debian's PostgreSQL 15, the oldest that is supported; skips where it is not installed."""
    places = dict(available_servers())
    if "debian-15" not in places:
        pytest.skip("NOT TESTED ON POSTGRESQL 15: Debian's postgresql-15 is not installed (apt-get install it)")
    with PostgresServer(places["debian-15"]) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDbServer]:
    """Debian's MariaDB; skips where it is not installed."""
    if not installed():
        pytest.skip("NOT TESTED ON MARIADB: Debian's mariadb-server is not installed (apt-get install it)")
    with MariaDbServer() as server:
        yield server
