"""The figures for sizing are the server's own counts: what a job of one task writes is what the layout says."""

from __future__ import annotations

import pytest

from rehearsals.sizing import BATCH, measure

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]


def test_a_job_of_one_task_is_five_rows_asked_for_and_five_writes_done() -> None:
    found, kept = measure(BATCH, short=True)
    asked, done = found[f"one task: asked for, {BATCH} at once"], found["one task: done"]
    assert (asked.inserted, asked.updated, asked.deleted) == (5, 0, 0)  # submission, job, input, task, entry
    assert (round(done.inserted), round(done.updated), round(done.deleted)) == (1, 3, 1)  # output; entry, task, job; entry
    assert 0 < kept < 4096
