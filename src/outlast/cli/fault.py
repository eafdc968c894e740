"""What the application's own code raised, told in one line: the exception and the application's line, and Outlast's words."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import outlast
from outlast.cli.exits import Refused
from outlast.domain import kinds
from outlast.domain.errors import OutlastError

_OURS = str(Path(outlast.__file__).parent)
_PYTHONS = sysconfig.get_path("stdlib")


def told(error: BaseException) -> str:
    """The exception's class and place. Its text may hold a secret and is left out, but for that of Outlast's own refusals."""
    said = f": {error.message.removesuffix('.')}" if isinstance(error, OutlastError) else ""
    return f"{type(error).__name__}{_place(error)}{said}"


@contextmanager
def planning(kind: str) -> Generator[None]:
    """Refused, with the code `plan_failed`, for what the function of a kind raises by itself; refusals and Outlast's own defects pass."""
    try:
        yield
    except (OutlastError, Refused):
        raise
    except Exception as error:
        if all(frame.filename != kinds.__file__ for frame in traceback.extract_tb(error.__traceback__)):  # the store's, say
            raise
        raise Refused(f"The function of {kind} failed: {told(error)}. Nothing was written.", code="plan_failed") from error


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f" in {error.filename}, line {error.lineno}"
    frames = _outside(error) or traceback.extract_tb(error.__traceback__)[-1:]
    return f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""


def _outside(error: BaseException) -> list[traceback.FrameSummary]:
    """The frames of the application and of its packages: those that are neither Outlast's nor Python's."""
    return [frame for frame in traceback.extract_tb(error.__traceback__) if not _passed_over(frame.filename)]


def _passed_over(file: str) -> bool:
    if file.startswith(_PYTHONS):
        return not {"site-packages", "dist-packages"} & set(Path(file).parts)
    return file.startswith((_OURS, "<"))
