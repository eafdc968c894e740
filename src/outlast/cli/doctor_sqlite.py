"""What doctor looks at in a SQLite file, without changing it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from outlast.cli.checks import Check
from outlast.store.sqlite.build import OLDEST, linked

_WAL = "Use a Python that links SQLite 3.51.3 or later (or 3.50.7, 3.44.6) for the faster write-ahead log."


def checks_of(path: str) -> list[Check]:
    """The build, and how the file is set up."""
    build = linked()
    found = [
        Check("SQLite", str(build))
        if build.usable
        else Check("SQLite", str(build), "action", f"Outlast needs SQLite {'.'.join(map(str, OLDEST))} or later; use another Python.")
    ]
    found.append(
        Check("write-ahead log", "safe with this build")
        if build.wal_is_safe
        else Check("write-ahead log", "not safe with this build: the rollback journal is used", "note", f"Nothing is at risk. {_WAL}")
    )
    found.extend(_file(path, wanted=build.journal_mode))
    found.append(Check("clock", "this machine's"))
    return found


def _file(path: str, *, wanted: str) -> list[Check]:
    if not Path(path).exists():
        return [Check("file", "does not exist yet", "action", "Run `outlast migrate --store URL`, or correct the path.")]
    try:
        connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=rw", uri=True, timeout=1)
        try:
            mode = str(connection.execute("pragma journal_mode").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        advice = "Check the path, the permissions of file and folder, and that it is a SQLite file."
        return [Check("file", f"cannot be read ({name})", "action", advice)]
    if mode == "wal" and wanted != "wal":
        return [Check("journal mode", mode, "action", f"Not safe with this build: stop every program that has the file open. {_WAL}")]
    return [Check("journal mode", mode)]
