"""What doctor looks at in a SQLite file: it reads the header and asks for permissions, and opens no connection that could change it."""

from __future__ import annotations

import os
from pathlib import Path

from outlast.cli.checks import Check
from outlast.store.sqlite.build import OLDEST, linked

_MAGIC = b"SQLite format 3\x00"
_WRITE_VERSION = 18  # in the header: 1 for a rollback journal, 2 for the write-ahead log
_HEADER = 100
_BETTER = "docs/sqlite.md says how to get a build whose faster write-ahead log is safe."


def checks_of(path: str) -> list[Check]:
    """The build, and how the file is set up."""
    build = linked()
    oldest = ".".join(map(str, OLDEST))
    return [
        Check("SQLite", f"{build} ({build.driver})")
        if build.usable
        else Check("SQLite", f"{build} ({build.driver})", "action", f"Outlast needs {oldest} or later; use another Python, or apsw."),
        Check("write-ahead log", "safe with this build")
        if build.wal_is_safe
        else Check(
            "write-ahead log", "not safe with this build, so the rollback journal is used", "note", f"Nothing is at risk. {_BETTER}"
        ),
        *_file(Path(path), wanted=build.journal_mode),
        Check("clock", "this machine's"),
    ]


def _file(path: Path, *, wanted: str) -> list[Check]:
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except FileNotFoundError:
        return [Check("file", "does not exist yet", "action", "Run `outlast migrate --store URL`, or correct the path.")]
    except OSError as error:
        return [Check("file", f"cannot be read: {error.strerror}", "action", "Correct the path, or the permissions of file and folder.")]
    if header and not header.startswith(_MAGIC):
        return [Check("file", "is not a SQLite file", "action", "Name another path.")]
    found = [_journal("wal" if header[_WRITE_VERSION : _WRITE_VERSION + 1] == b"\x02" else "rollback", wanted)]
    if not os.access(path, os.W_OK) or not os.access(path.resolve().parent, os.W_OK):
        advice = "Give this account the right to write the file and its folder, where the journal goes."
        found.append(Check("writable", "no", "action", advice))
    return found


def _journal(mode: str, wanted: str) -> Check:
    if mode == "wal" and wanted != "wal":
        advice = f"Not safe with this build: stop every program that has the file open, and start the workers again; or {_BETTER}"
        return Check("journal", mode, "action", advice)
    return Check("journal", mode)
