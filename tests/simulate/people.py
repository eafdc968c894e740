"""Who asks for jobs, looks after them and operates the queues: outside of every process that can crash, by calls that may get lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from outlast import Every, Handle, JobView, Principal, Unique
from outlast.client._async import Client
from outlast.domain.effects import EFFECT_UNKNOWN
from outlast.domain.errors import NotFound, OutlastError
from simulate import shop

if TYPE_CHECKING:
    from simulate.world import World

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds that somebody waits for an answer."""


class Unreachable(Exception):
    """No answer came: what was asked for may have been done, or may yet be."""


class Ledger:
    """What was said to whom."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.jobs: dict[str, Principal] = {}
        self.keys: dict[tuple[str, str], str] = {}

    def acknowledged(self, owner: Principal, key: str | None, handle: Handle) -> None:
        """A submit was answered."""
        world = self._world
        if handle.id not in world.history.jobs and handle.id not in world.history.purged:
            world.violated(f"A2: the job {handle.id} was acknowledged, and was never committed")
        self.jobs[handle.id] = owner
        if key is None:
            return
        place = (owner.subject, key)
        if place in world.history.forgotten:
            self.keys.pop(place, None)
        if self.keys.setdefault(place, handle.id) != handle.id:
            world.violated(f"A3: the key {key} of {owner.subject} stands for {self.keys[place]} and for {handle.id}")


class Person:
    """One of them."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.random = world.random

    async def rest(self, least: float, most: float) -> None:
        """Time passes."""
        await asyncio.sleep(self.random.uniform(least, most))

    async def ask(self, make: Callable[[Client], Awaitable[T]]) -> T:
        """One call of the API; Unreachable where no answer came."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.world.api().answer(make)
        except TimeoutError:
            raise Unreachable from None

    async def insist(self, make: Callable[[Client], Awaitable[T]]) -> T | None:
        """The same until an answer comes, whatever it is; None: it was refused."""
        while True:
            try:
                return await self.ask(make)
            except Unreachable:
                await self.rest(0.2, 12.0)
            except OutlastError as error:
                if not error.retryable:
                    return None
                await self.rest(0.2, 12.0)


class Customer(Person):
    """Submits, each job under a key of its own for most of them, and repeats what was not answered."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._sent: list[tuple[str, Callable[[Client], Awaitable[Handle]]]] = []

    async def live(self, owner: Principal, number: int) -> None:
        for n in range(number):
            await self.rest(0.0, 70.0)
            await self._submit(owner, n)
            if self._sent and self.random.random() < 0.2:
                key, make = self.random.choice(self._sent)  # a page that is opened again, and sends its form once more
                again = await self.insist(make)
                if again is not None:
                    self.world.ledger.acknowledged(owner, key, again)

    async def _submit(self, owner: Principal, n: int) -> None:
        kind = self.random.choice(shop.KINDS)
        draw = self.random.random()
        key = f"{self.name}-{n}" if draw < 0.85 else None
        unique = Unique("only", self.random.choice(("existing", "reject", "replace"))) if self.random.random() < 0.12 else None
        order = shop.Order(n, self.random.randint(1, 3))
        due = None
        if self.random.random() < 0.15:
            due = datetime.fromtimestamp((self.world.clock.ms() + self.random.randint(1_000, 80_000)) / 1000, tz=UTC)

        def make(client: Client) -> Awaitable[Handle]:
            return client.submit(kind, order, owner=owner, key=key, unique=unique, not_before=due)

        if key is not None:
            self._sent.append((key, make))
        if key is None:
            try:
                handle = await self.ask(make)
            except (Unreachable, OutlastError):
                return  # it may be there or not, and nobody can ask
        else:
            found = await self.insist(make)
            if found is None:
                return
            handle = found
        self.world.ledger.acknowledged(owner, key, handle)
        if key is not None and self.random.random() < 0.2:
            again = await self.insist(make)  # pressed twice
            if again is not None:
                self.world.ledger.acknowledged(owner, key, again)


class Owner(Person):
    """Looks at the own jobs, answers what they ask, cancels some, and runs some once more."""

    async def live(self, owner: Principal) -> None:
        while not self.world.calm:
            await self.rest(4.0, 40.0)
            mine = [job_id for job_id, who in self.world.ledger.jobs.items() if who == owner]
            if mine:
                await self._look_after(owner, self.random.choice(mine[-8:]))

    async def _look_after(self, owner: Principal, job_id: str) -> None:
        try:
            job = await self.ask(lambda client: client.get(job_id, principal=owner))
        except Unreachable:
            return
        except NotFound:
            if job_id in self.world.history.jobs:
                self.world.violated(f"A1: the job {job_id} was not shown to its owner")
            return
        except OutlastError:
            return
        draw = self.random.random()
        if job.attention is not None and draw < 0.8:
            await self._decide(owner, job)
        elif not job.final and draw < 0.22:
            version = job.version if self.random.random() < 0.5 else None
            await self._once(lambda client: client.cancel(job_id, principal=owner, version=version))
        elif job.final and draw < 0.2:
            key = f"again-{job_id}"
            handle = await self.insist(lambda client: client.rerun(job_id, principal=owner, key=key))
            if handle is not None:
                self.world.ledger.acknowledged(owner, key, handle)

    async def _decide(self, owner: Principal, job: JobView) -> None:
        question = job.attention
        assert question is not None
        action = self.random.choice(question.actions)
        given: Any = None
        if question.code == EFFECT_UNKNOWN:
            key = self.world.key_of(job.id, question.label)
            if action == "answer":
                happened = bool(self.world.provider.happened[key])
                given = (
                    {"happened": True, "outcome": {"number": self.world.provider.receipts[key].number}} if happened else {"happened": False}
                )
            elif action == "retry":
                self.world.provider.allowed[key] += 1
        elif action == "answer":
            given = "large"
        await self._once(lambda client: client.act(job.id, question.id, action=action, principal=owner, input=given))

    async def _once(self, make: Callable[[Client], Awaitable[object]]) -> None:
        """Asked, and perhaps asked again, as a browser does it."""
        for _ in range(self.random.randint(1, 3)):
            try:
                await self.ask(make)
            except Unreachable:
                await self.rest(0.1, 3.0)
            except OutlastError:
                return
            else:
                return


class Operator(Person):
    """Pauses queues and lets them go on, and takes up again what asks for attention."""

    async def live(self) -> None:
        while not self.world.calm:
            await self.rest(20.0, 150.0)
            if self.random.random() < 0.5:
                await self._rest_queue(self.random.choice(tuple(shop.SLOTS)))
            elif self.world.ledger.jobs:
                await self._replay(self.random.choice(tuple(self.world.ledger.jobs)))

    async def _rest_queue(self, queue: str) -> None:
        await self.insist(lambda client: client.pause_queue(queue, principal=shop.OPERATOR, reason="A test."))
        await self.rest(5.0, 80.0)
        await self.insist(lambda client: client.resume_queue(queue, principal=shop.OPERATOR, reason="It is over."))

    async def _replay(self, job_id: str) -> None:
        await self.insist(lambda client: client.replay(job_id, principal=shop.OPERATOR, reason="It works again."))


class Planner(Person):
    """Has a job made by the clock."""

    async def live(self, owner: Principal) -> None:
        when, catch_up = Every(self.random.randint(60, 200)), self.random.choice(("skip", "one", 3))
        order = shop.Order(0)
        await self.insist(lambda client: client.schedule(shop.errand, order, name="nightly", when=when, owner=owner, catch_up=catch_up))
        while not self.world.calm:
            await self.rest(10.0, 30.0)
        await self.insist(lambda client: client.unschedule("nightly", principal=owner))
