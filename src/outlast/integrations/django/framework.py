"""Django's Tasks framework: `django.tasks` of Django 6, else the package django-tasks, which brings it to earlier ones."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from types import ModuleType

TaskLike = Any
"""A Task of the framework, which has one class in Django and another in the package."""
ResultLike = Any
"""A TaskResult of it."""


def name() -> str | None:
    """The package that holds the framework here; None if there is none."""
    if find_spec("django.tasks") is not None:
        return "django.tasks"
    return "django_tasks" if find_spec("django_tasks") is not None else None


def part(module: str = "") -> ModuleType:
    """A module of the framework; ImproperlyConfigured where there is none."""
    found = name()
    if found is None:
        raise ImproperlyConfigured("Django's Tasks framework comes with Django 6; with an earlier one install the package django-tasks.")
    return import_module(f"{found}.{module}" if module else found)


def invalid(words: str) -> Exception:
    """The framework's refusal of a task."""
    exceptions = part("exceptions")
    refusal = getattr(exceptions, "InvalidTask", None) or exceptions.InvalidTaskError
    made: Exception = refusal(words)
    return made


def missing(words: str) -> Exception:
    """The framework's word for a result that is not there."""
    made: Exception = part("exceptions").TaskResultDoesNotExist(words)
    return made


def normalized(value: Any) -> Any:
    """A value as JSON has it; TypeError or ValueError for what JSON does not have."""
    try:
        return part("base").normalize_json(value)
    except RecursionError:
        raise ValueError("That is nested too deeply to be stored, or contains itself.") from None


def path_of(of: Any) -> str:
    """Module and name."""
    return f"{of.__module__}.{of.__qualname__}"
