"""What goes wrong on request: any built-in exception, by its name, or the whole process."""

from __future__ import annotations

import builtins
import os
import signal
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

_TEXT: Final = "raised on request"
_ARGUMENTS: Final[Mapping[str, tuple[object, ...]]] = {
    "BaseExceptionGroup": (_TEXT, [KeyboardInterrupt(_TEXT)]),
    "ExceptionGroup": (_TEXT, [ValueError(_TEXT)]),
    "UnicodeDecodeError": ("utf-8", b"\xff", 0, 1, _TEXT),
    "UnicodeEncodeError": ("ascii", "\u00e9", 0, 1, _TEXT),
    "UnicodeTranslateError": ("\u00e9", 0, 1, _TEXT),
}


@cache
def exception_names() -> frozenset[str]:
    """The names of the built-in exceptions, those that are no Exception included."""
    return frozenset(name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException))


def exception_named(name: str) -> BaseException:
    """An exception of a built-in type."""
    make: Callable[..., BaseException] = getattr(builtins, name)
    return make(*_ARGUMENTS.get(name, (_TEXT,)))


def die() -> None:
    """Ends this process as the system does when memory runs out: at once, without a goodbye."""
    os.kill(os.getpid(), signal.SIGKILL)
