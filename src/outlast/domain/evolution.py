"""Inputs of a kind's older versions, brought up to the present one by a function for each step on the way."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from outlast.domain.annotations import takes
from outlast.domain.errors import Invalid
from outlast.domain.payload import dump, parse

Upgrade: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""From the input of one version, as JSON, to that of the next."""
F = TypeVar("F", bound=Upgrade)


class Upgrades:
    """The functions of one kind, and what they make of an old input. Without any, the kind reads its present version alone."""

    def __init__(self, kind: str, version: int) -> None:
        self._kind = kind
        self._version = version
        self._functions: dict[int, Upgrade] = {}

    def add(self, from_version: int, fn: Upgrade) -> None:
        """Takes the function of one version; Invalid for a version that is not below the kind's, or has one already."""
        if isinstance(from_version, bool) or not isinstance(from_version, int) or from_version < 1:
            raise Invalid("from_version= is the version whose inputs the function takes: a whole number of 1 or more.")
        if from_version >= self._version:
            raise Invalid(
                f"The kind {self._kind!r} has version {self._version}: an upgrade is from an earlier version, not from {from_version}. "
                "Raise version= in @jobs.kind; a task by itself always has version 1."
            )
        if from_version in self._functions:
            raise Invalid(f"The kind {self._kind!r} has an upgrade from version {from_version} already; there is one for each version.")
        if not callable(fn) or inspect.iscoroutinefunction(fn):
            raise Invalid("An upgrade is a plain def that takes an input as a dict and returns that of the next version; it does no I/O.")
        if not takes(fn, 1):
            raise Invalid(
                "An upgrade is called with one argument, an input as a dict: write def from_1(old: dict[str, Any]) -> dict[str, Any]."
            )
        self._functions[from_version] = fn

    @property
    def readable(self) -> range:
        """The versions whose inputs can be read, the present one last. Invalid where a function is missing between two."""
        oldest = min(self._functions, default=self._version)
        missing = [n for n in range(oldest, self._version) if n not in self._functions]
        if missing:
            raise Invalid(
                f"The kind {self._kind!r} has version {self._version} and an upgrade from version {oldest}, but none from version "
                f"{missing[0]}: register a function for each version on the way."
            )
        return range(oldest, self._version + 1)

    def apply(self, text: str, version: int, *, limit: int = sys.maxsize) -> str:
        """The input of a readable version as JSON text of the present one.

        Invalid if a function raises, whatever it is, or gives anything but a JSON object; what it raised is the cause, for operators.
        """
        for step in range(version, self._version):
            text = self._next(text, step, limit=limit if step + 1 == self._version else sys.maxsize)
        return text

    def _next(self, text: str, step: int, *, limit: int) -> str:
        old = parse(text, limit=sys.maxsize, what="input")
        if not isinstance(old, dict):
            raise Invalid(
                f"The input of version {step} is no JSON object, so it cannot be brought up to version {step + 1}.", pointers=("",)
            )
        try:
            new: object = self._functions[step](old)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise Invalid(
                f"The input of version {step} cannot be brought up to version {step + 1}: the upgrade of the kind {self._kind!r} failed.",
                pointers=("",),
            ) from error
        if type(new) is not dict:
            raise Invalid(f"The upgrade of the kind {self._kind!r} from version {step} did not return a dict.", pointers=("",))
        try:
            return dump(new, limit=limit, what=f"input that was brought up from version {step}")
        except Invalid as error:
            raise Invalid(error.message, pointers=("",)) from None  # its places are not those of what was sent


def spoken(versions: range) -> str:
    """Versions in words: "version 3" or "versions 1 to 3"."""
    return f"version {versions[-1]}" if len(versions) == 1 else f"versions {versions[0]} to {versions[-1]}"
