"""While the outbox or the store is away the relay waits, and goes on by itself; asked to end it ends."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from invariants import query
from outbox.outboxes import Table, inbound
from outlast import NotMigrated, OutcomeUnknown, Outlast, StoreUnavailable
from outlast.client.outbox import Door
from outlast.domain.work import ActiveTaken, Admission, Admitted, KeyTaken
from outlast.observe.events import Event, OutboxRowFailed, OutboxRowPutOff, OutboxRowsMoved, RelayWaits
from outlast.observe.hub import subscribe
from outlast.relay.inbound import Inbound, Report

PATIENCE = 15.0


class Events:
    """What is told meanwhile."""

    def __init__(self) -> None:
        self.all: list[Event] = []
        self._more = threading.Condition()

    def hear(self, event: Event) -> None:
        with self._more:
            self.all.append(event)
            self._more.notify_all()

    def wait(self, wanted: Callable[[Event], bool]) -> None:
        with self._more:
            assert self._more.wait_for(lambda: any(map(wanted, self.all)), PATIENCE), self.all


@pytest.fixture
def events() -> Iterator[Events]:
    heard = Events()
    end = subscribe(heard.hear)
    yield heard
    end()


@contextmanager
def running(relay: Inbound) -> Iterator[threading.Event]:
    """The relay at work in a thread; gives what is set once it is ready."""
    stop, ready = threading.Event(), threading.Event()
    thread = threading.Thread(target=relay.run, args=(stop,), kwargs={"every": 0.01, "on_ready": ready.set})
    thread.start()
    yield ready
    stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


class Flaky(Door):
    """A store that answers as the test says, a few times; afterwards as it is."""

    def __init__(self, jobs: Outlast, *faults: Exception, after: bool = False) -> None:
        super().__init__(jobs.desk.app, jobs.store)
        self._faults = list(faults)
        self._after = after

    def admit(self, prepared: Sequence[Admission]) -> Sequence[Admitted | KeyTaken | ActiveTaken]:
        if self._after and self._faults:
            super().admit(prepared)
        if self._faults:
            raise self._faults.pop(0)
        return super().admit(prepared)


def test_a_file_that_is_not_there_yet_is_waited_for(lite: Table, jobs: Outlast, events: Events, tmp_path: Path) -> None:
    lite.ask(id="one")
    lite.close()
    shutil.move(tmp_path / "shop.db", tmp_path / "away.db")
    with running(inbound(lite, jobs)) as ready:
        events.wait(lambda event: isinstance(event, RelayWaits) and event.code == "source_unavailable")
        assert not ready.is_set()
        shutil.move(tmp_path / "away.db", tmp_path / "shop.db")
        events.wait(lambda event: isinstance(event, OutboxRowsMoved))
        assert ready.is_set()
    assert lite.count() == 0


def test_a_store_that_is_away_is_waited_for_and_a_lost_answer_makes_no_second_job(lite: Table, jobs: Outlast, events: Events) -> None:
    lite.ask(id="one")
    door = Flaky(jobs, StoreUnavailable("away"), OutcomeUnknown("lost"), after=True)
    with running(Inbound(lite.source(), door)):
        events.wait(lambda event: isinstance(event, OutboxRowsMoved))
    waits = [event for event in events.all if isinstance(event, RelayWaits)]
    assert [event.code for event in waits] == ["store_unavailable", "outcome_unknown"]
    assert 0 < waits[0].seconds <= 0.5
    assert len(query(jobs.url, "select id from {job}")) == 1
    assert lite.count() == 0


def test_what_nobody_foresaw_is_one_rows_own_fault(lite: Table, jobs: Outlast, events: Events) -> None:
    lite.ask(id="one")
    lite.ask(id="two")
    door = Flaky(jobs, RuntimeError("the secret"), RuntimeError("the secret"))
    assert Inbound(lite.source(), door).run_once() == Report(2, moved=1, put_off=1)
    (failed,) = [event for event in events.all if isinstance(event, OutboxRowFailed)]
    assert "secret" not in failed.text()
    assert [event.code for event in events.all if isinstance(event, OutboxRowPutOff)] == ["failed"]
    assert lite.codes() == [("failed", False)]


def test_a_store_that_is_not_migrated_ends_it(lite: Table, jobs: Outlast, tmp_path: Path) -> None:
    lite.ask()
    other = Outlast(f"sqlite:///{tmp_path / 'empty.db'}")
    with pytest.raises(NotMigrated):
        inbound(lite, other).run(threading.Event(), every=1)
    with pytest.raises(NotMigrated):
        Inbound(lite.source(), Flaky(jobs, NotMigrated("older"))).run_once()
    assert lite.count() == 1
    other.sync.close()


def test_one_that_is_told_to_stop_does_nothing_more(lite: Table, jobs: Outlast) -> None:
    lite.ask()
    stop = threading.Event()
    stop.set()
    inbound(lite, jobs).run(stop, every=1)
    assert lite.count() == 1


def test_large_inputs_and_what_has_to_be_alone_are_admitted_apart(lite: Table, jobs: Outlast) -> None:
    sizes: list[int] = []

    class Counting(Door):
        def admit(self, prepared: Sequence[Admission]) -> Sequence[Admitted | KeyTaken | ActiveTaken]:
            sizes.append(len(prepared))
            return super().admit(prepared)

    for n in range(20):
        lite.ask(input='{"number": 1' + " " * 250_000 + "}", id=f"large-{n}")
    for n in range(3):
        lite.ask(id=f"alone-{n}", unique_key=f"u-{n}", unique_policy="existing")
    lite.ask(id="last")
    assert Inbound(lite.source(), Counting(jobs.desk.app, jobs.store)).run_once() == Report(24, moved=24)
    assert sizes[-4:] == [1, 1, 1, 1]
    assert sum(sizes) == 24
