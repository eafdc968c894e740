"""One history on both stores: the same verdicts on the way and the same rows, whatever happens in whatever order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.backends import PostgresBackend, Row, SqliteBackend
from contract.harness import ANN, BOB, LEASE_MS, OPERATOR, WINDOW_MS, Harness
from contract.plans import Draft, a
from outlast.domain.access import Scope
from outlast.domain.work import Claimed, Filter
from outlast.store.programs import status, steps
from servers.postgres import PostgresServer

STEPS = 100
CHECK_EVERY = 50


@pytest.fixture(params=["postgres-async", "postgres-15"])
def pair(request: pytest.FixtureRequest, sqlite_template: Path, files: Path) -> Iterator[tuple[Harness, Harness]]:
    """SQLite, and a PostgreSQL."""
    if request.param == "postgres-15":
        server: PostgresServer = request.getfixturevalue("postgres_15")
        dsn = server.create_database(f"same_{random.SystemRandom().getrandbits(32):x}")
        PostgresBackend.migrate(dsn)
        postgres = PostgresBackend(dsn, "sync")
    else:
        postgres = request.getfixturevalue(request.param.replace("-", "_"))
    postgres.reset()
    path = files / f"same-{random.SystemRandom().getrandbits(32):x}.db"
    sqlite = SqliteBackend.copy_of(sqlite_template, path)
    yield Harness(sqlite), Harness(postgres)
    sqlite.close()
    path.unlink()
    if request.param == "postgres-15":
        postgres.close()


class History:
    """Draws what happens next from what has happened so far; the draws depend on nothing but the seed and the rows."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.jobs: list[str] = []
        self.claims: list[Claimed] = []  # every one that was ever made: most are stale by now
        self.moves: dict[str, Callable[[Harness], Any]] = {}

    def some_plan(self) -> list[Draft]:
        """A graph of up to six tasks, of which the first is required."""
        drafts: list[Draft] = []
        for n in range(self.chance.randint(1, 6)):
            parents = self.chance.sample(range(n), k=self.chance.randint(0, min(n, 3)))
            optional = n > 0 and self.chance.random() < 0.4
            drafts.append(
                a(
                    f"t{n}",
                    after=" ".join(f"t{p}" for p in sorted(parents)),
                    optional=optional,
                    usable=not optional and self.chance.random() < 0.2,
                    attempts=self.chance.randint(1, 3),
                    priority=self.chance.randint(0, 2),
                    deadline_ms=self.chance.choice([5_000, LEASE_MS, 90_000]),
                )
            )
        return drafts

    def next(self) -> tuple[str, Callable[[Harness], Any]]:
        """What happens next, in words, and as it is done on a store."""
        name = self.chance.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values()))[0]
        if name not in ("admit", "claim", "wake", "sweep", "pass") and not (self.jobs and self.claims):
            name = "admit"
        return name, getattr(self, f"_{name}")()

    def _admit(self) -> Callable[[Harness], Any]:
        drafts = self.some_plan()
        key = self.chance.choice([None, f"k{self.chance.randint(0, 9)}"])
        request = self.chance.choice(["same", "same", "other"])
        due = self.chance.choice([None, None, 3_000])
        owner = self.chance.choice(["ann", "bob"])

        def do(h: Harness) -> Any:
            job = h.admission(*drafts, key=key, request=request, owner=owner, due_in=due)
            return job.job_id, h.submit(job)

        return do

    def _claim(self) -> Callable[[Harness], Any]:
        limit, worker = self.chance.randint(1, 3), f"w{self.chance.randint(1, 3)}"
        return lambda h: sorted(h.claim(limit, worker=worker), key=lambda c: (c.ref.job_id, c.ref.no))

    def _one(self) -> Claimed:
        recent = self.claims[-8:]
        return self.chance.choice(recent if self.chance.random() < 0.8 else self.claims)

    def _finish(self) -> Callable[[Harness], Any]:
        batch = {(c.ref.job_id, c.ref.no): c for c in (self._one() for _ in range(self.chance.randint(1, 4)))}
        results = [(c, f'"{c.ref.fence}"', f"ref{c.ref.no}") for c in batch.values()]
        # How many tasks were opened is said for the whole batch: by each of its results on PostgreSQL, by all of them here too.
        return lambda h: [s.verdict for s in h.finish_all(*results)]

    def _fail(self) -> Callable[[Harness], Any]:
        claimed, permanent = self._one(), self.chance.random() < 0.3
        code, after = self.chance.choice(["broken", "no_ink"]), self.chance.choice([None, 20_000])
        return lambda h: h.fail(claimed, code, permanent=permanent, retry_after_ms=after)

    def _give_up(self) -> Callable[[Harness], Any]:
        claimed = self._one()
        return lambda h: h.give_up(h.failure(claimed))

    def _ask(self) -> Callable[[Harness], Any]:
        claimed = self._one()
        return lambda h: h.ask(claimed)

    def _snooze(self) -> Callable[[Harness], Any]:
        claimed, delay = self._one(), self.chance.choice([0, 4_000])
        return lambda h: h.snooze(claimed, delay)

    def _hand_back(self) -> Callable[[Harness], Any]:
        claimed = self._one()
        return lambda h: h.hand_back(claimed)

    def _renew(self) -> Callable[[Harness], Any]:
        batch = list({(c.ref.job_id, c.ref.no): c for c in (self._one() for _ in range(3))}.values())
        progress = self.chance.choice([None, "half"])
        return lambda h: h.renew(*batch, progress=progress)

    def _step(self) -> Callable[[Harness], Any]:
        claimed, name = self._one(), self.chance.choice(["a", "b"])
        return lambda h: h.run(steps.store_step(claimed.ref, name, f'"{claimed.ref.fence}"'))

    def _stop(self) -> Callable[[Harness], Any]:
        claimed = self._one()
        return lambda h: h.stop(claimed)

    def _scope(self) -> Scope:
        return self.chance.choice([ANN, ANN, BOB, OPERATOR])

    def _cancel(self) -> Callable[[Harness], Any]:
        job, scope, version = self.chance.choice(self.jobs), self._scope(), self.chance.choice([None, 1, 2, 3])
        return lambda h: h.cancel(job, scope=scope, version=version)

    def _act(self) -> Callable[[Harness], Any]:
        claimed, scope = self._one(), self._scope()
        action = self.chance.choice(["retry", "retry", "answer", "skip", "dismiss"])
        answer = '"A4"' if action == "answer" else None
        question = f"{claimed.ref.no}.{claimed.ref.fence}"
        return lambda h: h.act(claimed.ref.job_id, action, attention=question, answer=answer, scope=scope)

    def _wake(self) -> Callable[[Harness], Any]:
        return lambda h: h.wake()

    def _sweep(self) -> Callable[[Harness], Any]:
        return lambda h: h.sweep(batch=3)

    def _pass(self) -> Callable[[Harness], Any]:
        ms = self.chance.choice([1, 500, 2_000, LEASE_MS - 1, LEASE_MS, WINDOW_MS])
        return lambda h: h.advance(ms)

    def note(self, name: str, value: Any) -> None:
        """Remembers what there is to choose from next time."""
        if name == "admit":
            job_id, (admitted,) = value
            if getattr(admitted, "job_id", None) == job_id:
                self.jobs.append(job_id)
        elif name == "claim":
            self.claims += value


_WEIGHTS = {
    "admit": 12, "claim": 25, "finish": 16, "fail": 10, "give_up": 3, "ask": 5, "snooze": 4, "hand_back": 4, "renew": 4, "step": 3,
    "stop": 4, "cancel": 3, "act": 14, "wake": 10, "sweep": 7, "pass": 14,
}  # fmt: skip


def seen(h: Harness, jobs: list[str]) -> list[Any]:
    """What people see of it."""
    found: list[Any] = [h.run(status.queues()), h.run(status.jobs(None, Filter(), limit=200, before=None))]
    for job in jobs:
        found += [h.run(status.tasks(OPERATOR, job)), h.run(status.recovery(OPERATOR, job)), h.run(status.usable_output(OPERATOR, job))]
    return found


def compare(one: Harness, other: Harness, jobs: list[str]) -> None:
    rows: list[dict[str, list[Row]]] = [h.snapshot() for h in (one, other)]
    for table in rows[0]:
        assert rows[0][table] == rows[1][table], table
    assert seen(one, jobs) == seen(other, jobs)
    one.check()
    other.check()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", range(3))
def test_one_history_on_two_stores(pair: tuple[Harness, Harness], seed: int) -> None:
    history = History(seed)
    told: list[str] = []
    for step in range(STEPS):
        name, do = history.next()
        values = [do(h) for h in pair]
        told.append(f"{name}: {values[0]}")
        assert values[0] == values[1], "\n".join(told[-5:])
        history.note(name, values[0])
        if step % CHECK_EVERY == CHECK_EVERY - 1:
            compare(*pair, history.jobs)
    assert len(history.claims) > STEPS / 10
