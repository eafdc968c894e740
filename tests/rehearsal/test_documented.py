"""The page about the rehearsal: every member is on it, and its example is one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec

from outlast.rehearsal.handlers import rehearsal
from outlast.rehearsal.ledger import FILE
from outlast.rehearsal.model import Effect, Fail, Part, Question, Rehearsal
from outlast.rehearsal.outside import ADDRESS
from outlast.rehearsal.provider import MODES

PAGE = (Path(__file__).parents[2] / "docs" / "rehearsal.md").read_text()


def test_every_member_is_documented() -> None:
    for struct in (Rehearsal, Part, Fail, Question, Effect):
        for name in struct.__struct_encode_fields__:
            assert f"`{name}`" in PAGE, name
    for mode in MODES:
        assert f"`{mode}`" in PAGE, mode
    assert FILE in PAGE
    assert ADDRESS in PAGE


def test_the_example_is_a_job() -> None:
    (example,) = re.findall(r"^    (\{\"tasks\".*?\]\})$", PAGE, re.MULTILINE | re.DOTALL)
    specs = rehearsal.plan(msgspec.convert(json.loads(example), Rehearsal))
    assert [(spec.label, spec.usable) for spec in specs] == [("fetch", False), ("publish", True)]
