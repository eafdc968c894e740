"""Runs a workload on the real store through a VFS that writes down what SQLite does to its files. A process of its own: it loads apsw.

    OUTLAST_SQLITE_DRIVER=apsw python -m powerloss.recording JOURNAL ROUNDS FILE [ERROR]

JOURNAL is wal or delete, ERROR a mistake made on purpose: `full` or `normal` for that much synchronisation,
`hasty` for acknowledging before the commit.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

import apsw

from contract.backends import SQLITE_CLOCK, START_MS, Row, SqliteBackend
from contract.harness import Harness
from outlast.store.program import Operation, Rows, T
from outlast.store.sqlite import connection as connections
from outlast.store.sqlite.build import Build, linked
from outlast.store.sqlite.connection import Connection
from outlast.store.sqlite.dialect import statements
from outlast.store.sqlite.raw import Parameters
from outlast.store.sqlite.writer import Request, Writer
from powerloss.history import Acknowledged, Event, History, Linked, Synced, Truncated, Unlinked, Written
from powerloss.workload import live

_OTHERS_SYNC_THE_FOLDER = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
_JULIAN_MS = 210_866_760_000_000  # from the beginning of Julian days to 1970
_CHECKPOINT_PAGES = 20  # so that checkpoints are inside the window


class Recorder(apsw.VFS):
    """SQLite's own VFS, and a note of each change. Nothing is really synced: what that would do is decided by `disk`.

    Its chance and its clock are fixed, so that the same workload writes the same.
    """

    def __init__(self, main: str) -> None:
        super().__init__("recorder", "unix", makedefault=True)
        self.events: list[Event] = []
        self._numbers = {main: 0}
        self._next = 1
        self._chance = Random(1)

    def xRandomness(self, numbytes: int) -> bytes:  # noqa: N802
        return self._chance.randbytes(numbytes)

    def xCurrentTimeInt64(self) -> int:  # noqa: N802
        return START_MS + _JULIAN_MS

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - apsw's
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is not None and path not in self._numbers:
            self._numbers[path], self._next = self._next, self._next + 1
            self.events.append(Linked(self._numbers[path], Path(path).name))
        return _Recorded(name, flags, -1 if path is None else self._numbers[path], self.events)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        del self._numbers[filename]
        self.events.append(Unlinked(Path(filename).name, bool(syncdir)))


class _Recorded(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int], number: int, events: list[Event]) -> None:
        super().__init__("unix", name, flags)
        self._number, self._events = number, events
        self._folder = bool(flags[0] & _OTHERS_SYNC_THE_FOLDER)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self._events.append(Written(self._number, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._events.append(Truncated(self._number, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._events.append(Synced(self._number, self._folder))
        self._folder = False


class _Hasty(Connection):
    """Says that it has committed, and does it when it is asked for something else."""

    _owed = False

    def execute(self, sql: str, params: Parameters = ()) -> Rows:
        if sql == "commit":
            self._owed = True
            return ()
        if self._owed:
            self._owed = False
            super().execute("commit")
        return super().execute(sql, params)

    def close(self) -> None:
        if self._owed:
            self._owed = False
            super().execute("commit")
        super().close()


class RecordedBackend:
    """The store's own writer, on this thread: so that the same workload writes the same, run for run."""

    name = "recorded"

    def __init__(self, path: Path, error: str) -> None:
        self._path, self._error = str(path), error
        self._writer = Writer(self._connect, statements(SQLITE_CLOCK))

    @property
    def store(self) -> Any:
        """None; a workload has no need of it."""
        raise NotImplementedError

    def run(self, operation: Operation[T]) -> T:
        (value,) = self.run_all([operation])
        return cast("T", value)

    def run_all(self, operations: Sequence[Operation[Any]]) -> list[Any]:
        """Their values, all of one commit."""
        batch = [Request(operation) for operation in operations]
        for request in batch:
            request.future.set_running_or_notify_cancel()
        self._writer._serve(batch)
        return [request.future.result() for request in batch]

    def query(self, text: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        raise NotImplementedError

    def set_clock(self, ms: int) -> None:
        self._writer._open().execute("update test_clock set ms = :ms", {"ms": ms})

    def tables(self) -> Sequence[str]:
        raise NotImplementedError

    def reset(self) -> None:
        """As a process that ends and comes back: the file is closed."""
        self._writer._open().close()

    def close(self) -> None:
        self.reset()
        self._writer.close()

    def _connect(self) -> Connection:
        made = (_Hasty if self._error == "hasty" else Connection)(self._path)
        made.execute(f"pragma wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        if self._error in ("full", "normal"):
            made.execute(f"pragma synchronous = {self._error}")
        return made


def record(journal: str, rounds: int, error: str = "") -> History:
    """What the workload did to its files."""
    own = linked()
    if own.driver != "apsw":
        raise SystemExit("Recording needs OUTLAST_SQLITE_DRIVER=apsw.")
    # As on a build whose WAL is not safe: the store then takes the rollback journal by itself.
    build = own if journal == "wal" else Build((3, 51, 2), "apsw")
    folder = Path(tempfile.mkdtemp(prefix="outlast-powerloss-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    try:
        connections.linked = lambda: build  # type: ignore[assignment]
        path = folder / "jobs.db"
        recorder = Recorder(str(path))
        SqliteBackend.make_template(path)
        start = path.read_bytes()
        recorder.events.clear()
        backend = RecordedBackend(path, error)

        def note(*fact: object) -> None:
            recorder.events.append(Acknowledged(tuple(map(str, fact))))

        live(Harness(backend), backend.run_all, note, rounds)
        backend.close()
        recorder.unregister()
        return History(path.name, start, recorder.events, str(own), build.journal_mode)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: Sequence[str]) -> None:
    """The command."""
    journal, rounds, path, *error = arguments
    record(journal, int(rounds), *error).save(Path(path))


if __name__ == "__main__":
    main(sys.argv[1:])
