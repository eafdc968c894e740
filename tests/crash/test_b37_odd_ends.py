"""Results and exceptions that do not serialise: coded failures, the cause for operators, and a worker that lives on (B37)."""

from __future__ import annotations

from typing import Any

import pytest

from crash import apps
from crash.stage import OWNER, Stage, auntil, client, working
from invariants import query
from outlast import AnyTask, JobView, Kind, SyncClient


class Odd:
    """Jobs of the odd app on the stage's store."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.jobs: SyncClient = client(stage.url, apps.app, stage.store)

    def submit(self, kind: Kind[Any], value: Any) -> str:
        return self.jobs.submit(kind, value, owner=OWNER).id

    async def ended(self, job: str) -> JobView:
        """The job once it is final or needs its owner."""

        def there() -> JobView | None:
            view = self.jobs.get(job, principal=OWNER)
            return view if view.final or view.attention else None

        view = await auntil(there, "an end")
        assert view is not None
        return view

    def attempts(self, job: str) -> list[dict[str, Any]]:
        return query(self.stage.url, "select number, code, detail from {attempt} where job_id = ? order by fence", [job])

    async def result(self, job: str, task: AnyTask[Any]) -> Any:
        await self.ended(job)
        return self.jobs.result(job, task, principal=OWNER)


@pytest.fixture
def odd(stage: Stage) -> Odd:
    return Odd(stage)


async def test_results_that_cannot_be_stored_are_permanent_coded_failures(odd: Odd) -> None:
    wanted = [(task, name) for task in (apps.odd_result, apps.odd_result_in_thread) for name in apps.RESULTS]
    wanted += [(apps.touchy_result, "evil"), (apps.touchy_result, "touchy")]
    jobs = {(task.name, name): odd.submit(task, apps.Wish(name)) for task, name in wanted}
    async with working(odd.stage.url, apps.app, lease=30.0) as worker:
        for (_, name), job in jobs.items():
            view = await odd.ended(job)
            assert view.attention is not None, name
            assert view.attention.code == "result_invalid", name
            (attempt,) = odd.attempts(job)  # no retry can help
            assert attempt["code"] == "result_invalid"
        assert not worker._stop.is_set()
        job = odd.submit(apps.mutates, apps.Basket(["a"]))
        assert await odd.result(job, apps.mutates) == ["a"]


async def test_what_an_annotation_promises_comes_back_as_it_was(odd: Odd) -> None:
    async with working(odd.stage.url, apps.app):
        job = odd.submit(apps.everything, apps.Wish("all"))
        assert await odd.result(job, apps.everything) == apps.EVERYTHING


async def test_the_second_attempt_sees_the_input_as_it_was_submitted(odd: Odd) -> None:
    async with working(odd.stage.url, apps.app):
        job = odd.submit(apps.mutates, apps.Basket(["a", "b"]))
        assert await odd.result(job, apps.mutates) == ["a", "b"]
        assert [a["code"] for a in odd.attempts(job)] == ["error"]


async def test_exceptions_of_any_kind_end_the_attempt_and_not_the_worker(odd: Odd) -> None:
    jobs = {
        (task.name, name): odd.submit(task, apps.Wish(name)) for task in (apps.odd_error, apps.odd_error_in_thread) for name in apps.ERRORS
    }
    shown = {"NeedsTwo": "NeedsTwo: one", "an attribute": "look at my attribute", "5 MB": "RuntimeError: mmm", "a cyclic cause": "second"}
    async with working(odd.stage.url, apps.app) as worker:
        for (_, name), job in jobs.items():
            view = await odd.ended(job)
            assert view.attention is not None, name
            assert view.attention.code == "error", name
            (attempt,) = odd.attempts(job)
            assert shown.get(name, "") in attempt["detail"], name
            assert len(attempt["detail"]) < 9_000
            for secret in ("one", "look at", "mmm", "second"):
                assert secret not in view.attention.message
        for name in ("Unspeakable", "HalfMade", "HalfMadeRetry", "HalfMadeSnooze", "Unsayable"):
            assert name in odd.attempts(jobs["odd_error", name])[0]["detail"], "the class, if nothing else"
        assert not worker._stop.is_set()
        job = odd.submit(apps.mutates, apps.Basket(["a"]))
        assert await odd.result(job, apps.mutates) == ["a"]
