"""The schema as it is meant to be, column by column: a change shows in the change that makes it.

OUTLAST_TEST_WRITE_SNAPSHOT=1 writes the file anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from migrations.catalogue import columns, indexes
from outlast.store import open as stores

SNAPSHOT = Path(__file__).parent / "schema.txt"
_NARROW = {"integer", "smallint", "real", "serial", "character varying"}


def _shown(url: str) -> str:
    lines: dict[str, list[str]] = {}
    for one in sorted(columns(url), key=lambda c: (c.table, c.name)):
        bytewise = f' collate "{one.collation}"' if one.collation else ""
        lines.setdefault(one.table, []).append(f"  {one.name} {one.type}{bytewise}{'' if one.nullable else ' not null'}")
    for name, text in sorted(indexes(url).items()):
        unique, _, rest = text.partition(" on outlast.")
        table, _, what = rest.partition(" using btree ")
        lines[table].append(f"  {'unique ' if 'unique' in unique else ''}index {name} {what}")
    return "".join(f"{table}\n{''.join(line + chr(10) for line in of_table)}\n" for table, of_table in sorted(lines.items()))


def test_columns_and_indexes_are_those_of_the_snapshot(empty: Callable[[str], str]) -> None:
    url = empty("postgresql")
    stores.migrate(url)
    shown = _shown(url)
    if os.environ.get("OUTLAST_TEST_WRITE_SNAPSHOT"):
        SNAPSHOT.write_text(shown)

    assert shown == SNAPSHOT.read_text()


def test_postgresql_15_has_the_same(empty: Callable[[str], str], postgres_15: object) -> None:
    url = empty("postgresql-15")
    stores.migrate(url)

    assert _shown(url) == SNAPSHOT.read_text()
    assert not {c.type for c in columns(url)} & _NARROW
