"""What the annotations of a handler, step or plan function say about the values that go in and come out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache, partial
from inspect import Parameter, Signature, signature, unwrap
from types import SimpleNamespace
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from outlast.domain.errors import Invalid

T = TypeVar("T")

_CACHED: Final = 512


class _Missing(Enum):
    MISSING = "no annotation"


MISSING: Final = _Missing.MISSING
"""Stands where there is no annotation; None is one."""


@dataclass(frozen=True, slots=True)
class Hints:
    """The annotations of a function.

    returns: what it gives, the inner type of a Completion or awaitable; MISSING if nothing says so. completion: whether
    it says that it returns a Completion.
    """

    name: str
    returns: object
    completion: bool
    _parameters: tuple[Parameter, ...] = field(repr=False)
    _names: dict[str, Any] = field(repr=False, compare=False)

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
        parameter = self._parameters[position]
        return _resolved(parameter.annotation, self._names, f"the parameter {parameter.name!r} of {self.name}")


def hints(fn: Callable[..., Any]) -> Hints:
    """The annotations of a function, method, partial, class or callable object.

    Invalid, with the function's name, if its return annotation does not resolve. A parameter's is resolved when it is
    asked for: that of the context is never needed at run time.
    """
    name = _name(fn)
    names = _globals(fn)
    declared = _signature(fn)
    if isinstance(fn, type):
        returns: object = fn
    else:
        returns = _resolved(declared.return_annotation, names, f"the return value of {name}")
    if get_origin(returns) in {Awaitable, Coroutine}:
        returns = get_args(returns)[-1]
    completion = _is_completion(get_origin(returns) or returns)
    if completion:
        returns = next(iter(get_args(returns)), MISSING)
    positional = {Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD}
    parameters = tuple(parameter for parameter in declared.parameters.values() if parameter.kind in positional)
    return Hints(name, returns, completion, parameters, names)


def takes(fn: Callable[..., Any], count: int) -> bool:
    """Whether the function can be called with so many values by place; True too where nothing says so (some written in C)."""
    try:
        declared = signature(fn)
    except (TypeError, ValueError):
        return callable(fn)
    try:
        declared.bind(*range(count))
    except TypeError:
        return False
    return True


def per_type(make: Callable[[object], T]) -> Callable[[object], T]:
    """Keeps what `make` gives for a type; for the few types that cannot be hashed it is made each time."""
    kept = lru_cache(_CACHED)(make)

    def made(hint: object) -> T:
        try:
            hash(hint)
        except TypeError:
            return make(hint)
        return kept(hint)

    return made


def _name(fn: Callable[..., Any]) -> str:
    inner = fn.func if isinstance(fn, partial) else fn
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    return f"{named.__module__}.{named.__qualname__}"


def _globals(fn: Callable[..., Any]) -> dict[str, Any]:
    function: object = unwrap(fn.func if isinstance(fn, partial) else fn)
    call: object = vars(type(function)).get("__call__")
    found: dict[str, Any] = getattr(function, "__globals__", None) or getattr(call, "__globals__", {})
    return found


def _signature(fn: Callable[..., Any]) -> Signature:
    try:
        return signature(fn)
    except (TypeError, ValueError):  # some functions written in C
        return Signature()


def _resolved(annotation: object, names: dict[str, Any], place: str) -> object:
    if annotation is Signature.empty:
        return MISSING
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        found: object = get_type_hints(holder, globalns=names, include_extras=True)["it"]
    except Exception as error:  # noqa: BLE001 - evaluates the host's text
        reason = f"{type(error).__name__}: {error}"
    else:
        return found
    raise Invalid(
        f"The annotation of {place} cannot be resolved ({reason}); "
        "import its names at module level, not under TYPE_CHECKING or inside a function."
    )


def _is_completion(kind: object) -> bool:
    """By name, since the class belongs to the worker, which stands above."""
    return isinstance(kind, type) and kind.__name__ == "Completion" and kind.__module__.partition(".")[0] == "outlast"
