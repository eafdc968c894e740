"""Each object that `transaction=` takes, spoken to in one way: begin, write a business row, submit, commit or roll back."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from outlast import Outlast, Principal
from worker.accounts import ANN

TABLE = "create table purchase (name varchar(50) primary key)"
INSERT = "insert into purchase (name) values ('{}')"


class Given:
    """One transaction object, open for use; what is a coroutine in its library is awaited here."""

    def __init__(self, thing: Any, *, asynchronous: bool) -> None:
        self.thing = thing
        self.asynchronous = asynchronous

    async def do(self, sql: str) -> list[Any]:
        """Executes a statement of the caller's."""
        statement = text(sql) if type(self.thing).__module__.startswith("sqlalchemy") else sql
        result = await _awaited(self.thing.execute(statement))
        described = result.returns_rows if hasattr(result, "returns_rows") else result.description
        return list(await _awaited(result.fetchall())) if described else []

    async def buy(self, name: str) -> None:
        """The business write."""
        await self.do(INSERT.format(name))

    async def commit(self) -> None:
        await _awaited(self.thing.commit())

    async def rollback(self) -> None:
        await _awaited(self.thing.rollback())

    async def submit(self, jobs: Outlast, kind: Any, body: Any, *, owner: Principal = ANN, **options: Any) -> Any:
        if self.asynchronous:
            return await jobs.submit(kind, body, owner=owner, transaction=self.thing, **options)
        return jobs.sync.submit(kind, body, owner=owner, transaction=self.thing, **options)

    async def submit_many(self, jobs: Outlast, submissions: Any, *, owner: Principal = ANN) -> Any:
        if self.asynchronous:
            return await jobs.submit_many(submissions, owner=owner, transaction=self.thing)
        return jobs.sync.submit_many(submissions, owner=owner, transaction=self.thing)


async def _awaited(found: Any) -> Any:
    return await found if hasattr(found, "__await__") else found


Opening = Callable[[str], AbstractAsyncContextManager[Given]]


@dataclass(frozen=True)
class Adapter:
    """A kind of object, and how one is opened on a store's database."""

    name: str
    dialect: str
    opened: Opening
    snapshot: Opening
    """The same at REPEATABLE READ, on SQLite with a deferred transaction that waits for nobody."""


def alchemy_url(url: str, driver: str) -> str:
    return url.replace("sqlite://", f"sqlite+{driver}://").replace("postgresql://", f"postgresql+{driver}://")


def _options(url: str, *, snapshot: bool) -> dict[str, Any]:
    if not snapshot:
        return {"poolclass": NullPool}
    if url.startswith("sqlite"):
        return {"poolclass": NullPool, "connect_args": {"timeout": 0}}
    return {"poolclass": NullPool, "isolation_level": "REPEATABLE READ"}


def _session(driver: str, *, snapshot: bool) -> Opening:
    @asynccontextmanager
    async def opened(url: str) -> AsyncGenerator[Given]:
        engine = create_engine(alchemy_url(url, driver), **_options(url, snapshot=snapshot))
        with Session(engine) as session:
            yield Given(session, asynchronous=False)
        engine.dispose()

    return opened


def _connection(driver: str, *, snapshot: bool) -> Opening:
    @asynccontextmanager
    async def opened(url: str) -> AsyncGenerator[Given]:
        engine = create_engine(alchemy_url(url, driver), **_options(url, snapshot=snapshot))
        with engine.connect() as connection:
            yield Given(connection, asynchronous=False)
        engine.dispose()

    return opened


def _async_session(driver: str, *, snapshot: bool) -> Opening:
    @asynccontextmanager
    async def opened(url: str) -> AsyncGenerator[Given]:
        engine = create_async_engine(alchemy_url(url, driver), **_options(url, snapshot=snapshot))
        async with AsyncSession(engine) as session:
            yield Given(session, asynchronous=True)
        await engine.dispose()

    return opened


def _async_connection(driver: str, *, snapshot: bool) -> Opening:
    @asynccontextmanager
    async def opened(url: str) -> AsyncGenerator[Given]:
        engine = create_async_engine(alchemy_url(url, driver), **_options(url, snapshot=snapshot))
        async with engine.connect() as connection:
            yield Given(connection, asynchronous=True)
        await engine.dispose()

    return opened


def _psycopg(*, snapshot: bool) -> Opening:
    @asynccontextmanager
    async def opened(url: str) -> AsyncGenerator[Given]:
        with closing(psycopg.connect(url)) as connection:
            if snapshot:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield Given(connection, asynchronous=False)

    return opened


def _psycopg_async(*, snapshot: bool) -> Opening:
    @asynccontextmanager
    async def opened(url: str) -> AsyncGenerator[Given]:
        connection = await psycopg.AsyncConnection.connect(url)
        try:
            if snapshot:
                await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            yield Given(connection, asynchronous=True)
        finally:
            await connection.close()

    return opened


def _sqlite3(*, snapshot: bool) -> Opening:
    @asynccontextmanager
    async def opened(url: str) -> AsyncGenerator[Given]:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0 if snapshot else 10)) as connection:
            yield Given(connection, asynchronous=False)

    return opened


class GivenAlias(Given):
    """A database of Django's, with autocommit off."""

    def __init__(self, alias: str) -> None:
        from django.db import connections  # noqa: PLC0415 - after its settings

        super().__init__(alias, asynchronous=False)
        self._connection = connections[alias]

    async def do(self, sql: str) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall()) if cursor.description else []

    async def commit(self) -> None:
        self._connection.commit()

    async def rollback(self) -> None:
        self._connection.rollback()


def _django(*, snapshot: bool) -> Opening:
    @asynccontextmanager
    async def opened(url: str) -> AsyncGenerator[Given]:
        from integrations.django.conftest import place  # noqa: PLC0415 - it sets Django up
        from integrations.django.site import JOINED  # noqa: PLC0415

        alias = JOINED[url.partition(":")[0], snapshot]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # a blocking call in the loop of these tests, as all of blocking objects
            connection = place(alias, url)
            connection.set_autocommit(False)
            try:
                yield GivenAlias(alias)
            finally:
                connection.close()

    return opened


def _made(name: str, dialect: str, make: Callable[..., Opening], *args: str) -> Adapter:
    return Adapter(name, dialect, make(*args, snapshot=False), make(*args, snapshot=True))


ADAPTERS: Mapping[str, Adapter] = {
    adapter.name: adapter
    for adapter in (
        _made("session-psycopg", "postgresql", _session, "psycopg"),
        _made("connection-psycopg", "postgresql", _connection, "psycopg"),
        _made("async-session-psycopg", "postgresql", _async_session, "psycopg"),
        _made("async-connection-psycopg", "postgresql", _async_connection, "psycopg"),
        _made("async-session-asyncpg", "postgresql", _async_session, "asyncpg"),
        _made("async-connection-asyncpg", "postgresql", _async_connection, "asyncpg"),
        _made("psycopg", "postgresql", _psycopg),
        _made("psycopg-async", "postgresql", _psycopg_async),
        _made("django-psycopg", "postgresql", _django),
        _made("session-sqlite", "sqlite", _session, "pysqlite"),
        _made("connection-sqlite", "sqlite", _connection, "pysqlite"),
        _made("async-session-sqlite", "sqlite", _async_session, "aiosqlite"),
        _made("async-connection-sqlite", "sqlite", _async_connection, "aiosqlite"),
        _made("sqlite3", "sqlite", _sqlite3),
        _made("django-sqlite", "sqlite", _django),
    )
}

OBJECTS: Mapping[str, Adapter] = {name: adapter for name, adapter in ADAPTERS.items() if not name.startswith("django")}
"""Without the aliases of Django, which are for both colours, and whose connection opens itself anew when it was closed."""
