"""Whether this process lives, and whether it can serve."""

from __future__ import annotations

from starlette.responses import Response

from outlast.domain.errors import OutlastError
from outlast.http import wire
from outlast.http.call import Call
from outlast.store.programs import status

_UNAVAILABLE = 503


async def healthz(call: Call) -> Response:  # noqa: ARG001 - alive is who answers
    """It answers, so it lives; nothing is asked of the store."""
    return Response(wire.encode(wire.Health("ok")), media_type="application/json")


async def readyz(call: Call) -> Response:
    """Ready means that the store answers, is migrated to what this code needs, and that the process is not stopping."""
    if call.service.watcher.stopped:
        return _unavailable("stopping")
    try:
        await call.desk.store.run(status.clock())
    except OutlastError as error:
        return _unavailable(error.code)
    return Response(wire.encode(wire.Health("ok")), media_type="application/json")


def _unavailable(code: str) -> Response:
    return Response(wire.encode(wire.Health("unavailable", code)), _UNAVAILABLE, {"Retry-After": "2"}, media_type="application/json")
