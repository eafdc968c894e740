"""Where settings name the backend: outlast.integrations.django.tasks.OutlastBackend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outlast.integrations.django.backend import OutlastBackend

__all__ = ["OutlastBackend"]


def __getattr__(name: str) -> Any:
    """Imported when asked for: what looks for modules of this name in each app meets this one without the framework too."""
    if name == "OutlastBackend":
        from outlast.integrations.django.backend import OutlastBackend  # noqa: PLC0415 - see above

        return OutlastBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
