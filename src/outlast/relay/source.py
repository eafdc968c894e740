"""An outbox in another database: its rows are read, deleted, put off and parked. Reading locks nothing."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from outlast.domain.errors import NotMigrated, StoreUnavailable
from outlast.domain.outbox import LONG, MAX_LONG, MAX_SHORT, NUMBERS, WRITTEN, Mark, OutboxRow
from outlast.relay.dialects import TABLE, Address, address, quoted

_TABLES: Final = "Make the table with what `outlast outbox sql --dialect {}` prints, or name another one with --table."


class SourceUnavailable(StoreUnavailable):
    """The database of an outbox cannot be reached, read or written; nothing was changed there."""

    code = "source_unavailable"


class OutboxMissing(NotMigrated):
    """There is no outbox table of this form in the database."""

    code = "outbox_missing"


@dataclass(frozen=True, slots=True)
class Kept:
    """A row that stays, and why. `delay_ms`: when it is tried again; None: not any more."""

    mark: Mark
    code: str
    delay_ms: int | None


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
        self._table = quoted(table, self._address.dialect)
        self._connection: Any = None
        self.shown = self._address.shown

    def check(self) -> None:
        """Whether the table is there, with all columns."""
        with self._faults():
            self._opened()

    def read(self, *, most: int, limit: int) -> list[OutboxRow]:
        """The oldest rows that may be tried now. An input of more than `limit` bytes is not read."""
        dialect = self._address.dialect
        size = dialect.size.format("input")
        columns = [self._column(name) for name in WRITTEN if name != "input"]
        sql = (
            f"select seq, created_at, tries, {size}, case when {size} <= {dialect.parameter} then input end, {', '.join(columns)}"
            f" from {self._table} where parked_at is null and (due_at is null or due_at <= {dialect.now}) order by seq limit {int(most)}"
        )
        names = ["input", *(name for name in WRITTEN if name != "input")]
        with self._faults():
            rows = self._run(sql, [limit])
        return [OutboxRow(Mark(row[0], row[1]), row[2], row[3], dict(zip(names, row[4:], strict=True))) for row in rows]

    def settle(self, settled: Settled) -> None:
        """Deletes what was moved and marks what stays, in one transaction. A row that is gone, or another one by now, is left alone."""
        dialect = self._address.dialect
        mine = f"where seq = {dialect.parameter} and created_at = {dialect.parameter}"
        until = f"case when {dialect.parameter} < 0 then {{}} else {{}} end"
        kept = (
            f"update {self._table} set code = {dialect.parameter}, tries = tries + 1,"
            f" due_at = {dialect.now} + {dialect.parameter}, parked_at = {until.format(dialect.now, 'null')} {mine}"
        )
        moved = sorted((mark.seq, mark.created_at) for mark in settled.moved)
        stay = sorted(
            (one.mark.seq, one.mark.created_at, one.code, 0 if one.delay_ms is None else one.delay_ms, -1 if one.delay_ms is None else 1)
            for one in settled.kept
        )
        if not moved and not stay:
            return
        with self._faults(), self._transaction():
            if moved:
                self._many(f"delete from {self._table} {mine}", moved)
            if stay:
                self._many(kept, [(code, delay, sign, seq, created) for seq, created, code, delay, sign in stay])

    def standing(self) -> Standing:
        """How the outbox stands now, by its own clock."""
        now = self._address.dialect.now
        with self._faults():
            rows = self._run(
                f"select case when code is null then 0 when parked_at is null then 1 else 2 end, code, count(*), {now} - min(created_at)"
                f" from {self._table} group by 1, 2 order by 1, 2",
                [],
            )
        waits = [row for row in rows if row[0] != 2]  # noqa: PLR2004 - parked
        return Standing(
            sum(row[2] for row in waits),
            max((max(int(row[3]), 0) for row in waits), default=None),
            {_word(row[1]): row[2] for row in rows if row[0] == 1},
            {_word(row[1]): row[2] for row in rows if row[0] == 2},  # noqa: PLR2004 - parked
        )

    def release(self, code: str | None) -> int:
        """Lets what is parked, or put off, be tried again at once, of one code or of all; how many rows."""
        parameter = self._address.dialect.parameter
        only, values = (f" and code = {parameter}", [code]) if code is not None else ("", [])
        with self._faults(), self._transaction():
            return int(
                self._execute(
                    f"update {self._table} set parked_at = null, due_at = null, code = null, tries = 0 where code is not null{only}", values
                ).rowcount
            )

    def close(self) -> None:
        """Gives the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*self._address.errors):
                connection.close()

    def _column(self, name: str) -> str:
        """A column, and an empty text, which none of them may hold, where it is longer than any may be."""
        if name in NUMBERS:
            return name
        size = self._address.dialect.size.format(name)
        return f"case when {size} is null or {size} <= {MAX_LONG if name in LONG else MAX_SHORT} then {name} else '' end"

    def _opened(self) -> None:
        if self._connection is None:
            self._connection = self._address.connect()
            columns = ", ".join(("seq", "created_at", "code", "tries", "due_at", "parked_at", *WRITTEN))
            self._execute(f"select {columns} from {self._table} where 1 = 0", [])

    def _run(self, sql: str, values: Sequence[Any]) -> list[Any]:
        self._opened()
        return list(self._execute(sql, values).fetchall())

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
            raise SourceUnavailable(f"The outbox at {self.shown} cannot be reached, read or written.") from error
        except BaseException:
            self.close()
            raise


def _word(value: object) -> str:
    """A code as text; another's hand may have written it."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
