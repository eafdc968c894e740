"""Events as records of the standard logging module, with the fields as `extra`; and a formatter that writes records as JSON lines."""

from __future__ import annotations

import json
import logging
import traceback
from dataclasses import fields
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final

from outlast.observe.correlation import correlation_id, worker_id
from outlast.observe.events import Event

_logger = logging.getLogger("outlast")
PREFIX: Final = "outlast_"
"""Stands before each field in a record's `extra`, so that it meets no name of another library."""
_OF_EACH_RECORD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_FRAMES: Final = 20


def log(event: Event) -> None:
    """Writes one record, at the event's level. Events that name no correlation id get the one of the request or attempt."""
    level = logging.getLevelNamesMapping()[event.level]
    if not _logger.isEnabledFor(level):
        return
    extra = {f"{PREFIX}{f.name}": getattr(event, f.name) for f in fields(event)}
    if not extra.get(f"{PREFIX}correlation_id"):
        extra[f"{PREFIX}correlation_id"] = correlation_id.get()
    _logger.log(level, "%s", event.text(), extra={"event": type(event).__name__, **extra})


class JsonFormatter(logging.Formatter):
    """Each record as one line of JSON: time, level, logger, message, what stands in `extra`, correlation id and worker.

    A handler's own records are written too, with the correlation id of their attempt or request. Of exceptions the type and the
    places in the code are written, never the text: that may hold values of users and secrets.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in vars(record).items():
            if name not in _OF_EACH_RECORD and value is not None:
                said.setdefault(name.removeprefix(PREFIX), _plain(value))
        for name, value in (("correlation_id", correlation_id.get()), ("worker", worker_id.get())):
            if value is not None:
                said.setdefault(name, value)
        if record.exc_info is not None and record.exc_info[0] is not None:
            said["exception"] = _exception(record.exc_info[0], record.exc_info[2])
        return json.dumps(said, ensure_ascii=True, default=str)


def _plain(value: object) -> object:
    if isinstance(value, str | int | float | bool):
        return value
    return str(value)


def _exception(kind: type[BaseException], tb: TracebackType | None) -> dict[str, object]:
    frames = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(tb)[-_FRAMES:]]
    return {"type": kind.__qualname__, "frames": frames}
