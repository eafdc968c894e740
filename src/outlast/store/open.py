"""From a URL to a store: the one place that knows both dialects."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from outlast.domain.errors import Invalid
from outlast.store.program import Program, T
from outlast.store.protocol import Store

if TYPE_CHECKING:
    from outlast.store.migrate import Migration

EXAMPLES = "sqlite:///jobs.db (relative), sqlite:////var/lib/jobs.db (absolute) or postgresql://host/database"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is. `shown` has no password and no parameters."""

    dialect: str
    target: str
    shown: str


def parse(url: str) -> Address:
    """The address in a store URL; Invalid for anything else."""
    scheme, separator, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    if not separator:
        raise Invalid(f"A store is named by a URL such as {EXAMPLES}.")
    if scheme == "sqlite":
        host, slash, path = rest.partition("/")
        if path == ":memory:":
            raise Invalid("A store in memory would end with its connection: name a file, in a temporary folder for a test.")
        if host or not slash or not path or "?" in path:
            raise Invalid("A SQLite store is written sqlite:///relative/path or, with four slashes, sqlite:////absolute/path.")
        return Address("sqlite", unquote(path), f"sqlite:///{path}")
    if scheme in ("postgresql", "postgres"):
        try:
            parts = urlsplit(url)
            where = parts.hostname or "localhost"
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            where, port, parts = "...", "", urlsplit("postgresql://")
        return Address("postgresql", url, f"postgresql://{where}{port}{parts.path}")
    raise Invalid(f"Stores of the kind {scheme!r} are not known. A store is named by a URL such as {EXAMPLES}.")


def open_store(url: str, *, worker: bool = False) -> Store:
    """The store at a URL; nothing is opened before its first operation. worker: connections planned for the hot statements."""
    address = parse(url)
    if address.dialect == "sqlite":
        from outlast.store.sqlite.store import SqliteStore

        return SqliteStore(address.target)
    require_psycopg(address)
    from outlast.store.postgres.session import Profile
    from outlast.store.postgres.store import PostgresStore

    return PostgresStore(address.target, profile=Profile(worker=worker))


def pending(url: str) -> tuple[Migration, ...]:
    """The migrations that the store at a URL lacks."""
    address = parse(url)
    if address.dialect == "sqlite":
        from outlast.store.sqlite import migrating as sqlite

        return sqlite.pending(address.target)
    require_psycopg(address)
    from outlast.store.postgres import migrating as postgres

    return postgres.pending(address.target)


class Snapshot(Protocol):
    """A store as it is now, to be read and not written."""

    def run(self, program: Program[T]) -> T:
        """The value of a program whose statements only read."""
        ...


@contextmanager
def snapshot(url: str, *, beginnings: Collection[str]) -> Generator[Snapshot]:
    """The store at a URL, to read whole on a connection that cannot write.

    PostgreSQL and SQLite's write-ahead log show one moment to the end. SQLite's rollback journal shows one from each statement named in
    `beginnings` to the next, for its readers keep writers out. StoreUnavailable and NotMigrated say what to do.
    """
    address = parse(url)
    if address.dialect == "sqlite":
        from outlast.store.sqlite import snapshot as sqlite

        with sqlite.snapshot(address.target, beginnings) as lite:
            yield lite
        return
    require_psycopg(address)
    from outlast.store.postgres import snapshot as postgres

    with postgres.snapshot(address.target) as moment:
        yield moment


def migrate(url: str) -> tuple[Migration, ...]:
    """Applies the migrations that the store at a URL lacks; what was applied."""
    address = parse(url)
    if address.dialect == "sqlite":
        from outlast.store.sqlite import migrating as sqlite

        return sqlite.apply(address.target)
    require_psycopg(address)
    from outlast.store.postgres import migrating as postgres

    return postgres.apply(address.target)


def script(url: str) -> str:
    """The schema of a dialect as SQL text."""
    address = parse(url)
    if address.dialect == "sqlite":
        from outlast.store.sqlite import migrating as sqlite

        return sqlite.script()
    require_psycopg(address)
    from outlast.store.postgres import migrating as postgres

    return postgres.script()


def require_psycopg(address: Address) -> None:
    """The driver is there, and can read the address: else it would be tried again for ever, and its error repeats the whole of it."""
    try:
        import psycopg_pool
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise Invalid("PostgreSQL needs the driver: pip install 'outlast[postgres]'.") from error
    del psycopg_pool
    try:
        conninfo_to_dict(address.target)
    except ProgrammingError:
        pass
    else:
        return
    raise Invalid(
        "The PostgreSQL URL cannot be read: check its parameters, and write special characters in name and password as %40 and the like."
    )
