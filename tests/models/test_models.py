"""The models are tied to the tables and the SQL that they speak of, and the quickest of what `make models` does at length."""

from __future__ import annotations

import re

import pytest

from models.run import HERE, MODELS, Model, explore, missing_tool
from outlast.domain.states import TASK_TRANSITIONS
from outlast.store.postgres import dialect as postgres
from outlast.store.sqlite import dialect as sqlite

_TAG = re.compile(r"\[(T\d+|effect): ([a-z_]+)\]")
_ERROR = re.compile(r"^#if(?:n?)def ([A-Z_]+)", re.MULTILINE)
_MISSING = missing_tool()

tools = pytest.mark.skipif(_MISSING is not None, reason=f"THE MODELS ARE NOT EXPLORED: {_MISSING}")


def text(model: Model) -> str:
    return (HERE / f"{model.name}.pml").read_text("utf-8")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_each_tag_names_a_row_and_a_block_that_are_there(model: Model) -> None:
    rows = {transition.no.rstrip("abc") for transition in TASK_TRANSITIONS} | {"effect"}
    blocks = sqlite.statements().keys() | postgres.statements(postgres.SCHEMA).keys()
    tags = _TAG.findall(text(model))
    assert len(tags) > 3
    assert {row for row, _ in tags} <= rows
    assert {block for _, block in tags} <= blocks


def test_the_lease_has_every_row_of_a_task_that_waits_for_nothing_else() -> None:
    """What is missing is about admission and the graph (T1 to T3), optional tasks, or a word of the owner that ends as others do."""
    (lease,) = [model for model in MODELS if model.name == "lease"]
    rows = {transition.no.rstrip("abc") for transition in TASK_TRANSITIONS}
    assert rows - {row for row, _ in _TAG.findall(text(lease))} == {"T1", "T2", "T3", "T10", "T18", "T19", "T20"}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_each_error_that_a_model_knows_is_put_in(model: Model) -> None:
    known = set(_ERROR.findall(text(model))) - {"MAX_FENCE", "FAULTS", "WAY"}
    assert known == {definitions[0] for definitions in model.errors}


@tools
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["lease", "effect"])
def test_a_model_holds_in_every_state_and_an_error_is_refuted(name: str) -> None:
    (model,) = [model for model in MODELS if model.name == name]
    whole = explore(model, model.variants[0], optimise="-O0")
    assert whole.complete, whole.said
    assert whole.errors == 0
    assert explore(model, model.errors[0], optimise="-O0").errors == 1
