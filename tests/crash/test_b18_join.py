"""Fan-out and join, with kills in between: the join starts exactly once (B18)."""

from __future__ import annotations

import pytest

from crash.stage import OWNER, Stage
from invariants import query

PARTS = 100
SLOTS = {"default": 8}


def fan_out(stage: Stage, *, parts: int = PARTS, bad: dict[str, object] | None = None, **join: object) -> str:
    labels = [f"part {n}" for n in range(parts)]
    tasks: list[dict[str, object]] = [{"label": label, "seconds": 0.01} for label in labels]
    if bad is not None:
        tasks[parts // 2].update(bad)
    return stage.submit({"label": "join", "after": labels, **join}, *tasks, retry_base=0.05)


@pytest.mark.timeout(120)
def test_the_join_starts_once_whoever_is_killed_on_the_way(stage: Stage) -> None:
    between = "insert_output" if stage.dialect == "sqlite" else "finish"
    rounds = (
        {"op": "finish", "at": "before", "do": "kill", "count": 3},  # parts done, their completions not committed
        {"op": "finish", "at": "after", "do": "kill", "count": 20},  # committed, nobody told
        {"op": "finish", "at": f"statement {between}", "do": "kill", "count": 5},  # on SQLite: before the join is unlocked
    )
    survivor = stage.worker(queues=SLOTS)
    for hook in rounds:
        victim = stage.worker(queues=SLOTS, hooks=[hook])
        job = fan_out(stage)
        stage.reached([job])

        assert len(stage.starts(job, "join")) == 1
        (join,) = stage.starts(job, "join")
        ends = {line["label"]: line["time"] for line in stage.lines(job, event="end")}
        assert max(time for label, time in ends.items() if label != "join") <= join["time"]
        completed = query(stage.url, "select count(*) as n from {output} where job_id = ?", [job])
        assert completed == [{"n": PARTS + 1}]
        assert victim.ended() == -9, hook
    assert survivor.alive
    stage.works()


def test_a_required_part_that_fails_for_good_needs_attention_by_its_name(stage: Stage) -> None:
    for _ in range(2):
        stage.worker(queues=SLOTS)
    job = fan_out(stage, parts=30, bad={"fail": {"times": 1, "kind": "permanent", "code": "no_such_page"}, "usable": True})
    stage.reached([job], "needs_attention")
    question = stage.job(job).attention
    assert question is not None
    assert (question.label, question.code) == ("part 15", "no_such_page")
    assert stage.job(job).usable_at is None
    assert not stage.starts(job, "join")

    stage.jobs.act(job, question.id, action="retry", principal=OWNER)

    stage.reached([job])
    assert len(stage.starts(job, "join")) == 1
    assert stage.job(job).usable_at is not None
    assert len(stage.lines(job, event="start")) == 30 + 1 + 1  # the failed part twice, nothing else


def test_an_optional_part_that_fails_for_good_takes_nothing_away(stage: Stage) -> None:
    for _ in range(2):
        stage.worker(queues=SLOTS)
    job = fan_out(stage, parts=30, bad={"optional": True, "fail": {"times": 9}}, usable=True)
    stage.reached([job])

    view = stage.job(job)
    assert (view.outcome, view.usable_at is not None) == ("succeeded_with_problems", True)
    assert stage.task(job, "part 15").state == "failed"
    assert len(stage.starts(job, "join")) == 1
    assert len(stage.starts(job, "part 15")) == 3
    assert isinstance(stage.jobs.result(job, principal=OWNER), dict)
