"""The log of a process that works: lines on standard error that nothing stored can break up, and no flood while the store is away."""

from __future__ import annotations

import logging
import time
from typing import Final

import click

from outlast.cli.output import safe

_LEVELS: Final = ("debug", "info", "warning", "error")
_FIRST_PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 600.0
_MOST_WORDS: Final = 100

log_option = click.option("--log", type=click.Choice(_LEVELS), default="info", show_default=True, help="How much goes to standard error.")


def write_log(level: str) -> None:
    """Logs to standard error, unless the application has set up logging by itself."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.getLogger("psycopg.pool").addFilter(Seldom())


class _OneLine(logging.Formatter):
    """A record as one line without control characters; a traceback below it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        record.message = safe(record.message)
        return super().formatMessage(record)


class Seldom(logging.Filter):
    """Passes the same words again only after a pause that grows: a driver repeats itself at every try while a store is away."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, tuple[float, float]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is time for these words."""
        now = time.monotonic()
        words = record.getMessage()
        due, pause = self._seen.get(words, (now, _FIRST_PAUSE))
        if now < due:
            return False
        if now > due + 2 * pause:
            pause = _FIRST_PAUSE  # another outage
        if len(self._seen) > _MOST_WORDS:
            self._seen.clear()
        self._seen[words] = (now + pause, min(2 * pause, _LONGEST_PAUSE))
        return True
