"""The example of docs/evolution.md does what the page says."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from outlast import Outlast, Principal
from outlast.client.submitting import prepare_sent

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "evolution.md").read_text("utf-8")


def test_the_example_brings_an_old_input_up(monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    shop = types.ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", shop)
    exec(compile(block, "shop.py", "exec"), vars(shop))  # noqa: S102 - the page's own text
    jobs: Outlast = shop.jobs
    job = prepare_sent(jobs.desk.app, "report", 1, {"period": "May"}, owner=Principal("acme", "ann"), key="k", not_before=None)
    assert (job.schema_version, job.input) == (2, '{"month":"May"}')
    assert {"report@1:write_text", "report@2:write_text"} <= set(jobs.registry.handlers())
