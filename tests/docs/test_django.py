"""What docs/django.md shows can be read by Python, and imports what there is."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from integrations.django import conftest  # sets Django up

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "django.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_there_are_some() -> None:
    assert len(BLOCKS) >= 5
    assert conftest.jobs is importlib.import_module("outlast.integrations.django").jobs


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block(block: str) -> None:
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.partition(".")[0] in ("outlast", "django"):
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name), f"{node.module}.{name.name}"


def test_every_setting_command_and_check_is_described() -> None:
    from outlast.integrations.django.backend import _OPTIONS  # noqa: PLC0415 - after the settings
    from outlast.integrations.django.configuration import Configuration  # noqa: PLC0415

    for name in (*Configuration.__dataclass_fields__, *_OPTIONS):
        assert f"`{name}`" in TEXT, name
    package = Path(importlib.import_module("outlast.integrations.django.management.commands").__file__ or "").parent
    for command in package.glob("outlast_*.py"):
        name = command.stem.removeprefix("outlast_")
        assert re.search(rf"`(manage.py outlast_)?{name}`", TEXT), name
    for code in ("E001", "E002", "E003", "E004", "W001"):
        assert code in TEXT
