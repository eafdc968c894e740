"""A world for each hostile request, and what only a running application knows about it."""

from __future__ import annotations

from web.world import world

__all__ = ["world"]
