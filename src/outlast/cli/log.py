"""The log of a process that works: lines on standard error that nothing stored can break up, and no flood while the store is away."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

import click

from outlast.cli.output import safe
from outlast.observe.logging import PREFIX, JsonFormatter

_LEVELS: Final = ("debug", "info", "warning", "error")
_FORMATS: Final = ("text", "json")
_FIRST_PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 600.0
_MOST_WORDS: Final = 100

_log = click.option("--log", type=click.Choice(_LEVELS), default="info", show_default=True, help="How much goes to standard error.")
_log_format = click.option(
    "--log-format", type=click.Choice(_FORMATS), default="text", show_default=True, help="Lines for people, or JSON lines with all fields."
)


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options `--log` and `--log-format` of a command that works."""
    return _log(_log_format(command))


def write_log(level: str, log_format: str) -> None:
    """Logs to standard error, unless the application has set up logging by itself."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else _OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.getLogger("psycopg.pool").addFilter(Seldom())


class _OneLine(logging.Formatter):
    """A record as one line without control characters, with its correlation id; a traceback below it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        record.message = safe(record.message)
        found = getattr(record, f"{PREFIX}correlation_id", None)
        if isinstance(found, str) and found and found not in record.message:
            record.message += f" [{safe(found)}]"
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
