"""The correlation id of what is being done: taken up by a submit, set for each attempt, in a context variable."""

from __future__ import annotations

from contextvars import ContextVar

correlation_id: ContextVar[str | None] = ContextVar("outlast_correlation_id", default=None)
"""The id that a job submitted here inherits; None outside a request or attempt."""
