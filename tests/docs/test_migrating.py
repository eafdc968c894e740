"""Before and after of the migration guides are run: the old library without a server, and Outlast with a worker, to the same end."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from fakeredis import FakeStrictRedis
from rq import Queue

from outlast import Outlast, Principal, SyncContext
from outlast.store.open import migrate, open_store
from outlast.worker.runtime import Options, Worker

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs" / "migrating").glob("from-*.md"))
ANN = Principal("shop", "ann")
BROCHURE = "customer-7@example.org: page 1 of order 7; page 2 of order 7; page 3 of order 7"


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The examples, importable and as new, on a store of their own."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("OUTLAST_STORE", f"sqlite:///{tmp_path / 'jobs.db'}")
    migrate(os.environ["OUTLAST_STORE"])
    yield tmp_path
    for name in [name for name in sys.modules if name == "examples" or name.startswith("examples.")]:
        del sys.modules[name]


def run(script: str, folder: Path) -> str:
    """What a process of its own prints: these libraries set up a process as they like it."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def work(jobs: Outlast, *ids: str, who: Principal) -> None:
    """Runs a worker until these jobs are completed."""
    store = open_store(jobs.url, worker=True)
    jobs.adopt(store)
    worker = Worker(store, jobs.registry, jobs.settings, Options(lease=5))
    running = asyncio.create_task(worker.run())
    try:
        for job_id in ids:
            job = await jobs.wait(job_id, principal=who, timeout=15)
            assert (job.state, job.outcome) == ("completed", "succeeded"), job
    finally:
        worker.stop()
        await running
        await store.close()


def test_celery_before(examples: Path) -> None:
    script = """
from examples.migrating import outside
from examples.migrating.celery import before
before.app.conf.task_always_eager = True
before.place(7, 3)
before.tidy.delay()
print(*outside.SENT.values())
"""
    assert run(script, examples) == f"tidied\n{BROCHURE}"


def test_rq_before(examples: Path) -> None:
    script = """
from fakeredis import FakeStrictRedis
from rq import Retry, SimpleWorker
from examples.migrating import outside
from examples.migrating.rq import before
before.RETRY = Retry(max=4)
connection = FakeStrictRedis()
before.place(connection, 7, 3)
SimpleWorker(["default", "images"], connection=connection).work(burst=True, logging_level="CRITICAL")
print(*outside.SENT.values())
"""
    assert run(script, examples) == BROCHURE


@pytest.mark.parametrize("library", ["celery", "rq"])
async def test_the_same_after(examples: Path, library: str) -> None:
    after: Any = importlib.import_module(f"examples.migrating.{library}.after")
    first, again = [await asyncio.to_thread(after.place, 7, 3, ANN) for _ in range(2)]
    assert first == again
    await work(after.jobs, first, who=ANN)
    assert list(after.outside.SENT.values()) == [BROCHURE]


async def test_what_beat_did_is_a_schedule(examples: Path) -> None:
    after: Any = importlib.import_module("examples.migrating.celery.after")
    await asyncio.to_thread(after.schedule)
    await asyncio.to_thread(after.schedule)
    (found,) = await after.jobs.schedules(principal=after.HOUSE)
    assert (found.name, found.kind) == ("nightly", "tidy")
    await after.jobs.close()


def test_celery_hands_over(examples: Path) -> None:
    script = """
from examples.migrating import outside
from examples.migrating.celery import after, both
both.app.conf.task_always_eager = True
for _ in range(2):
    both.brochure.delay(7, 3)
print(len(after.jobs.sync.list(principal=after.HOUSE).items), len(outside.SENT))
after.jobs.sync.close()
"""
    assert run(script, examples) == "1 0"


def test_rq_hands_over(examples: Path) -> None:
    script = """
from fakeredis import FakeStrictRedis
from rq import Queue, SimpleWorker
from examples.migrating.rq import after, both
connection = FakeStrictRedis()
for _ in range(2):
    Queue(connection=connection).enqueue(both.brochure, 7, 3)
SimpleWorker(["default"], connection=connection).work(burst=True, logging_level="CRITICAL")
print(len(after.jobs.sync.list(principal=after.HOUSE).items))
after.jobs.sync.close()
"""
    assert run(script, examples) == "1"


def nothing_old() -> None:
    """What is not moved yet."""


LEGACY = re.compile(r"`(ctx\.effect\(\"legacy\", .*?, idempotent=True\))`")


@pytest.mark.parametrize("library", ["celery", "rq"])
async def test_the_effect_of_what_is_not_moved_yet_is_recorded(examples: Path, library: str) -> None:
    """The line of the guide: what the old library gives back has to be JSON."""
    (line,) = LEGACY.findall((ROOT / "docs" / "migrating" / f"from-{library}.md").read_text("utf-8"))
    after: Any = importlib.import_module(f"examples.migrating.{library}.after")
    names = {"args": ()}
    if library == "celery":
        app = Celery("old", broker="memory://")
        names["old"] = app.task(name="old")(nothing_old)
    else:
        names |= {"queue": Queue(connection=FakeStrictRedis()), "old": print}

    def call(ctx: SyncContext, nothing: dict[str, str]) -> str:
        if library == "rq":  # as the guide says of its ids
            effect = ctx.effect
            asked = types.SimpleNamespace(
                effect=lambda name, do, idempotent: effect(name, lambda key: do(re.sub(r"[^\w-]", "-", key)), idempotent=idempotent)
            )
        return str(eval(line, {**names, "ctx": asked if library == "rq" else ctx}))  # noqa: S307 - the guide's own

    handle = await after.jobs.submit(after.jobs.task(name="call")(call), {}, owner=ANN)
    await work(after.jobs, handle.id, who=ANN)


def test_background_tasks_before(examples: Path) -> None:
    from fastapi.testclient import TestClient  # noqa: PLC0415 - after the examples can be imported

    before: Any = importlib.import_module("examples.migrating.background_tasks.before")
    with TestClient(before.app, raise_server_exceptions=False) as client:
        assert client.post("/members/7").status_code == 202
        assert before.outside.SENT == {}, "its first call failed, after the promise"
        assert client.post("/members/7").status_code == 202
    assert list(before.outside.SENT.values()) == ["customer-7@example.org: welcome"]


async def test_background_tasks_after(examples: Path) -> None:
    after: Any = importlib.import_module("examples.migrating.background_tasks.after")
    who = Principal("club", "ann")
    answer = await after.join(7, who)
    assert answer.status_code == 202
    await work(after.jobs, answer.headers["location"].rpartition("/")[2], who=who)
    assert list(after.outside.SENT.values()) == ["customer-7@example.org: welcome"]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_what_a_guide_shows_is_what_is_run(guide: Path) -> None:
    text = guide.read_text("utf-8")
    blocks = re.findall(r"<!-- (examples/\S+\.py) -->\n\n```python\n(.*?)```", text, re.DOTALL)
    assert {Path(path).stem for path, _ in blocks} >= {"before", "after"}
    for path, block in blocks:
        code = (ROOT / path).read_text("utf-8")
        for part in re.split(r"\n*^# …\n*", block, flags=re.MULTILINE):
            assert part.strip("\n") in code, f"{path} has no longer:\n{part}"
    for target in re.findall(r"\]\(([^)#:]+)[#)]", text):
        assert (guide.parent / target).exists(), target
