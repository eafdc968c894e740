"""The relay from an outbox in another database into the store: admitted there first, deleted here after. A repeat is the same job."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from outlast.domain.errors import (
    Contended,
    Invalid,
    NotMigrated,
    NotRegistered,
    OutcomeUnknown,
    OutlastError,
    QuotaExceeded,
    StillAdmitting,
    StoreUnavailable,
)
from outlast.domain.outbox import INPUT_TOO_LARGE, INVALID_ROW, UNDECODABLE, Mark, OutboxRow
from outlast.domain.payload import check_code
from outlast.domain.work import ActiveTaken, Admission, Admitted, KeyTaken
from outlast.observe.events import OutboxRowFailed, OutboxRowParked, OutboxRowPutOff, OutboxRowsMoved, RelayWaits, place_of, reason_of
from outlast.observe.hub import emit
from outlast.relay.source import Kept, Settled, Source, SourceForbidden

BATCH: Final = 100
"""Rows that are read at a time, where their inputs may not be too large for that."""
_MOST_READ: Final = 64 * 2**20
_MOST_BYTES: Final = 4 * 2**20
_LATER: Final = (NotRegistered, QuotaExceeded, StillAdmitting, Contended)
"""What may be admitted another time: after a deploy, when a job has ended, when a transaction has."""
_AWAY: Final = (StoreUnavailable, OutcomeUnknown)
_FIRST_DELAY: Final = 1_000
_LONGEST_DELAY: Final = 300_000
_MOST_DOUBLINGS: Final = 10
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
PLAN_FAILED: Final = "plan_failed"
FAILED: Final = "failed"
_OF_ROWS: Final = frozenset({INVALID_ROW, UNDECODABLE, INPUT_TOO_LARGE})
_MOST_DETAIL: Final = 1_000
KEY_REUSED: Final = "key_reused"
UNIQUE_ACTIVE: Final = "unique_active"


class Door(Protocol):
    """Where the rows go."""

    @property
    def max_input(self) -> int:
        """The largest input in bytes."""
        ...

    def check(self) -> None:
        """Raises what the store has against being used."""
        ...

    def prepare(self, row: OutboxRow) -> Admission:
        """What a row asks for; raises why it asks for nothing that can be admitted."""
        ...

    def admit(self, prepared: Sequence[Admission]) -> Sequence[Admitted | KeyTaken | ActiveTaken]:
        """Admits these in one commit; the outcomes in order."""
        ...


@dataclass(frozen=True, slots=True)
class Report:
    """What one round came to: rows that were read, that are jobs, that are tried again later, and that are parked."""

    read: int
    moved: int = 0
    put_off: int = 0
    parked: int = 0


class Inbound:
    """Moves rows. Any number of them may run: each row is admitted under its id, and is deleted once."""

    def __init__(self, source: Source, door: Door, *, batch: int = BATCH) -> None:
        self._source = source
        self._door = door
        self._batch = max(1, min(batch, _MOST_READ // door.max_input))

    def check(self) -> None:
        """Asks both databases; StoreUnavailable, or NotMigrated where tables are missing."""
        self._source.check()
        self._door.check()

    def run_once(self) -> Report:
        """Moves the oldest rows that may be tried now.

        Raises StoreUnavailable or OutcomeUnknown, where one of the databases does not answer: what was admitted and not yet deleted is
        met again. NotMigrated, where tables are missing.
        """
        rows = self._source.read(most=self._batch, limit=self._door.max_input)
        refused = Settled()
        prepared: list[tuple[OutboxRow, Admission]] = []
        for row in rows:
            try:
                prepared.append((row, self._door.prepare(row)))
            except Exception as error:  # noqa: BLE001 - the application's own function may raise anything
                refused.kept.append(_kept(row, error, unknown=PLAN_FAILED))
        self._settle(refused)
        kept = list(refused.kept)
        moved = 0
        for chunk in _chunks(prepared):
            settled = self._admit(chunk)
            self._settle(settled)
            kept += settled.kept
            moved += len(settled.moved)
        return Report(len(rows), moved, sum(one.delay_ms is not None for one in kept), sum(one.delay_ms is None for one in kept))

    def run(self, stop: threading.Event, *, every: float, once: bool = False, on_ready: Callable[[], None] = lambda: None) -> None:
        """Moves rows until told to stop, every so many seconds where there are none; once: until none is left that may be tried now.

        Whichever database is away is waited for, and once: StoreUnavailable or OutcomeUnknown. NotMigrated is raised.
        """
        ready = False
        failures = 0
        while not stop.is_set():
            pause = 0.0
            try:
                if not ready:
                    self.check()
                    ready = True
                    on_ready()
                report = self.run_once()
                failures = 0
                if report.read == 0:
                    if once:
                        return
                    pause = every
            except _AWAY as error:
                if once:
                    raise
                pause = min(_FIRST_PAUSE * 2 ** min(failures, _MOST_DOUBLINGS), _LONGEST_PAUSE) * random.uniform(0.5, 1)
                failures += 1
                emit(RelayWaits(error.code, error.message if isinstance(error, SourceForbidden) else reason_of(error), pause))
            if pause:
                stop.wait(pause)

    def _admit(self, chunk: Sequence[tuple[OutboxRow, Admission]]) -> Settled:
        try:
            results = self._door.admit([prepared for _, prepared in chunk])
        except (*_AWAY, NotMigrated):
            raise
        except Exception as error:  # noqa: BLE001 - whatever the store has against one row
            if len(chunk) > 1:  # the fault is one row's, and stops no other
                return _joined([self._admit([one]) for one in chunk])
            return Settled(kept=[_kept(chunk[0][0], error, unknown=FAILED)])
        settled = Settled()
        for (row, _), result in zip(chunk, results, strict=True):
            if isinstance(result, Admitted):
                settled.moved.append(row.mark)
            else:
                code = KEY_REUSED if isinstance(result, KeyTaken) else UNIQUE_ACTIVE
                settled.kept.append(Kept(row.mark, code, None))
        return settled

    def _settle(self, settled: Settled) -> None:
        self._source.settle(settled)
        if settled.moved:
            emit(OutboxRowsMoved(len(settled.moved)))
        for one in settled.kept:
            if one.delay_ms is None:
                emit(OutboxRowParked(one.mark.seq, one.code, one.detail or ""))
            else:
                emit(OutboxRowPutOff(one.mark.seq, one.code, one.delay_ms / 1000))


def _kept(row: OutboxRow, error: Exception, *, unknown: str) -> Kept:
    """Why a row stays, by what was raised: parked, or tried again later where that may help."""
    if isinstance(error, _LATER):
        return _later(row.mark, row.tries, error.code)
    if isinstance(error, OutlastError):
        return Kept(row.mark, error.code if check_code(error.code) else Invalid.code, None, _detail(error))
    emit(OutboxRowFailed(row.mark.seq, place_of(error)))
    return Kept(row.mark, unknown, None) if unknown == PLAN_FAILED else _later(row.mark, row.tries, unknown)


def _detail(error: OutlastError) -> str | None:
    """Where the fault of a row is. Only words of our own: a function of the application may have raised anything."""
    if error.code in _OF_ROWS:
        return error.message
    if isinstance(error, Invalid) and error.pointers:
        named = ", ".join(place or "the whole of it" for place in error.pointers)
        return f"input: {named}"[:_MOST_DETAIL]
    return None


def _later(mark: Mark, tries: int, code: str) -> Kept:
    return Kept(mark, code, min(_FIRST_DELAY * 2 ** min(max(tries, 0), _MOST_DOUBLINGS), _LONGEST_DELAY))


def _joined(parts: Sequence[Settled]) -> Settled:
    return Settled([mark for part in parts for mark in part.moved], [kept for part in parts for kept in part.kept])


def _chunks(prepared: Sequence[tuple[OutboxRow, Admission]]) -> Generator[list[tuple[OutboxRow, Admission]]]:
    """What is admitted in one commit: so many bytes at most; what has to be alone is alone."""
    chunk: list[tuple[OutboxRow, Admission]] = []
    size = 0
    for one in prepared:
        if chunk and (one[1].alone or chunk[-1][1].alone or size > _MOST_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(one)
        size += len(one[1].input)
    if chunk:
        yield chunk
