"""What stands for the world in these examples: a catalogue that does not answer the first call, a printer, a mail provider."""

from __future__ import annotations

import uuid

SENT: dict[str, str] = {}
"""The mails that the provider has sent, by the key that they came with."""
_ASKED: set[int] = set()


def load(order: int) -> str:
    """The customer of an order; ConnectionError the first time."""
    if order not in _ASKED:
        _ASKED.add(order)
        raise ConnectionError("the catalogue did not answer")
    return f"customer-{order}@example.org"


def draw(order: int, page: int) -> str:
    """One page."""
    return f"page {page} of order {order}"


def send(to: str, text: str, key: str | None = None) -> None:
    """A mail. The provider knows a key again; without one, each call is another mail."""
    SENT.setdefault(key or uuid.uuid4().hex, f"{to}: {text}")
