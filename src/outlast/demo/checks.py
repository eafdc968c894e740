"""What the demo expects, and how it ends where that does not hold."""

from __future__ import annotations


class DemoError(Exception):
    """Something was not as it should be."""


def expect(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as an assertion
    """Goes on only if it holds; DemoError with the words for what should have been."""
    if not holds:
        raise DemoError(otherwise)
