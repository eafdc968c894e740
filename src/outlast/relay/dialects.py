"""The databases that an outbox may stand in: how each is named, reached, and spoken to. Drivers are imported when one is opened."""

from __future__ import annotations

import importlib
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from outlast.domain.errors import Invalid
from outlast.domain.outbox import MAX_LONG, MAX_SHORT
from outlast.store import open as stores
from outlast.store.loader import Token, blocks, expand

TABLE: Final = "outlast_outbox"
EXAMPLES: Final = "postgresql://host/database, mariadb://user:password@host/database or sqlite:////var/lib/shop.db"
CONNECT_LIMIT: Final = 5
LOCK_LIMIT: Final = 5
"""Seconds for which a row that somebody else has locked is waited for."""
_READ_LIMIT: Final = 60
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_MARIADB: Final = ("mariadb", "mysql")
_MARIADB_PORT: Final = 3306
_SSL: Final = frozenset({"ssl_ca", "ssl_cert", "ssl_key"})
_PG_MISSING: Final = frozenset({"42P01", "42703", "3F000", "3D000", "42804", "42883", "22P02"})
_MARIADB_MISSING: Final = frozenset({1146, 1054, 1049})
_PG_FORBIDDEN: Final = frozenset({"42501", "25006"})
_MARIADB_FORBIDDEN: Final = frozenset({1044, 1142, 1143, 1227, 1290, 1792})
_SQLITE_FORBIDDEN: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the databases: the words of SQL, and what a driver's error means."""

    name: str
    quote: str
    parameter: str
    now: str
    size: str
    begin: str
    lock_limit: str | None
    missing: Callable[[BaseException], bool]
    forbidden: Callable[[BaseException], bool]


@dataclass(frozen=True, slots=True)
class Address:
    """Where an outbox is. `shown` has no password and no parameters. `connect` opens a connection in autocommit."""

    dialect: Dialect
    shown: str
    connect: Callable[[], Any]
    errors: tuple[type[BaseException], ...]


POSTGRESQL: Final = Dialect(
    "postgresql",
    '"',
    "%s",
    "(extract(epoch from clock_timestamp()) * 1000)::bigint",
    "octet_length({})",
    "begin",
    f"set local lock_timeout = '{LOCK_LIMIT}s'",
    lambda error: getattr(error, "sqlstate", None) in _PG_MISSING,
    lambda error: getattr(error, "sqlstate", None) in _PG_FORBIDDEN,
)
MARIADB: Final = Dialect(
    "mariadb",
    "`",
    "%s",
    "(timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000)",
    "octet_length({})",
    "start transaction",
    f"set session innodb_lock_wait_timeout = {LOCK_LIMIT}",
    lambda error: bool(error.args) and error.args[0] in _MARIADB_MISSING,
    lambda error: bool(error.args) and error.args[0] in _MARIADB_FORBIDDEN,
)
SQLITE: Final = Dialect(
    "sqlite",
    '"',
    "?",
    "cast((julianday('now') - 2440587.5) * 86400000 as integer)",
    "length(cast({} as blob))",
    "begin immediate",
    None,
    # Its code is that of every error in a statement; those of the relay have no other.
    lambda error: getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR,
    lambda error: getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_FORBIDDEN,
)
DIALECTS: Final[Mapping[str, Dialect]] = {one.name: one for one in (POSTGRESQL, MARIADB, SQLITE)}


def quoted(table: str, dialect: Dialect) -> str:
    """The table's name in SQL; Invalid for what is none. It may name its schema: app.outlast_outbox."""
    parts = table.split(".")
    if len(parts) > 2 or any(_NAME.fullmatch(part) is None for part in parts):  # noqa: PLR2004 - schema and table
        raise Invalid("The table of an outbox is named by a-z, 0-9 and underscores, perhaps behind its schema: app.outlast_outbox.")
    return ".".join(f"{dialect.quote}{part}{dialect.quote}" for part in parts)


def script(dialect: Dialect, table: str = TABLE) -> str:
    """The DDL of an outbox, and how a row is written."""
    text = resources.files("outlast.relay").joinpath("sql", f"{dialect.name}.sql").read_text("utf-8")
    return text.replace("{table}", quoted(table, dialect))


def statements(dialect: Dialect, table: str) -> dict[str, str]:
    """The statements of a relay by name; Invalid where the table's name is none."""
    name = quoted(table, dialect)
    size = dialect.size.format

    def at_most(most: int) -> Callable[[str], str]:
        return lambda column: f"case when {column} is null or {size(column)} <= {most} then {column} else '' end"

    tokens: dict[str, Token] = {
        "p": dialect.parameter,
        "now": dialect.now,
        "size": size,
        "short": at_most(MAX_SHORT),
        "long": at_most(MAX_LONG),
    }
    text = resources.files("outlast.relay").joinpath("statements.sql").read_text("utf-8")
    return {block: expand(sql, tokens, lambda _: name) for block, sql in blocks(text).items()}


def address(url: str) -> Address:
    """Where the outbox of a URL is; Invalid for anything else, and where the driver is not installed."""
    scheme = url.partition("://")[0]
    if scheme in _MARIADB:
        return _mariadb(url)
    if scheme not in ("sqlite", "postgresql", "postgres"):
        raise Invalid(f"An outbox is named by the URL of its database, such as {EXAMPLES}.")
    found = stores.parse(url)
    if found.dialect == "sqlite":
        return Address(SQLITE, found.shown, lambda: _sqlite(found.target), (sqlite3.Error,))
    stores.require_psycopg(found)
    from outlast.relay import postgresql

    return Address(POSTGRESQL, found.shown, lambda: postgresql.connect(found.target), (*postgresql.ERRORS, OSError))


def _sqlite(path: str) -> Any:
    connection = sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=LOCK_LIMIT, isolation_level=None)
    connection.text_factory = bytes
    return connection


def _mariadb(url: str) -> Address:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Invalid("The URL cannot be read: write special characters in name and password as %40 and the like.") from None
    database = unquote(parts.path.removeprefix("/"))
    asked = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(set(asked) - _SSL - {"unix_socket"})
    if not database or "/" in database:
        raise Invalid("A MariaDB database is written mariadb://user:password@host:port/database.")
    if unknown:
        raise Invalid(f"A MariaDB URL takes the parameters unix_socket, {', '.join(sorted(_SSL))}, and no other.")
    try:
        pymysql = importlib.import_module("pymysql")
    except ModuleNotFoundError:
        raise Invalid("MariaDB needs the driver: pip install 'outlast[mariadb]'.") from None
    host = parts.hostname or "localhost"
    settings = {
        "host": host,
        "port": port or _MARIADB_PORT,
        "user": None if parts.username is None else unquote(parts.username),
        "password": unquote(parts.password or ""),
        "database": database,
        "charset": "utf8mb4",
        "autocommit": True,
        "connect_timeout": CONNECT_LIMIT,
        "read_timeout": _READ_LIMIT,
        "write_timeout": _READ_LIMIT,
        # Gaps are not locked: a row that another relay has deleted holds up no insert.
        "init_command": "set session transaction isolation level read committed",
        **asked,
    }
    where = f":{port}" if port else ""
    return Address(MARIADB, f"mariadb://{host}{where}/{database}", lambda: pymysql.connect(**settings), (pymysql.Error, OSError))
