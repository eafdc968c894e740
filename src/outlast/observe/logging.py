"""Events as records of the standard logging module, with the fields as `extra`."""

from __future__ import annotations

import logging
from dataclasses import fields

from outlast.observe.events import Event

_logger = logging.getLogger("outlast")


def log(event: Event) -> None:
    """Writes one record, at the event's level."""
    level = logging.getLevelNamesMapping()[event.level]
    if _logger.isEnabledFor(level):
        extra = {f"outlast_{f.name}": getattr(event, f.name) for f in fields(event)}
        _logger.log(level, "%s", event.text(), extra={"event": type(event).__name__, **extra})
