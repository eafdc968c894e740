"""The ledger: what really ran, one JSON line each, in a file that knows nothing of Outlast's own state."""

from __future__ import annotations

import json
import os
import time
from typing import Literal

from outlast.observe.correlation import worker_id

FILE = "OUTLAST_REHEARSAL_LEDGER"

Happening = Literal["start", "step", "effect", "end"]


def write(event: Happening, *, job: str, label: str, attempt: int, fence: int, step: int | None = None) -> None:
    """Appends one line, written at once and as a whole, so that no line of a process that is killed is lost or torn."""
    path = os.environ.get(FILE)
    if not path:
        return
    line = {
        "event": event,
        "job": job,
        "label": label,
        "step": step,
        "attempt": attempt,
        "fence": fence,
        "pid": os.getpid(),
        "worker": worker_id.get(),
        "time": time.time(),
    }
    with open(path, "ab", buffering=0) as file:  # noqa: PTH123 - unbuffered: one system call a line
        file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
