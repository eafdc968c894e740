"""The list of mutations has not gone stale, and the runner tells what is noticed from what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mutants.mutations import MUTATIONS, Mutation
from mutants.run import Stale, mutated, stale, try_out

LEAST = 40
TEXT = "@mark\ndef one():\n    return a\n\n\ndef two():\n    return a\n\n-- name: three\nand a\n-- name: four\nand a\n"


def test_each_is_there_exactly_once() -> None:
    assert not stale(MUTATIONS)


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    names = {mutation.name for mutation in MUTATIONS}
    assert len(names) == len(MUTATIONS) >= LEAST


def test_each_changes_one_line() -> None:
    changes = [mutation.old.strip("\n") + mutation.new.strip("\n") for mutation in MUTATIONS]
    assert not [change for change in changes if "\n" in change]


@pytest.mark.parametrize(("within", "line"), [("def one", 3), ("def two", 7), ("-- name: three", 10), ("-- name: four", 12)])
def test_a_mutation_is_looked_for_in_its_part_alone(within: str, line: int) -> None:
    changed = mutated(TEXT, Mutation("a", "file", within, "a\n", "b\n", ())).splitlines()
    assert [n for n, (old, new) in enumerate(zip(TEXT.splitlines(), changed, strict=True), 1) if old != new] == [line]


@pytest.mark.parametrize(
    ("within", "old"), [("def one", "c"), ("def one", "r"), ("def three", "a"), ("name", "a"), ("-- name: three", "b")]
)
def test_what_is_not_there_once_is_an_error(within: str, old: str) -> None:
    with pytest.raises(Stale):
        mutated(TEXT, Mutation("a", "file", within, old, "b", ()))


@pytest.mark.timeout(120)
def test_what_is_noticed_is_killed_and_what_is_not_survives() -> None:
    (mutation,) = [mutation for mutation in MUTATIONS if mutation.name == "no cap"]
    assert try_out(mutation).killed
    assert not try_out(replace(mutation, new=f"{mutation.old}  # as before")).killed
    assert not try_out(replace(mutation, tests=("tests/nowhere",))).killed
