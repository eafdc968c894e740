"""What docs/schedules.md shows is run, and what it says of failures is what there is."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outlast import Context, Outlast, Principal
from outlast.domain.schedules import MOST_MISSED, ON_TIME_MS, SHORTEST
from outlast.store.open import migrate

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "schedules.md").read_text("utf-8")


@dataclass
class Report:
    month: str


@dataclass
class Sync:
    shop: str


async def test_the_example_does_what_it_says(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    jobs = Outlast(f"sqlite:///{tmp_path}/jobs.db")
    migrate(jobs.url)

    @jobs.task
    async def report(ctx: Context, given: Report) -> None: ...

    @jobs.task
    async def sync(ctx: Context, given: Sync) -> None: ...

    who = Principal("acme", "ann")
    names: dict[str, Any] = {"jobs": jobs, "report": report, "sync": sync, "Report": Report, "Sync": Sync, "who": who}
    exec(f"async def example() -> None:\n{textwrap.indent(block, '    ')}", names)  # noqa: S102 - the page's own text
    await names["example"]()
    (left,) = await jobs.schedules(principal=who)
    await jobs.close()

    assert (left.name, left.when, left.catch_up) == ("sync", "every 900 s", "skip")


def test_the_numbers_and_codes_are_those_of_the_code() -> None:
    assert f"within {ON_TIME_MS // 1000} seconds" in TEXT
    assert f"1 to {MOST_MISSED}" in TEXT
    assert f"from {SHORTEST:.0f} second on" in TEXT
    scheduler = (ROOT / "src" / "outlast" / "worker" / "scheduler.py").read_text("utf-8")
    for code in ("plan_failed", "payload_incompatible"):
        assert f'"{code}"' in scheduler
        assert f"`{code}`" in TEXT
