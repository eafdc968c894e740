"""Reads a SQLite file on a connection that cannot write, for those who look at a whole store."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from outlast.domain.errors import StoreUnavailable
from outlast.store import migrate
from outlast.store.drive import Fault, drive
from outlast.store.program import Program, Rows, Statement, T
from outlast.store.sqlite import forks
from outlast.store.sqlite.build import OLDEST, linked
from outlast.store.sqlite.connection import patiently, refuse_network
from outlast.store.sqlite.dialect import schema_migrations, statements
from outlast.store.sqlite.faults import fault_of
from outlast.store.sqlite.migrating import read_applied
from outlast.store.sqlite.raw import ERRORS, Parameters, Raw, open_reading

_WORDS = {
    Fault.READ_ONLY: (
        "A process died while it wrote to the file, and SQLite has to bring it in order first, which a reader must not do. "
        "Run `outlast queues --store URL` once, as an account that may write the file and its folder."
    ),
    Fault.CONFLICT: "Another program holds the store's file. Try again when it lets go.",
    Fault.REFUSED: "The store's file cannot be read. Check that it is a SQLite file, undamaged, and its permissions.",
}


class Snapshot:
    """A file read in transactions that cannot write.

    With the write-ahead log one transaction lasts to the end. With the rollback journal, whose readers keep writers out, it begins anew
    before each statement in `beginnings`, so that writers wait for a page at most.
    """

    def __init__(self, raw: Raw, beginnings: Collection[str]) -> None:
        self._raw = raw
        self._sql = statements()
        self._beginnings = beginnings
        self._in_turns = self.execute("pragma journal_mode")[0][0] != "wal"

    def execute(self, sql: str, params: Parameters = ()) -> Rows:
        """The statement's rows, waiting for locks as every connection does."""
        return patiently(self._raw, sql, params)

    def run(self, program: Program[T]) -> T:
        """The program's value."""
        return drive(program, self._statement)

    def begin(self) -> None:
        """A transaction, which sees the file as it is at its first statement."""
        self.execute("begin")

    def _statement(self, statement: Statement) -> Rows:
        if self._in_turns and statement.name in self._beginnings:
            self.execute("commit")
            self.begin()
        return self.execute(self._sql[statement.name], statement.params)


@contextmanager
def snapshot(path: str, beginnings: Collection[str]) -> Generator[Snapshot]:
    """A file to read; StoreUnavailable or NotMigrated, in words, where it cannot be. Nothing is written, nor a file made."""
    build = linked()
    if not build.usable:
        raise StoreUnavailable(f"This Python links SQLite {build}; Outlast needs {'.'.join(map(str, OLDEST))} or later.")
    if not Path(path).is_file():
        raise StoreUnavailable("The store's file does not exist. Correct the path.")
    refuse_network(path)
    with forks.gate.work(), _in_words(), closing(open_reading(path, build)) as raw:
        made = Snapshot(raw, beginnings)
        made.begin()
        migrate.require_migrated(schema_migrations(), read_applied(made))
        try:
            yield made
        finally:
            with suppress(*ERRORS):
                made.execute("rollback")


@contextmanager
def _in_words() -> Generator[None]:
    try:
        yield
    except ERRORS as error:
        raise StoreUnavailable(_WORDS.get(fault_of(error), _WORDS[Fault.REFUSED])) from error
