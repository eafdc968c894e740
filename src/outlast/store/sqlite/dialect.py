"""SQLite's tokens and statements. Times are integer milliseconds, ids text, and the store's clock is the host's."""

from __future__ import annotations

from functools import cache

from outlast.store.loader import JOB_SELECT, Token, job_state, load, read, verify_jobless, verify_range
from outlast.store.migrate import Migration, migrations

# julianday, for builds before 3.42 have no unixepoch('subsec').
CLOCK = "cast((julianday('now') - 2440587.5) * 86400000 as integer)"


def table(name: str) -> str:
    """How a table is written: SQLite has no schemas, so the name carries a prefix."""
    return f"outlast_{name}"


def tokens(now: str = CLOCK) -> dict[str, Token]:
    """The tokens of the statements. `now` is the store's clock; tests give another, to make an instant exact."""
    return {
        "now": now,
        "now_once": now,
        "now_ms": now,
        "ms": lambda x: x,
        "at": lambda p: f":{p}",
        "in": lambda p: f"({now} + :{p})",
        "str": lambda x: x,
        "uuid": lambda p: f":{p}",
        "bigint": lambda p: f":{p}",
        "textarg": lambda p: f":{p}",
        "jsonarg": lambda p: f":{p}",
        "among": lambda p: f"in (select value from json_each(:{p}))",
        "among_ids": lambda p: f"in (select value from json_each(:{p}))",
        "key": "tenant, job_id, no",
        "for_update": "",
        "skip_locked": "",
        "job_state": job_state,
        "job_select": JOB_SELECT,
        "verify_range": verify_range,
        "verify_jobless": verify_jobless,
    }


_SCHEMA_TOKENS: dict[str, Token] = {
    "text": "text",
    "uuid": "text",
    "time": "integer",
    "int": "integer",
    "bool": "integer",
    "json": "text",
    "keyed": lambda _fill: "strict, without rowid",
    # Bodies are large: key reads are ten times as fast where the row is not in the key's own tree.
    "bodies": "strict",
    "old_index": lambda name: f"outlast_{name}",
}


@cache
def statements(now: str = CLOCK) -> dict[str, str]:
    """Every statement by name."""
    return load(read("outlast.store", "sqlite"), tokens(now), table)


@cache
def schema_migrations() -> tuple[Migration, ...]:
    """The migrations as SQLite takes them."""
    return migrations(_SCHEMA_TOKENS, table)
