"""The catalogue of problems: where the member `type` of each problem document leads."""

from __future__ import annotations

from starlette.responses import Response

from outlast.http.call import Call
from outlast.http.page.frame import frame_of
from outlast.http.page.rendering import render
from outlast.http.problems import CATALOGUE


async def problems(call: Call) -> Response:
    """Every code with its status and its meaning."""
    return render(frame_of(call), "problems.html", catalogue=CATALOGUE)
