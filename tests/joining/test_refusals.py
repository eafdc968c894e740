"""What `transaction=` cannot be: a clear word each, and nothing written."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.adapt import Dumper, Loader
from psycopg.types.numeric import IntDumper
from psycopg.types.string import StrDumper
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from joining.adapters import ADAPTERS, INSERT, OBJECTS, TABLE, Adapter, Given, alchemy_url
from joining.conftest import Order, Shop, application
from joining.test_joining import NOTHING
from outlast import Invalid, NotMigrated, StoreUnavailable, TransactionMisused, Unique
from outlast.store.open import migrate
from servers.postgres import PostgresServer
from worker.accounts import ANN, Bank

one = pytest.mark.parametrize
postgres = one("adapter", [ADAPTERS["session-psycopg"]], ids=["postgresql"])
sqlite = one("adapter", [ADAPTERS["session-sqlite"]], ids=["sqlite"])
both = one("adapter", [ADAPTERS["session-psycopg"], ADAPTERS["session-sqlite"]], ids=["postgresql", "sqlite"])


@one("adapter", OBJECTS.values(), ids=OBJECTS.keys())
async def test_closed(adapter: Adapter, shop: Shop) -> None:
    async with adapter.opened(shop.url) as given:
        if "session" in adapter.name:  # it opens itself anew; its connection does not
            thing = given.thing.connection()
            thing = await thing if given.asynchronous else thing
            given = Given(thing, asynchronous=given.asynchronous)  # noqa: PLW2901
        closing_now = given.thing.close()
        if given.asynchronous:
            await closing_now
        with pytest.raises(TransactionMisused, match="closed") as raised:
            await given.submit(shop.jobs, shop.ship, Order("book"))
    assert raised.value.code == "session_invalid"
    assert shop.rows() == NOTHING


@one(
    "adapter",
    [a for a in ADAPTERS.values() if a.dialect == "postgresql"],
    ids=[a.name for a in ADAPTERS.values() if a.dialect == "postgresql"],
)
async def test_failed_already(adapter: Adapter, shop: Shop) -> None:
    """On SQLite a statement that fails leaves its transaction as it is."""
    async with adapter.opened(shop.url) as given:
        with pytest.raises(Exception, match="no_such_table"):
            await given.do("select * from no_such_table")
        with pytest.raises(TransactionMisused, match="Roll it back") as raised:
            await given.submit(shop.jobs, shop.ship, Order("book"))
        assert raised.value.code == "session_invalid"
        await given.rollback()
        await given.submit(shop.jobs, shop.ship, Order("book"))
        await given.commit()
    assert shop.rows()["job"] == 1


@one("adapter", OBJECTS.values(), ids=OBJECTS.keys())
async def test_of_the_other_colour(adapter: Adapter, shop: Shop) -> None:
    async with adapter.opened(shop.url) as given:
        wrong = Given(given.thing, asynchronous=not given.asynchronous)
        with pytest.raises(TransactionMisused, match=r"jobs\.sync\.submit" if not given.asynchronous else r"await jobs\.submit"):
            await wrong.submit(shop.jobs, shop.ship, Order("book"))
    assert shop.rows() == NOTHING


async def test_on_another_database(adapter: Adapter, shop: Shop, tmp_path: Path, postgres_server: PostgresServer) -> None:
    """With Outlast's tables and without, and of another kind altogether."""
    name = f"elsewhere_{secrets.token_hex(4)}"
    other = f"sqlite:///{tmp_path / 'other.db'}" if adapter.dialect == "sqlite" else postgres_server.create_database(name)
    foreign = f"sqlite:///{tmp_path / 'foreign.db'}" if adapter.dialect == "postgresql" else postgres_server.dsn()
    Bank(other).do(TABLE)
    for migrated in (False, True):
        if migrated:
            migrate(other)
        async with adapter.opened(other) as given:
            await given.buy(f"book{migrated}")
            with pytest.raises(TransactionMisused, match="another database") as raised:
                await given.submit(shop.jobs, shop.ship, Order("book"))
            assert raised.value.code == "session_elsewhere"
            await given.commit()  # its own transaction is as it was
    assert len(Bank(other).do("select * from purchase")) == 2
    async with adapter.opened(shop.url) as given:
        with pytest.raises(TransactionMisused, match="another database"):
            await _elsewhere(given, foreign)
    assert shop.rows() == NOTHING


async def _elsewhere(given: Given, url: str) -> None:
    other = application(url)
    await given.submit(other.jobs, other.ship, Order("book"))


async def test_a_store_that_is_not_migrated(adapter: Adapter, tmp_path: Path, postgres_server: PostgresServer) -> None:
    name = f"bare_{secrets.token_hex(4)}"
    bare = f"sqlite:///{tmp_path / 'bare.db'}" if adapter.dialect == "sqlite" else postgres_server.create_database(name)
    Bank(bare).do(TABLE)
    shop = application(bare)
    async with adapter.opened(bare) as given:
        await given.buy("book")
        with pytest.raises(NotMigrated, match="outlast migrate"):
            await given.submit(shop.jobs, shop.ship, Order("book"))
        await given.commit()
    assert shop.bought == ["book"]
    await shop.jobs.close()


@both
async def test_the_server_started_anew_is_the_same_database(adapter: Adapter, shop: Shop) -> None:
    """What was found out before says nothing of a new connection; the store is asked again before anybody is refused."""
    async with adapter.opened(shop.url) as given:
        await given.submit(shop.jobs, shop.ship, Order("book"))
        await given.commit()
    if adapter.dialect == "postgresql":
        store: Any = shop.jobs.store
        store._whereabouts = type(store._whereabouts)("as it was before", migrated=True)
    async with adapter.opened(shop.url) as given:
        await given.submit(shop.jobs, shop.ship, Order("pen"))
        await given.commit()
    assert shop.rows()["job"] == 2


@both
async def test_replace_needs_a_transaction_of_its_own(adapter: Adapter, shop: Shop) -> None:
    async with adapter.opened(shop.url) as given:
        with pytest.raises(Invalid, match="replace"):
            await given.submit(shop.jobs, shop.ship, Order("book"), unique=Unique("one", "replace"))
        await given.commit()
    assert shop.rows() == NOTHING


def _engine(url: str, **options: Any) -> Any:
    return create_engine(alchemy_url(url, "pysqlite" if url.startswith("sqlite") else "psycopg"), poolclass=NullPool, **options)


@both
async def test_what_is_no_session(adapter: Adapter, shop: Shop) -> None:
    engine = _engine(shop.url)
    things: list[Any] = [engine, sessionmaker(engine), Session, object(), 7, b"default"]
    with engine.connect() as connection, closing(connection.connection.cursor()) as cursor:
        for thing in (*things, cursor, connection.begin(), engine.raw_connection()):
            with pytest.raises(TransactionMisused, match="transaction= takes") as raised:
                shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=thing)
            assert raised.value.code == "session_invalid"
    assert shop.rows() == NOTHING


@postgres
async def test_another_driver_of_sqlalchemys(adapter: Adapter, shop: Shop) -> None:
    with _engine(shop.url).connect() as connection:
        connection.dialect.driver = "pg8000"
        with pytest.raises(TransactionMisused, match="'pg8000' is not supported"):
            shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=connection)


@both
async def test_a_session_without_an_engine(adapter: Adapter, shop: Shop) -> None:
    with Session() as session, pytest.raises(TransactionMisused, match="no engine"):
        shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=session)


@postgres
async def test_a_session_whose_flush_failed(adapter: Adapter, shop: Shop) -> None:
    with Session(_engine(shop.url)) as session:
        session.execute(text(INSERT.format("book")))
        with pytest.raises(Exception, match="duplicate"):
            session.execute(text(INSERT.format("book")))
        with pytest.raises(TransactionMisused, match="Roll it back"):
            shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=session)


@postgres
async def test_a_connection_that_nobody_awaited(adapter: Adapter, shop: Shop) -> None:
    engine = create_async_engine(alchemy_url(shop.url, "psycopg"), poolclass=NullPool)
    with pytest.raises(TransactionMisused, match="begun or awaited"):
        await shop.jobs.submit(shop.ship, Order("book"), owner=ANN, transaction=engine.connect())


@both
async def test_registries_give_the_session_of_this_thread_or_task(adapter: Adapter, shop: Shop) -> None:
    scoped = scoped_session(sessionmaker(_engine(shop.url)))
    scoped.execute(text(INSERT.format("book")))
    shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=scoped)
    scoped.rollback()
    scoped.remove()
    driver = "aiosqlite" if adapter.dialect == "sqlite" else "psycopg"
    made = async_sessionmaker(create_async_engine(alchemy_url(shop.url, driver), poolclass=NullPool), class_=AsyncSession)
    of_task = async_scoped_session(made, scopefunc=asyncio.current_task)
    await of_task.execute(text(INSERT.format("pen")))
    await shop.jobs.submit(shop.ship, Order("pen"), owner=ANN, transaction=of_task)
    await of_task.commit()
    await of_task.remove()
    assert (shop.bought, shop.rows()["job"]) == (["pen"], 1)


def _autocommit(url: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    if url.startswith("sqlite"):
        yield "sqlite3", lambda: sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        yield "sqlalchemy", lambda: _engine(url, isolation_level="AUTOCOMMIT").connect()
    else:
        yield "psycopg", lambda: psycopg.connect(url, autocommit=True)
        yield "sqlalchemy", lambda: _engine(url, isolation_level="AUTOCOMMIT").connect()


@both
async def test_in_autocommit_it_is_committed_when_it_returns(adapter: Adapter, shop: Shop) -> None:
    for number, (_, connect) in enumerate(_autocommit(shop.url), 1):
        with closing(connect()) as connection:
            shop.jobs.sync.submit(shop.parcel, Order("book"), owner=ANN, transaction=connection, key=f"k{number}")
            assert shop.rows()["job"] == number
    driver = "aiosqlite" if adapter.dialect == "sqlite" else "asyncpg"
    engine = create_async_engine(alchemy_url(shop.url, driver), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    async with engine.connect() as given:
        await shop.jobs.submit(shop.parcel, Order("book"), owner=ANN, transaction=given)
        assert shop.rows()["job"] == 3


@both
async def test_a_transaction_begun_in_words_on_an_autocommit_connection_is_the_callers(adapter: Adapter, shop: Shop) -> None:
    with closing(next(_autocommit(shop.url))[1]()) as connection:
        connection.execute("begin")
        shop.jobs.sync.submit(shop.parcel, Order("book"), owner=ANN, transaction=connection)
        connection.execute("rollback")
    assert shop.rows() == NOTHING


@postgres
async def test_a_role_without_rights(adapter: Adapter, shop: Shop) -> None:
    role = f"role_{secrets.token_hex(4)}"
    shop.bank.do(f"create role {role} login")
    with psycopg.connect(shop.url) as connection:
        connection.execute(f"set role {role}")
        with pytest.raises((StoreUnavailable, NotMigrated), match=r"lacks rights.*grant"):
            shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=connection)
    shop.bank.do(f"drop role {role}")


@postgres
async def test_a_read_only_transaction(adapter: Adapter, shop: Shop) -> None:
    with psycopg.connect(shop.url) as connection:
        connection.read_only = True
        with pytest.raises(StoreUnavailable, match="may only read"):
            shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=connection)


@postgres
async def test_pipeline_mode(adapter: Adapter, shop: Shop) -> None:
    with psycopg.connect(shop.url) as connection, connection.pipeline(), pytest.raises(TransactionMisused, match="pipeline"):
        shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=connection)


@postgres
async def test_the_callers_own_ways_with_rows_and_placeholders(adapter: Adapter, shop: Shop) -> None:
    from psycopg import RawCursor  # noqa: PLC0415
    from psycopg.rows import dict_row  # noqa: PLC0415

    with psycopg.connect(shop.url, row_factory=dict_row, cursor_factory=RawCursor) as connection:
        connection.execute("set search_path to pg_catalog")
        connection.execute("set datestyle to 'German'")
        first = shop.jobs.sync.submit(shop.parcel, Order("book"), owner=ANN, transaction=connection, key="k")
        again = shop.jobs.sync.submit(shop.parcel, Order("book"), owner=ANN, transaction=connection, key="k")
    assert (again.id, again.replayed) == (first.id, True)


@sqlite
@one("factory", [bytes, lambda text: text.decode().upper()], ids=["bytes", "another"])
async def test_the_callers_own_ways_with_texts(adapter: Adapter, shop: Shop, factory: Any) -> None:
    with closing(sqlite3.connect(shop.url.removeprefix("sqlite:///"))) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = factory
        first = shop.jobs.sync.submit(shop.parcel, Order("book"), owner=ANN, transaction=connection, key="k")
        again = shop.jobs.sync.submit(shop.parcel, Order("book"), owner=ANN, transaction=connection, key="k")
        connection.commit()
    assert (again.id, again.replayed) == (first.id, True)


class _Upper(StrDumper):
    def dump(self, obj: str) -> bytes:
        return obj.upper().encode()


class _OneMore(IntDumper):
    def dump(self, obj: Any) -> bytes:
        return str(obj + 1).encode()


class _Flipped(Dumper):
    def dump(self, obj: Any) -> bytes:
        return b"f" if obj else b"t"


class _Bracketed(Loader):
    def load(self, data: Any) -> Any:
        return f"<{bytes(data).decode()}>"


@one("adapter", [ADAPTERS["psycopg"], ADAPTERS["psycopg-async"]], ids=["psycopg", "psycopg-async"])
async def test_what_a_connection_has_been_taught_changes_nothing_of_ours(adapter: Adapter, shop: Shop) -> None:
    """The rows are sound in the end, as the fixture checks."""
    async with adapter.opened(shop.url) as given:
        for kind, dumper in ((str, _Upper), (int, _OneMore), (bool, _Flipped)):
            given.thing.adapters.register_dumper(kind, dumper)
        for name in ("text", "int8", "uuid"):
            given.thing.adapters.register_loader(name, _Bracketed)
        first = await given.submit(shop.jobs, shop.parcel, Order("book"), key="k")
        again = await given.submit(shop.jobs, shop.parcel, Order("book"), key="k")
        await given.commit()
    assert (again.id, again.replayed) == (first.id, True)
    assert [task.label for task in await shop.jobs.tasks(first.id, principal=ANN)] == ["Ship", "Ship again"]


@postgres
async def test_encodings(adapter: Adapter, shop: Shop) -> None:
    with psycopg.connect(shop.url, options="-c client_encoding=SQL_ASCII") as connection:
        first = shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=connection, key="k")
        assert shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=connection, key="k").id == first.id
    with (
        psycopg.connect(shop.url, options="-c client_encoding=LATIN1") as connection,
        pytest.raises(TransactionMisused, match="client_encoding"),
    ):
        shop.jobs.sync.submit(shop.ship, Order("書"), owner=ANN, transaction=connection)


@postgres
async def test_a_statement_that_takes_longer_than_the_caller_allows(adapter: Adapter, shop: Shop) -> None:
    async with adapter.opened(shop.url) as holder:
        await holder.submit(shop.jobs, shop.ship, Order("book"), key="k")
        with (
            psycopg.connect(shop.url, options="-c statement_timeout=200") as connection,
            pytest.raises(StoreUnavailable, match="statement_timeout"),
        ):
            shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=connection, key="k")
        await holder.rollback()


@postgres
async def test_options_that_ask_for_cursors_on_the_server(adapter: Adapter, shop: Shop) -> None:
    for options in ({"stream_results": True}, {"yield_per": 10}):
        with _engine(shop.url).execution_options(**options).connect() as connection:
            shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=connection)
            connection.commit()
        for driver in ("psycopg", "asyncpg"):
            engine = create_async_engine(alchemy_url(shop.url, driver), poolclass=NullPool, execution_options=options)
            async with AsyncSession(engine) as session:
                await shop.jobs.submit(shop.ship, Order("book"), owner=ANN, transaction=session)
                await session.commit()
    assert shop.rows()["job"] == 6


@both
async def test_a_connection_that_was_right_for_one_store_is_looked_at_again_for_another(
    adapter: Adapter, shop: Shop, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    name = f"second_{secrets.token_hex(4)}"
    url = f"sqlite:///{tmp_path / 'second.db'}" if adapter.dialect == "sqlite" else postgres_server.create_database(name)
    migrate(url)
    second = application(url)
    things: list[Any] = [_engine(shop.url).connect()]
    things.append(sqlite3.connect(shop.url.removeprefix("sqlite:///")) if adapter.dialect == "sqlite" else psycopg.connect(shop.url))
    for thing in things:
        shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=thing)
        thing.commit()
        with pytest.raises(TransactionMisused, match="another database"):
            second.jobs.sync.submit(second.ship, Order("book"), owner=ANN, transaction=thing)
        thing.rollback()
        shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=thing)
        thing.commit()
        thing.close()
    assert shop.rows()["job"] == 4
    second.jobs.sync.close()


@sqlite
async def test_a_connection_of_another_thread(adapter: Adapter, shop: Shop) -> None:
    raised: list[BaseException] = []
    with closing(sqlite3.connect(shop.url.removeprefix("sqlite:///"))) as connection:

        def submit() -> None:
            try:
                shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=connection)
            except TransactionMisused as error:
                raised.append(error)

        thread = threading.Thread(target=submit)
        thread.start()
        thread.join()
    assert "check_same_thread" in str(raised[0])


@sqlite
async def test_beside_another_sqlite_nothing_is_joined(adapter: Adapter, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from outlast.store.sqlite import store  # noqa: PLC0415
    from outlast.store.sqlite.build import Build  # noqa: PLC0415

    with closing(sqlite3.connect(shop.url.removeprefix("sqlite:///"))) as connection:
        monkeypatch.setattr(store, "linked", lambda: Build((3, 51, 3), "apsw"))
        with pytest.raises(Invalid, match="no second SQLite"):
            shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=connection)


@sqlite
async def test_a_database_without_a_file_is_another_one(adapter: Adapter, shop: Shop) -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(TransactionMisused, match="another database"):
        shop.jobs.sync.submit(shop.ship, Order("book"), owner=ANN, transaction=connection)
