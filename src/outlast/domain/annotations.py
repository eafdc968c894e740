"""What the annotations of a handler, step or plan function say about the values that go in and come out."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from inspect import Parameter, Signature, signature, unwrap
from types import SimpleNamespace
from typing import Any, Final, get_args, get_origin, get_type_hints

from outlast.domain.errors import Invalid


class _Missing(Enum):
    MISSING = "no annotation"


MISSING: Final = _Missing.MISSING
"""Stands where there is no annotation; None is one."""


@dataclass(frozen=True, slots=True)
class Hints:
    """The resolved annotations of a function.

    returns: what it gives, the inner type of a Completion or awaitable; MISSING if nothing says so. completion: whether
    it says that it returns a Completion.
    """

    name: str
    returns: object
    completion: bool
    _parameters: tuple[tuple[str, object], ...]

    @property
    def annotated(self) -> bool:
        """Whether the function says what it returns."""
        return self.returns is not MISSING

    @property
    def plain(self) -> bool:
        """Whether nothing says how to read its value back, so that it may only make plain JSON values."""
        return self.returns is MISSING or self.returns is Any or self.returns is object

    def parameter(self, position: int) -> object:
        """The type of a positional parameter, MISSING if it has none; Invalid if its annotation does not resolve."""
        if position >= len(self._parameters):
            return MISSING
        name, hint = self._parameters[position]
        if isinstance(hint, _Unresolved):
            raise hint.invalid(self.name, f"the parameter {name!r}")
        return hint


@dataclass(frozen=True, slots=True)
class _Unresolved:
    error: str

    def invalid(self, name: str, place: str) -> Invalid:
        return Invalid(
            f"The annotation of {place} of {name} cannot be resolved ({self.error}); "
            "import its names at module level, not under TYPE_CHECKING or inside a function."
        )


def hints(fn: Callable[..., Any]) -> Hints:
    """The annotations of a function, method, partial, class or callable object.

    Invalid, with the function's name, if its return annotation does not resolve. A parameter's is judged when it is
    asked for: that of the context is never needed at run time.
    """
    name = _name(fn)
    names = _globals(fn)
    declared = _signature(fn)
    parameters = tuple(
        (parameter.name, _resolved(parameter.annotation, names))
        for parameter in declared.parameters.values()
        if parameter.kind in {Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD}
    )
    returns = fn if isinstance(fn, type) else _resolved(declared.return_annotation, names)
    if isinstance(returns, _Unresolved):
        raise returns.invalid(name, "the return value")
    if get_origin(returns) in {Awaitable, Coroutine}:
        returns = get_args(returns)[-1]
    completion = _is_completion(get_origin(returns) or returns)
    if completion:
        returns = next(iter(get_args(returns)), MISSING)
    return Hints(name, returns, completion, parameters)


def _name(fn: Callable[..., Any]) -> str:
    inner = fn.func if isinstance(fn, partial) else fn
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    return f"{named.__module__}.{named.__qualname__}"


def _globals(fn: Callable[..., Any]) -> Mapping[str, object]:
    inner = fn.func if isinstance(fn, partial) else fn
    function: object = unwrap(inner)
    call: object = vars(type(function)).get("__call__")
    found: Mapping[str, object] = getattr(function, "__globals__", None) or getattr(call, "__globals__", {})
    return found


def _signature(fn: Callable[..., Any]) -> Signature:
    try:
        if sys.version_info >= (3, 14):
            from annotationlib import Format  # noqa: PLC0415 - new in 3.14

            return signature(fn, annotation_format=Format.FORWARDREF)
        return signature(fn)
    except (TypeError, ValueError):  # some functions written in C
        return Signature()


def _resolved(annotation: object, names: Mapping[str, object]) -> object:
    if annotation is Signature.empty:
        return MISSING
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, globalns=dict(names), include_extras=True)["it"]
    except Exception as error:  # noqa: BLE001 - evaluates the host's text
        return _Unresolved(f"{type(error).__name__}: {error}")


def _is_completion(kind: object) -> bool:
    """By name, since the class belongs to the worker, which stands above."""
    return isinstance(kind, type) and kind.__name__ == "Completion" and kind.__module__.partition(".")[0] == "outlast"
