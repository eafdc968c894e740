"""What docs/limits.md shows is run."""

from __future__ import annotations

import asyncio
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from invariants import query
from outlast import Outlast, Principal
from outlast.domain.limits import MAX_LIMIT, MAX_LIMIT_KEY
from outlast.store.open import migrate, open_store
from outlast.worker.runtime import Options, Worker

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "limits.md").read_text("utf-8")


async def test_the_example_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    example = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[0]
    shop: Any = types.ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", shop)
    exec(compile(example, "shop.py", "exec"), vars(shop))  # noqa: S102 - the document's own text
    jobs: Outlast = shop.jobs
    migrate(jobs.url)
    who = Principal("acme", "ann")
    handles = [await jobs.submit(shop.import_shop, shop.Shop(n), owner=who) for n in (7, 8)]
    store = open_store(jobs.url, worker=True)
    worker = Worker(store, jobs.registry, jobs.settings, Options(lease=5))

    running = asyncio.create_task(worker.run())
    try:
        for handle in handles:
            assert (await jobs.wait(handle.id, principal=who, timeout=15)).state == "completed"
    finally:
        worker.stop()
        await running
    await store.close()
    await jobs.close()
    rows = query(f"sqlite:///{tmp_path / 'shop.db'}", "select key, n from {slot} order by key, n")
    assert [(row["key"], row["n"]) for row in rows] == [("mail-provider", 1), ("mail-provider", 2), ("shop-7", 1), ("shop-8", 1)]


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"1 to {MAX_LIMIT_KEY} characters" in TEXT
    assert f"from 1 to {MAX_LIMIT:,}" in TEXT
