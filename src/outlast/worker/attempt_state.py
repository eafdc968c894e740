"""What one attempt carries from claim to verdict, shared by its context and the code that runs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from outlast.domain.defaults import MAX_REF
from outlast.domain.kinds import AnyTask
from outlast.domain.model import Principal
from outlast.domain.payload import check_text
from outlast.domain.requests import scheduled_for_ms
from outlast.domain.work import Settled
from outlast.store.protocol import Store
from outlast.store.sessions.transaction import Sessions
from outlast.worker.hold import Hold

if TYPE_CHECKING:
    from outlast.worker.threads import Threads  # and with it asyncio: `import outlast` stays quick


@dataclass(slots=True)
class AttemptState:
    """One attempt: its claim, its task, and what its handler has made so far."""

    hold: Hold
    task: AnyTask[object]
    owner: Principal
    store: Store
    threads: Threads
    max_output: int
    sessions: Sessions
    worker: str
    retention_ms: int
    settled: Settled | None = None  # the handler's own transaction has committed the result
    made: object = None  # the Completion that has to be returned
    open: object = None  # the block of `ctx.transaction()` that the handler is in
    resource: str | None = None
    steps: frozenset[str] | None = None  # names of those stored before, read once and only by a replacement
    seen: set[str] = field(default_factory=set[str])
    effects: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    doubts: list[BaseException] = field(default_factory=list[BaseException])  # what left the outcome of an effect unknown

    @property
    def deadline(self) -> datetime:
        """When the attempt has to end, by the store's clock."""
        return datetime.fromtimestamp(self.hold.claimed.deadline_at_ms / 1000, tz=UTC)

    @property
    def scheduled_for(self) -> datetime | None:
        """The due time, in a schedule's job."""
        ms = scheduled_for_ms(self.hold.claimed.caller)
        return None if ms is None else datetime.fromtimestamp(ms / 1000, tz=UTC)

    def name_resource(self, ref: str) -> None:
        """Names what the owner can open."""
        self.resource = check_text(ref, what="resource reference", limit=MAX_REF)
