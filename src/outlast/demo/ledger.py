"""Which chapters were really collected, and by whom: a file in the book's folder, so that it is told by nobody's database."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Final

NAME: Final = "chapters.jsonl"


def note(folder: Path, job_id: str, chapter: int, fence: int) -> None:
    """Adds that a chapter was collected for a job, under a fence."""
    line = {"job": job_id, "chapter": chapter, "fence": fence, "pid": os.getpid(), "time": time.time()}
    with (folder / NAME).open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps(line) + "\n")


def collected(folder: Path, job_id: str) -> dict[int, list[int]]:
    """The chapters that were collected for a job so far, each with the fences under which it was."""
    found: dict[int, list[int]] = {}
    ledger = folder / NAME
    for line in ledger.read_text(encoding="utf-8").splitlines(keepends=True) if ledger.exists() else ():
        if line.endswith("\n"):  # else it is being written
            entry = json.loads(line)
            if entry["job"] == job_id:
                found.setdefault(int(entry["chapter"]), []).append(int(entry["fence"]))
    return found
