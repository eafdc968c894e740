"""Where events go. Logging listens from the start; a subscriber that raises is dropped from nobody's way."""

from __future__ import annotations

import logging
from collections.abc import Callable

from outlast.observe.events import Event
from outlast.observe.logging import log

Subscriber = Callable[[Event], None]

_subscribers: list[Subscriber] = [log]


def subscribe(subscriber: Subscriber) -> Callable[[], None]:
    """Calls the subscriber with every event, from whatever thread; returns what ends that."""
    _subscribers.append(subscriber)

    def unsubscribe() -> None:
        if subscriber in _subscribers:
            _subscribers.remove(subscriber)

    return unsubscribe


def emit(event: Event) -> None:
    """Tells all subscribers."""
    for subscriber in tuple(_subscribers):
        try:
            subscriber(event)
        except Exception:
            logging.getLogger("outlast").exception("a subscriber of events failed")
