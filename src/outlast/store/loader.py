"""Loads the SQL: named blocks in `sql/*.sql`, overridden per dialect, with tokens from a closed list.

A block begins with `-- name: some_name` and ends where the next one begins. `{outlast.job}` is a table; `{now}` and the like are
tokens of the dialect; `{ms:expr}` is a token with arguments, which stand between `|`. Parameters are written `:name`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import resources
from typing import TypeAlias

Token: TypeAlias = str | Callable[[str], str]
"""A fixed text, or a function of what stands behind the colon."""

_NAME = re.compile(r"^-- name: ([a-z][a-z0-9_]*)\s*$", re.MULTILINE)
_TOKEN = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)?)(?::([^{}]*))?\}")
_COMMENT = re.compile(r"--[^\n]*")


def blocks(text: str) -> dict[str, str]:
    """The named blocks of one SQL file, comments removed."""
    parts = _NAME.split(text)
    found: dict[str, str] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if name in found:
            raise ValueError(f"the block {name} stands twice in one file")
        found[name] = _COMMENT.sub("", body).strip().rstrip(";").strip()
    return found


def expand(sql: str, tokens: Mapping[str, Token], table: Callable[[str], str]) -> str:
    """The text with every token replaced, innermost first; an unknown token is an error."""

    def replace(match: re.Match[str]) -> str:
        name, args = match.group(1), match.group(2)
        if name.startswith("outlast."):
            return table(name.removeprefix("outlast."))
        if name.startswith("index."):
            return f"outlast_{name.removeprefix('index.')}"
        token = tokens.get(name)
        if token is None:
            raise ValueError(f"unknown token {{{name}}}")
        if isinstance(token, str):
            return token
        return token((args or "").strip())

    while True:
        replaced = _TOKEN.sub(replace, sql)
        if replaced == sql:
            return sql
        sql = replaced


def read(package: str, folder: str) -> dict[str, str]:
    """All named blocks of the `.sql` files in a folder of a package; a name in two files is an error."""
    found: dict[str, str] = {}
    directory = resources.files(package).joinpath(folder)
    for entry in sorted(directory.iterdir(), key=lambda e: e.name):
        if not entry.name.endswith(".sql"):
            continue
        for name, body in blocks(entry.read_text("utf-8")).items():
            if name in found:
                raise ValueError(f"the block {name} stands in two files")
            found[name] = body
    return found


def load(overrides: Mapping[str, str], tokens: Mapping[str, Token], table: Callable[[str], str]) -> dict[str, str]:
    """The dialect's statements by name: the shared ones, with the overrides in place of those of the same name."""
    shared = read("outlast.store", "sql")
    merged = {**shared, **overrides}
    return {name: expand(body, tokens, table) for name, body in merged.items()}


def job_state(arguments: str) -> str:
    """The stored state of a job as SQL, of `cancelled_at|open|attention` on the new counters: `domain.states.stored_job_state`."""
    cancelled_at, left, attention = arguments.split("|")
    return (
        f"case when {cancelled_at} is not null then 'cancelled' when {left} = 0 then 'completed' "
        f"when {attention} > 0 then 'needs_attention' else 'open' end"
    )


def verify_range(table: str) -> str:
    """The rows of a page of jobs, from the first to the last, each of a job that is there."""
    key = f"({table}.tenant, {table}.job_id)"
    within = f"{key} >= (:tenant, {{uuid:job_id}}) and {key} <= (:last_tenant, {{uuid:last_id}})"
    return f"{within} and exists (select 1 from {{outlast.job}} j where j.tenant = {table}.tenant and j.id = {table}.job_id)"


def verify_jobless(table: str) -> str:
    """The rows of no job."""
    return f"not exists (select 1 from {{outlast.job}} j where j.tenant = {table}.tenant and j.id = {table}.job_id)"


JOB_SELECT = """
select j.tenant, {str:j.id}, j.owner, j.kind, j.schema_version, j.label, j.state, j.outcome, j.version, {ms:j.usable_at}, j.usable_ref,
  j.total,
  case when j.state = 'cancelled' then (select count(*) from {outlast.task} t
    where t.tenant = j.tenant and t.job_id = j.id and t.state = 'cancelled') else j.open end,
  j.attention, {ms:j.accepted_at}, {ms:j.finished_at}, j.cancelled_by, {str:j.rerun_of}, j.correlation_id,
  case when j.state = 'open' and exists (select 1 from {outlast.queue_entry} e
    where e.tenant = j.tenant and e.job_id = j.id and e.holder is not null limit 1 offset 0) then 1 else 0 end,
  case when j.state = 'open' and exists (select 1 from {outlast.queue_entry} e
    where e.tenant = j.tenant and e.job_id = j.id and e.holder is null and e.spent > 0 limit 1 offset 0) then 1 else 0 end,
  case when j.state = 'open' and (j.open < j.total
    or exists (select 1 from {outlast.queue_entry} e where e.tenant = j.tenant and e.job_id = j.id and e.fence > 0 limit 1 offset 0)
    or exists (select 1 from {outlast.task} t where t.tenant = j.tenant and t.job_id = j.id and t.fence > 0 limit 1 offset 0))
    then 1 else 0 end,
  case when j.state = 'cancelled' and exists (select 1 from {outlast.queue_entry} e
    where e.tenant = j.tenant and e.job_id = j.id and e.revoked limit 1 offset 0) then 1 else 0 end,
  case when j.state in ('open', 'needs_attention') then (select t.label from {outlast.task} t
    where t.tenant = j.tenant and t.job_id = j.id and t.state in ('open', 'needs_attention') order by t.no limit 1) end,
  a.id, (select t.label from {outlast.task} t where t.tenant = a.tenant and t.job_id = a.job_id and t.no = a.no),
  a.code, a.message, a.actions, {ms:a.until}, {str:a.input_schema},
  j.target_ref, j.target_version, {ms:j.taken_over_at},
  case when j.target_ref is not null and exists (select 1 from {outlast.output} p
    where p.tenant = j.tenant and p.job_id = j.id and p.parked limit 1 offset 0) then 'parked'
    when j.attached_at is not null then 'attached' else 'none' end
from {outlast.job} j
left join {outlast.attention} a on j.attention > 0 and a.tenant = j.tenant and a.job_id = j.id and a.id = (
  select o.id from {outlast.attention} o where o.tenant = j.tenant and o.job_id = j.id and o.resolved_at is null
  order by o.raised_at, o.no limit 1)
"""
"""What a job is shown from, for one job and for lists alike.

The `offset 0` keeps PostgreSQL from answering `exists` for a page of jobs by a hash of all entries and tasks that there are.
"""
