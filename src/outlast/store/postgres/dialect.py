"""PostgreSQL's tokens, and the statements in the form that psycopg takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from outlast.store.loader import JOB_SELECT, Token, job_state, load, read, verify_jobless, verify_range
from outlast.store.migrate import Migration, migrations

SCHEMA = "outlast"
CLOCK = "clock_timestamp()"
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")


def table_of(schema: str) -> Callable[[str], str]:
    """How a table is written: always qualified, for in a caller's transaction the search path is the caller's."""
    return lambda name: f'"{schema}".{name}'


def _freed(pause: str) -> str:
    """Frees the slots of the entries `e` whose lease ends in the same statement; the key rests for the milliseconds of a parameter."""
    rest = f", not_before = coalesce({{in:{pause}}}, s.not_before)" if pause else ""
    return (
        f"update {{outlast.slot}} s set job_id = null, no = null, fence = null, freed_at = {{now}}{rest} from e "
        "where e.slot_key is not null and s.tenant = e.tenant and s.job_id = e.job_id and s.no = e.no and s.fence = e.fence "
        "and s.job_id is not null"
    )


def tokens(now: str = CLOCK) -> dict[str, Token]:
    """The tokens of the statements. `now` is the store's clock; tests give another, to make an instant exact."""
    return {
        "now": now,
        "now_once": f"(select {now})",
        "now_ms": f"(extract(epoch from {now}) * 1000)::bigint",
        "ms": lambda x: f"(extract(epoch from {x}) * 1000)::bigint",
        "at": lambda p: f"(timestamptz 'epoch' + :{p}::bigint * interval '1 ms')",
        "in": lambda p: f"({now} + :{p}::bigint * interval '1 ms')",
        "str": lambda x: f"({x})::text",
        "uuid": lambda p: f":{p}::uuid",
        "bigint": lambda p: f":{p}::bigint",
        "textarg": lambda p: f":{p}::text",
        "jsonarg": lambda p: f":{p}::json",
        "among": lambda p: f"= any(array(select json_array_elements_text(:{p}::json)))",
        "among_ids": lambda p: f"= any(array(select json_array_elements_text(:{p}::json)::uuid))",
        "key": "tenant, job_id, no",
        "for_update": "for no key update",
        "skip_locked": "for no key update skip locked",
        "freed": _freed,
        "job_state": job_state,
        "job_select": JOB_SELECT,
        "verify_range": verify_range,
        "verify_jobless": verify_jobless,
    }


def _schema_tokens(schema: str) -> dict[str, Token]:
    vacuum = "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500"
    return {
        "text": 'text collate "C"',
        "uuid": "uuid",
        "time": "timestamptz",
        "int": "bigint",
        "bool": "boolean",
        "json": "json",
        "keyed": lambda fill: "" if fill == "100" else f"with (fillfactor = {fill}, {vacuum})",
        "bodies": "",
        "old_index": lambda name: f'"{schema}".outlast_{name}',
    }


@cache
def statements(schema: str, now: str = CLOCK) -> dict[str, str]:
    """Every statement by name, with psycopg's placeholders."""
    loaded = load(read("outlast.store", "postgres"), tokens(now), table_of(schema))
    return {name: _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")) for name, sql in loaded.items()}


@cache
def schema_migrations(schema: str) -> tuple[Migration, ...]:
    """The migrations as PostgreSQL takes them."""
    return migrations(_schema_tokens(schema), table_of(schema))
