"""When a client should ask again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from outlast import JobView, Outlast, Progress
from outlast.http.pacing import LONGEST, SHORTEST, UNKNOWN, WITH_OWNER, Pacing, pace


def job(
    number: int = 1, *, kind: str = "note", state: Any = "running", version: int = 1, ago: float = 0, took: float | None = None
) -> JobView:
    accepted = datetime.now(UTC) - timedelta(seconds=ago)
    return JobView(
        id=f"j{number}", url="", kind=kind, label="", state=state, final=took is not None, outcome=None, version=version, stopping=False,
        usable_at=None, usable_ref=None, progress=Progress(0, 1, None), attention=None, attention_count=0, cancel_note="",
        accepted_at=accepted, finished_at=None if took is None else accepted + timedelta(seconds=took), rerun_of=None, correlation_id="c",
    )  # fmt: skip


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def jobs() -> Outlast:
    app = Outlast("sqlite:///x.db")

    def build(plan: Any, input: dict[str, int]) -> None: ...

    app.kind("note", promise=4)(build)
    app.kind("film", promise=(60, 600))(build)
    app.kind("free")(build)
    return app


@pytest.mark.parametrize(
    ("expected", "elapsed", "unchanged", "seconds"),
    [
        (4, 0, 0, SHORTEST),
        (80, 0, 0, 10),
        (80, 40, 0, 5),
        (8_000, 0, 0, LONGEST),
        (4, 100, 0, SHORTEST),
        (4, 100, 80, 10),
        (4, 9_999, 9_999, LONGEST),
        (80, 0, 800, LONGEST),
    ],
)
def test_an_eighth_of_what_is_left_or_of_the_time_without_change(expected: float, elapsed: float, unchanged: float, seconds: float) -> None:
    assert pace(expected, elapsed, unchanged) == seconds


def test_a_kind_is_expected_to_take_what_it_promises_until_something_was_measured(jobs: Outlast) -> None:
    pacing = Pacing(jobs.registry)
    assert [pacing.expected(kind) for kind in ("note", "film", "free", "unknown")] == [4, 600, UNKNOWN, UNKNOWN]
    for n, took in enumerate((100, 80, 120)):
        pacing.retry_after(job(n))
        pacing.retry_after(job(n, state="completed", version=2, took=took))
    assert pacing.expected("note") == 100
    pacing.retry_after(job(9, state="completed", took=9_999))  # never seen before its end: who knows when
    pacing.retry_after(job(10))
    pacing.retry_after(job(10, state="cancelled", version=2, took=1))
    assert pacing.expected("note") == 100


def test_the_pause_grows_while_nothing_changes_and_begins_anew_at_a_change(jobs: Outlast) -> None:
    clock = Clock()
    pacing = Pacing(jobs.registry, monotonic=clock)
    pauses: list[int] = []
    for now in (0, 20, 80, 400, 4_000):
        clock.now = now
        pauses.append(pacing.retry_after(job(ago=now)) or 0)
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (1, LONGEST)
    assert pacing.retry_after(job(version=2, ago=4_000)) == 1
    assert pacing.retry_after(job(version=2, state="retrying", ago=4_000)) == 1


def test_what_waits_for_its_owner_is_asked_for_seldom_and_what_is_final_never(jobs: Outlast) -> None:
    pacing = Pacing(jobs.registry)
    assert pacing.retry_after(job(state="needs_attention")) == WITH_OWNER
    assert pacing.retry_after(job(state="completed", took=1)) is None


def test_it_remembers_a_bounded_number_of_jobs(jobs: Outlast) -> None:
    pacing = Pacing(jobs.registry)
    for n in range(6_000):
        pacing.retry_after(job(n))
    assert len(pacing._seen) <= 4_096
