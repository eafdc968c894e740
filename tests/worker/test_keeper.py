"""The keeper of leases: what it says of claims that end under its renewal, and of an event loop that does not turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from outlast.domain.work import Claimed, TaskRef, Verdict
from outlast.observe.events import Event, LeaseLost, LoopBlocked
from outlast.observe.hub import subscribe
from outlast.worker.attempt import Ended, Snoozed
from outlast.worker.committer import Committer, Windows
from outlast.worker.hold import Hold
from outlast.worker.keeper import Keeper


class Renewing:
    """A runner whose every renewal has this answer. `meanwhile` runs before it comes."""

    def __init__(self, verdict: Verdict, meanwhile: Callable[[], object]) -> None:
        self.verdict = verdict
        self.meanwhile = meanwhile

    def run_sync(self, operation: Any) -> Any:
        self.meanwhile()
        return [self.verdict]

    def close_sync(self) -> None: ...


@pytest.fixture
def events() -> Iterator[list[Event]]:
    seen: list[Event] = []
    end = subscribe(seen.append)
    yield seen
    end()


def held() -> Hold:
    ref = TaskRef("acme", "job", 0, 1, "worker")
    claimed = Claimed(ref, 0, "kind@1:task", "default", 60_000, 0, "Task", None, "{}", "{}", "ann", "correlation")
    return Hold(claimed, sent_at=time.monotonic(), lease=1e9)


def keeper(verdict: Verdict, meanwhile: Callable[[], None], hold: Hold) -> Keeper:
    made = Keeper(Renewing(verdict, meanwhile), lease=5, on_death=lambda _name, _error: None, blocked_task=lambda: (0.0, ""))
    made.add([hold])
    return made


def committer() -> Committer:
    return Committer(None, Windows(1, 1), worker="worker", settled=lambda _hold, _opened, _due: None)  # type: ignore[arg-type]


async def test_a_renewal_that_meets_a_claim_which_has_just_ended_here_says_nothing(events: list[Event]) -> None:
    hold, ending = held(), committer()

    assert keeper(Verdict.STALE, lambda: ending.put(hold, Snoozed(1)), hold).run_once()

    assert not [event for event in events if isinstance(event, LeaseLost)]


@pytest.mark.parametrize("ended", [False, True])
async def test_a_claim_that_somebody_else_has_is_lost(events: list[Event], ended: bool) -> None:
    hold, ending = held(), committer()

    keeper(Verdict.STALE, lambda: ending.put(hold, Ended("deadline")) if ended else None, hold).run_once()

    assert [event.reason for event in events if isinstance(event, LeaseLost)] == ["replaced"]
    assert hold.lost() is not None


async def test_a_cancellation_is_heard_while_the_end_is_written(events: list[Event]) -> None:
    hold, ending = held(), committer()

    keeper(Verdict.CANCELLED, lambda: ending.put(hold, Snoozed(1)), hold).run_once()

    assert hold.lost() == "cancelled"


def test_a_handler_that_blocks_is_told_from_a_process_that_stood_still() -> None:
    assert "by kind@1:task: use a plain def" in LoopBlocked("kind@1:task", 2.0).text()
    for said in (LoopBlocked("outlast-claimer", 2.0).text(), LoopBlocked("something outside tasks", 2.0).text()):
        assert "use a plain def" not in said
        assert "the process was stopped" in said
    stood = LoopBlocked("kind@1:task", 2.0, stood=True).text()
    assert "use a plain def" not in stood
    assert "it was stopped" in stood


@pytest.mark.parametrize("stood", [False, True])
def test_a_keeper_that_came_late_itself_blames_no_handler(events: list[Event], stood: bool) -> None:
    made = Keeper(Renewing(Verdict.ACCEPTED, held), lease=5, on_death=lambda _n, _e: None, blocked_task=lambda: (2.0, "kind@1:task"))

    made._look_at_loop(stood=stood)

    assert [event for event in events if isinstance(event, LoopBlocked)] == [LoopBlocked("kind@1:task", 2.0, stood=stood)]
