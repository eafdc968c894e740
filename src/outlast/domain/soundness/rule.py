"""What a rule is, and what comes of one that does not hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

S = TypeVar("S")

CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Fault(NamedTuple):
    """What is found, what it should be, and of which task; never a payload, nor a text that somebody else wrote."""

    found: str
    expected: str
    no: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """`id` is the invariant that it belongs to, `name` tells it from the others of the same; the sentence says what holds."""

    id: str
    name: str
    sentence: str

    @property
    def full(self) -> str:
        """What it is called: no two rules are called the same."""
        return f"{self.id} {self.name}"


@dataclass(frozen=True, slots=True)
class Checked(Rule, Generic[S]):
    """A rule with the pure function that finds what breaks it, of a job's rows or of an effect."""

    check: Callable[[S], Iterable[Fault]]


def rule(id: str, name: str, sentence: str) -> Callable[[Callable[[S], Iterable[Fault]]], Checked[S]]:
    """Makes a function that yields faults into a rule."""

    def made(check: Callable[[S], Iterable[Fault]]) -> Checked[S]:
        return Checked(id, name, sentence, check)

    return made


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that does not hold somewhere in a store."""

    rule: Rule
    tenant: str
    job_id: str
    no: int | None
    found: str
    expected: str


def word(value: str | None) -> str:
    """A stored word as a report may show it: a text that is none could be anything."""
    if value is None:
        return "not set"
    return value if CODE.fullmatch(value) else "no word of Outlast's"


def given(value: object) -> str:
    """Whether a value is there, which is all that a report says about it."""
    return "not set" if value is None else "set"


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
