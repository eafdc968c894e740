"""Whose work is being done, in context variables: the correlation id, taken up by a submit, and the worker. Set for each attempt."""

from __future__ import annotations

from contextvars import ContextVar

correlation_id: ContextVar[str | None] = ContextVar("outlast_correlation_id", default=None)
"""The id that a job submitted here inherits; None outside a request or attempt."""
traceparent: ContextVar[str | None] = ContextVar("outlast_traceparent", default=None)
"""The W3C trace context that a job submitted here is stored with; None outside of a traced request."""
worker_id: ContextVar[str | None] = ContextVar("outlast_worker_id", default=None)
"""The worker that runs the present attempt; None outside of one."""
