"""Replay from needs-attention (B51): one new run, nothing that is done is done again, and a second failure asks again."""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from crash.releases import OPERATOR
from crash.stage import OWNER, Process, Stage, client, until
from crash.test_attach import put
from crash.test_b11_effects import Provider, provider
from invariants import query
from outlast import AlreadyCompleted, Conflict, Context, Outlast, Submission, TargetRef
from outlast.domain.work import Failed
from outlast.rehearsal import app
from outlast.store.open import open_store
from outlast.store.programs import claims, completion
from outlast.store.protocol import Store

__all__ = ["provider"]

COMMANDED = Path(__file__).with_name("commanded.py")
DONE = [("one", 1, None), ("two", 1, None)]


def command(stage: Stage, *args: str, hooks: list[dict[str, object]] | None = None) -> Process:
    """A command of `outlast` as a process, which the hooks may kill."""
    env = {"OUTLAST_TEST_HOOKS": json.dumps(hooks or [])}
    return stage.start([sys.executable, str(COMMANDED), *args, "--store", stage.url], env=env, wait=False)


def exhausted(stage: Stage, *, times: int) -> str:
    """A job of four tasks whose third one has used both of its attempts; it fails in the first `times` claims."""
    job = stage.submit(
        {"label": "one"},
        {"label": "two", "steps": 1},
        {"label": "three", "after": ["one", "two"], "fail": {"times": times, "code": "provider_busy"}},
        {"label": "four", "after": ["three"]},
        max_attempts=2,
        retry_base=0,
    )
    stage.reached([job], "needs_attention")
    return job


def question(stage: Stage, job: str) -> str:
    found = stage.job(job).attention
    assert found is not None
    assert (found.code, found.actions) == ("provider_busy", ("retry", "dismiss"))
    return found.id


def third(stage: Stage, job: str) -> list[tuple[str, int, str | None]]:
    """Every attempt that ended, without those of the tasks before it, which ran once."""
    past = stage.past(job)
    assert sorted(past[:2]) == DONE
    assert len(stage.starts(job, "one")) == len(stage.starts(job, "two")) == 1
    return past[2:]


def failures(count: int) -> list[tuple[str, int, str | None]]:
    return [("three", 1 + n % 2, "provider_busy") for n in range(count)]


@pytest.mark.timeout(60)
def test_two_clicks_are_one_new_run_a_second_exhaustion_asks_again_and_a_cancel_stays(stage: Stage) -> None:
    stage.worker()
    job = exhausted(stage, times=3)
    first = question(stage, job)
    outputs = query(stage.url, "select no, body from {output} where job_id = ? order by no", [job])

    def click(_n: int) -> str:
        return stage.jobs.act(job, first, action="retry", principal=OWNER).id

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(click, range(4))) == {job}
    stage.reached([job])
    assert third(stage, job) == [*failures(3), ("three", 2, None), ("four", 1, None)], "two attempts more, and no third"
    assert query(stage.url, "select no, body from {output} where job_id = ? and no < 2 order by no", [job]) == outputs

    again = exhausted(stage, times=4)
    old = question(stage, again)
    stage.jobs.act(again, old, action="retry", principal=OWNER)
    until(lambda: len(stage.past(again)) == 6, "it failed for good once more")
    stage.reached([again], "needs_attention")
    assert third(stage, again) == failures(4)
    assert question(stage, again) != old
    assert stage.jobs.act(again, old, action="retry", principal=OWNER).state == "needs_attention", "an old click starts nothing"
    with pytest.raises(Conflict) as refused:
        stage.jobs.act(again, old, action="dismiss", principal=OWNER)
    assert (refused.value.code, refused.value.job.state) == ("attention_superseded", "needs_attention")
    stage.jobs.act(again, question(stage, again), action="retry", principal=OWNER)
    stage.reached([again])
    assert third(stage, again) == [*failures(4), ("three", 1, None), ("four", 1, None)]
    assert [line["fence"] for line in stage.starts(again, "three")] == [1, 2, 3, 4, 5]
    with pytest.raises(AlreadyCompleted):
        stage.jobs.replay(again, principal=OPERATOR, reason="The provider is back.")

    cancelled = exhausted(stage, times=2)
    stage.jobs.cancel(cancelled, principal=OWNER)
    with pytest.raises(Conflict) as refused:
        stage.jobs.replay(cancelled, principal=OPERATOR, reason="The provider is back.")
    assert (refused.value.code, refused.value.job.state) == ("attention_superseded", "cancelled")
    stage.works()
    assert (stage.job(cancelled).state, third(stage, cancelled)) == ("cancelled", failures(2)), "it stays so"


@pytest.mark.timeout(60)
def test_a_server_that_dies_between_its_statements_loses_and_doubles_nothing(stage: Stage) -> None:
    worker = stage.worker()
    points = ("statement resolve_attention", "statement open_entries", "after")
    jobs = {at: exhausted(stage, times=2) for at in points}
    worker.kill()
    before = {at: stage.job(job) for at, job in jobs.items()}
    dying = {at: command(stage, "jobs", "retry", job, hooks=[{"op": "act", "at": at, "do": "kill"}]) for at, job in jobs.items()}
    for at, job in jobs.items():
        assert dying[at].ended() == -9
        if at == "after":
            assert (stage.job(job).state, stage.job(job).version) == ("running", before[at].version + 1)
        else:
            assert stage.job(job) == before[at]
            assert question(stage, job)
        assert stage.jobs.replay(job, principal=OPERATOR, reason="The server died.").state == "running"
    stage.worker()
    stage.reached(list(jobs.values()))
    for job in jobs.values():
        assert third(stage, job) == [*failures(2), ("three", 1, None), ("four", 1, None)], "one new run"


async def fail_for_good(store: Store, count: int) -> list[str]:
    """Claims so many tasks and gives up on each of them, as a worker does; their jobs."""
    claimed = await store.run(claims.claim("default", ("A@1:A",), count, f"w:{count}", 60_000))
    failed = [Failed(one.ref, "w", "provider_busy", "It is busy.", permanent=True) for one in claimed]
    for part in range(0, count, 25):
        await asyncio.gather(
            *(store.run(completion.give_up(f, window_ms=86_400_000, retention_ms=86_400_000)) for f in failed[part : part + 25])
        )
    return [one.ref.job_id for one in claimed]


@pytest.mark.timeout(90)
async def test_a_bulk_replay_of_500_goes_on_where_it_was_killed(stage: Stage) -> None:
    busy = Outlast("sqlite:///unused.db")

    @busy.task(name="A")
    async def work(ctx: Context, given: Any) -> None:
        raise AssertionError("nobody runs it here")

    jobs, store = client(stage.url, busy, stage.store), open_store(stage.url)
    made = sorted(handle.id for handle in jobs.submit_many([Submission(work, {}) for _ in range(500)], owner=OWNER))
    assert sorted(await fail_for_good(store, 500)) == made

    def asking() -> set[str]:
        return {row["job_id"] for row in query(stage.url, "select job_id from {attention} where resolved_at is null")}

    line = ["jobs", "replay", "--all", "--reason", "The provider is back.", "--kind", "A", "--json"]
    killed = command(stage, *line, hooks=[{"op": "replay", "at": "after", "do": "kill", "count": 250}])
    assert await asyncio.to_thread(killed.ended) == -9
    assert asking() == set(made[250:])
    time = killed.log.split("--raised-before ")[1].split()[0]

    again = set(await fail_for_good(store, 10))
    jobs.cancel(made[-1], principal=OWNER)
    resumed = command(stage, *line, "--raised-before", time)
    assert await asyncio.to_thread(resumed.ended) == 0, resumed.log
    said: dict[str, Any] = json.loads(resumed.said)
    assert (said["done"], said["skipped"], said["refused"]) == (made[250:499], [], [])
    assert asking() == again, "what failed for good once more asks anew, and was not taken up twice"
    audit = query(stage.url, "select subject, count(*) as n from {audit} where action = 'replay' group by subject")
    assert sorted((row["subject"], row["n"]) for row in audit) == [(job, 1) for job in made[:499]]
    entries = query(stage.url, "select job_id, fence, spent from {queue_entry} where holder is null")
    assert sorted(tuple(entry.values()) for entry in entries) == [(job, 1, 0) for job in made[:499] if job not in again]
    await store.close()


def test_a_document_that_was_edited_meanwhile_is_not_overwritten(stage: Stage, provider: Provider) -> None:
    version = put(provider, "first", None)["version"]
    body: Any = {"tasks": [{"label": "A", "attach": "from the job", "fail": {"times": 1, "kind": "permanent"}}]}
    job = stage.jobs.submit(app.registry.kind("rehearsal"), body, owner=OWNER, target=TargetRef("d1", version)).id
    stage.worker()
    stage.reached([job], "needs_attention")
    put(provider, "mine", version)
    stage.jobs.replay(job, principal=OPERATOR, reason="The provider is back.")
    stage.reached([job])
    assert stage.job(job).attach == "parked", "kept aside, for the owner to apply"
    assert provider.ask("/documents/d1")["text"] == "mine"
