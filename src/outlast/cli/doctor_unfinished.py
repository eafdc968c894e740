"""What doctor says about work that is not done: whether the code of an application can run it, and if not, what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outlast.cli.checks import Check
from outlast.cli.output import age
from outlast.domain.evolution import spoken
from outlast.domain.kinds import parse_handler
from outlast.domain.registry import Lack, Registry
from outlast.domain.work import UnfinishedRow


def checks_of(rows: Sequence[UnfinishedRow], registry: Registry, target: str | None) -> list[Check]:
    """How much there is, and what of it `target` cannot run."""
    total = sum(row.count for row in rows)
    if target is None:
        advice = "With TARGET, doctor also says whether there is code for all of them." if total else ""
        return [Check("unfinished tasks", total, "note" if total else "ok", advice)]
    checks = [Check("unfinished tasks", total)]
    for row in rows:
        lack = registry.lack(row.handler)
        if lack is not None:
            checks.append(Check(f"unfinished {row.handler}", row.count, "action", _advice(row, lack, registry, target)))
    return checks


def json_of(rows: Sequence[UnfinishedRow], registry: Registry, target: str | None) -> list[dict[str, Any]]:
    """A member for each handler; `runnable` is null without a target."""
    return [
        {
            **dict(zip(("kind", "version", "task"), parse_handler(row.handler), strict=True)),
            "count": row.count,
            "oldest_seconds": row.oldest_ms / 1000,
            "runnable": None if target is None else registry.lack(row.handler) is None,
        }
        for row in rows
    ]


def _advice(row: UnfinishedRow, lack: Lack, registry: Registry, target: str) -> str:
    kind, version, task = parse_handler(row.handler)
    said = f"{target} has no code for it, so its workers leave it waiting"
    oldest = f"The oldest job is {age(row.oldest_ms / 1000)} old."
    old_release = "keep a worker of the old release until it is done"
    match lack:
        case Lack.KIND:
            return (
                f"{said}. {oldest} It registers no kind {kind!r}: start a worker of a release that does, register it again under this "
                "name, or cancel those jobs."
            )
        case Lack.OLDER:
            readable = spoken(registry.kinds[kind].upgrades.readable)
            return (
                f"{said}. {oldest} It reads {readable} of the kind {kind!r}: register @kind.upgrade(from_version={version}) and those that "
                f"follow it, or {old_release}."
            )
        case Lack.NEWER:
            readable = spoken(registry.kinds[kind].upgrades.readable)
            return f"{said}. {oldest} It reads {readable} of the kind {kind!r}: a newer release made those jobs. Start its workers."
        case Lack.TASK:
            return (
                f"{said}. {oldest} It registers no task {task!r} that takes the input of the kind {kind!r}: register it again under this "
                f"name (name= keeps an old one), or {old_release}."
            )
