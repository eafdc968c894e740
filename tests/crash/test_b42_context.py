"""Context variables: each attempt has its own, in coroutines, threads and child tasks, and hands none to the next (B42)."""

from __future__ import annotations

from crash import apps
from crash.stage import OWNER, Stage, auntil, client, working
from outlast import Principal
from outlast.observe.correlation import correlation_id, worker_id

JOBS = 50


async def test_every_job_keeps_its_own_context(stage: Stage) -> None:
    jobs = client(stage.url, apps.app, stage.store)
    apps.submit["sync"] = lambda errand, owner: jobs.submit(apps.errand, errand, owner=owner)
    apps.observed.clear()
    owners = [OWNER, Principal("globex", "bob")]
    submitted: dict[str, tuple[str, Principal]] = {}
    for n in range(JOBS):
        correlation_id.set(f"request-{n}")
        owner = owners[n % 2]
        task = apps.errand if n % 3 else apps.errand_in_thread
        submitted[f"errand-{n}"] = (jobs.submit(task, apps.Errand(f"errand-{n}", fails=n % 2 == 1), owner=owner).id, owner)
    correlation_id.set(None)

    async with working(stage.url, apps.app, queues={"errands": 8}) as worker:
        await auntil(lambda: len(apps.observed) == 2 * JOBS, "all errands done", timeout=40)
        seen = dict(apps.observed)

    for n in range(JOBS):
        name = f"errand-{n}"
        look = seen[name]
        job, owner = submitted[name]
        assert set(look.correlations) == {f"request-{n}"}
        assert set(look.workers) == {worker.id}
        assert (look.before, look.own_in_thread) == ("unset", name)
        assert jobs.get(job, principal=owner).correlation_id == f"request-{n}"
        assert look.follow_up is not None
        following = jobs.get(look.follow_up, principal=owner)
        assert following.correlation_id == f"request-{n}"
        after = seen[f"after {name}"]
        assert set(after.correlations) == {f"request-{n}"}
        assert after.before == "unset"
    assert (correlation_id.get(), worker_id.get(), apps.own.get()) == (None, None, "unset")
