"""An outbox in another database: its rows are read, deleted, put off and parked. Reading locks nothing."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from outlast.domain.errors import NotMigrated, StoreUnavailable
from outlast.domain.outbox import WRITTEN, Mark, OutboxRow
from outlast.relay.dialects import TABLE, Address, address, statements

_TABLES: Final = "Make the table with what `outlast outbox sql --dialect {}` prints, or name another one with --table."
_READ: Final = ("input", *(name for name in WRITTEN if name != "input"))
_PUT_OFF: Final = 1
_PARKED: Final = 2


class SourceUnavailable(StoreUnavailable):
    """The database of an outbox cannot be reached, read or written; nothing was changed there."""

    code = "source_unavailable"


class SourceForbidden(SourceUnavailable):
    """The user of the relay may not read or write the table of an outbox; nothing was changed there."""

    code = "source_forbidden"


class OutboxMissing(NotMigrated):
    """There is no outbox table of this form in the database."""

    code = "outbox_missing"


@dataclass(frozen=True, slots=True)
class Kept:
    """A row that stays, and why. `delay_ms`: when it is tried again; None: not any more. `detail`: where the fault is, without values."""

    mark: Mark
    code: str
    delay_ms: int | None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Parked:
    """A row that is not tried any more: its number, its id, and what is wrong with it."""

    seq: int
    id: str
    code: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of some rows: those that are jobs, and are deleted, and those that stay."""

    moved: list[Mark] = field(default_factory=list[Mark])
    kept: list[Kept] = field(default_factory=list[Kept])


@dataclass(frozen=True, slots=True)
class Standing:
    """How an outbox stands: rows that wait, the age of the oldest of them in milliseconds, and by code what is put off and parked."""

    waiting: int
    oldest_ms: int | None
    put_off: dict[str, int]
    parked: dict[str, int]


class Source:
    """The outbox at a URL. Opens nothing before it is first asked; a connection that failed is opened anew by the next call.

    Any call may raise SourceUnavailable; the first on a connection OutboxMissing.
    """

    def __init__(self, url: str, *, table: str = TABLE) -> None:
        self._address: Address = address(url)
        self._texts = statements(self._address.dialect, table)
        self._connection: Any = None
        self.shown = self._address.shown

    def check(self) -> None:
        """Whether the table is there, with all columns, and may be written."""
        with self._faults():
            self._opened()
            for name in ("may_remove", "may_mark"):
                self._execute(self._texts[name], [])

    def read(self, *, most: int, limit: int) -> list[OutboxRow]:
        """The oldest rows that may be tried now. An input of more than `limit` bytes is not read."""
        with self._faults():
            rows = self._run("read", [limit, most]).fetchall()
        return [OutboxRow(Mark(row[0], row[1]), row[2], row[3], dict(zip(_READ, row[4:], strict=True))) for row in rows]

    def settle(self, settled: Settled) -> None:
        """Deletes what was moved and marks what stays, in one transaction. A row that is gone, or another one by now, is left alone."""
        moved = sorted((mark.seq, mark.created_at) for mark in settled.moved)
        # One order of rows for all relays, so that none waits for another that waits for it.
        kept = sorted(settled.kept, key=lambda one: one.mark.seq)
        later = [(one.code, one.delay_ms, one.mark.seq, one.mark.created_at) for one in kept if one.delay_ms is not None]
        parked = [(one.code, one.detail, one.mark.seq, one.mark.created_at) for one in kept if one.delay_ms is None]
        work = [(name, rows) for name, rows in (("remove", moved), ("put_off", later), ("park", parked)) if rows]
        if not work:
            return
        with self._faults(), self._transaction():
            for name, rows in work:
                self._many(self._texts[name], rows)

    def standing(self) -> Standing:
        """How the outbox stands now, by its own clock."""
        with self._faults():
            rows = self._run("standing", []).fetchall()
        waits = [row for row in rows if row[0] != _PARKED]
        return Standing(
            sum(row[2] for row in waits),
            max((max(int(row[3]), 0) for row in waits), default=None),
            {_word(row[1]): row[2] for row in rows if row[0] == _PUT_OFF},
            {_word(row[1]): row[2] for row in rows if row[0] == _PARKED},
        )

    def parked(self, *, most: int) -> list[Parked]:
        """The oldest rows that are parked."""
        with self._faults():
            rows = self._run("parked", [most]).fetchall()
        return [Parked(row[0], _word(row[1]), _word(row[2]), None if row[3] is None else _word(row[3])) for row in rows]

    def release(self, code: str | None) -> int:
        """Lets what is parked, or put off, be tried again at once, of one code or of all; how many rows."""
        with self._faults(), self._transaction():
            return int(self._run("release", [code]).rowcount)

    def close(self) -> None:
        """Gives the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*self._address.errors):
                connection.close()

    def _opened(self) -> None:
        if self._connection is None:
            self._connection = self._address.connect()
            self._execute(self._texts["probe"], [])
            self._execute(self._texts["read"], [0, 0])  # no row; a column of another type fails here

    def _run(self, name: str, values: Sequence[Any]) -> Any:
        self._opened()
        return self._execute(self._texts[name], values)

    def _many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        cursor = self._connection.cursor()
        cursor.executemany(sql, values)

    def _execute(self, sql: str, values: Sequence[Any]) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(sql, values)
        return cursor

    @contextmanager
    def _transaction(self) -> Generator[None]:
        """What is executed in it is committed together, or not at all."""
        self._opened()
        limit = self._address.dialect.lock_limit
        self._execute(self._address.dialect.begin, [])
        if limit is not None:
            self._execute(limit, [])
        yield
        self._execute("commit", [])

    @contextmanager
    def _faults(self) -> Generator[None]:
        """The errors of the driver in words of Outlast; after one the connection is not used again, which ends its transaction."""
        try:
            yield
        except self._address.errors as error:
            self.close()
            if self._address.dialect.missing(error):
                advice = _TABLES.format(self._address.dialect.name)
                raise OutboxMissing(f"The outbox table is missing at {self.shown}, or has another form. {advice}") from error
            if self._address.dialect.forbidden(error):
                raise SourceForbidden(
                    f"The outbox at {self.shown} may not be read or written. Grant select, update and delete on the table to the relay's"
                    " user (of SQLite, the right to write the file and its folder), and name a server that is no read-only copy."
                ) from error
            raise SourceUnavailable(f"The outbox at {self.shown} cannot be reached, read or written.") from error
        except BaseException:
            self.close()
            raise


def _word(value: object) -> str:
    """A code as text; another's hand may have written it."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
