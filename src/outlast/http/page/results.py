"""The output of a job or of one of its tasks, to be read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from outlast.client import reading
from outlast.domain.conflicts import NotReady
from outlast.http.call import Call, query
from outlast.http.page.frame import frame_of
from outlast.http.page.rendering import render
from outlast.http.problems import problem_of

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_NO_TASK: Final = 999_999_999
_TURNING: Final = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


@dataclass(frozen=True, slots=True)
class Readable:
    """An output for people: text as it is, anything else as indented JSON. `empty`: there is nothing to read."""

    text: str
    plain: bool
    empty: bool


def readable(body: str) -> Readable:
    """What a stored output looks like to people."""
    value = json.loads(body)
    if isinstance(value, str):
        return Readable(value, plain=True, empty=not value.strip())
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # What cannot be seen, or turns the direction of what stands around it, is written as JSON writes it.
    return Readable(_TURNING.sub(lambda found: f"\\u{ord(found[0]):04x}", text), plain=False, empty=value is None)


async def result(call: Call) -> Response:
    """The output that made the job usable, or that of one task by its number."""
    query(call.request)
    named: str | None = call.request.path_params.get("no")
    no = None if named is None else int(named) if _NUMBER.fullmatch(named) else _NO_TASK
    job = await call.job()
    try:
        body = await call.desk.drive(reading.output(call.desk.app, call.job_id, call.principal, no))
    except NotReady as error:
        raise problem_of(error) from error
    tasks = () if no is None else await call.desk.drive(reading.tasks(call.job_id, call.principal))
    label = next((task.label for task in tasks if task.no == no), job.label)
    raw = f"/v1/jobs/{job.id}/result" + ("" if no is None else f"/{no}")
    return render(frame_of(call), "result.html", job=job, label=label, raw=raw, shown=readable(body))
