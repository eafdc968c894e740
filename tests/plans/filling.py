"""Jobs by the thousand, admitted as an application would, and drained as a worker would."""

from __future__ import annotations

import itertools
import os
from typing import Any

from outlast.domain.ids import uuid7
from outlast.domain.kinds import TaskSpec
from outlast.domain.work import Admission, Claimed, Finished, Renewal
from outlast.store.program import Operation
from outlast.store.programs import admission, claims, completion
from outlast.store.protocol import SyncRunner

TENANT, OWNER, QUEUE, HANDLER = "acme", "ada", "default", "k@1:t"
LEASE_MS = 30_000
RETENTION_MS = 2_592_000_000
BATCH = 500
_count = itertools.count(1)


def admission_of(*, handler: str = HANDLER, not_before_ms: int | None = None, key: str | None = None) -> Admission:
    """A job of one task."""
    id = uuid7(1_800_000_000_000 + next(_count), os.urandom(10))
    task = TaskSpec(
        no=0,
        label="t",
        handler=handler,
        queue=QUEUE,
        priority=0,
        required=True,
        usable=False,
        max_attempts=5,
        base_ms=1_000,
        cap_ms=600_000,
        window_ms=86_400_000,
        deadline_ms=600_000,
        item=None,
        parents=(),
    )
    return Admission(TENANT, OWNER, key, "f", id, "k", 1, "k", "{}", "{}", (task,), not_before_ms, None, id, "c", None)


def fill(store: SyncRunner, jobs: int, *, handler: str = HANDLER, not_before_ms: int | None = None) -> None:
    """Admits so many jobs."""
    for start in range(0, jobs, BATCH):
        size = min(BATCH, jobs - start)
        store.run_sync(admission.admit([admission_of(handler=handler, not_before_ms=not_before_ms) for _ in range(size)]))


def claim(number: int, limit: int = BATCH, handlers: tuple[str, ...] = (HANDLER,)) -> Operation[list[Claimed]]:
    return claims.claim(QUEUE, handlers, limit, f"w:{number}", LEASE_MS)


def renew(claimed: list[Claimed]) -> Operation[Any]:
    return claims.renew([Renewal(one.ref, "half") for one in claimed], LEASE_MS)


def finish(claimed: list[Claimed]) -> Operation[Any]:
    return completion.finish([Finished(one.ref, "w", '"done"') for one in claimed], RETENTION_MS)


def drain(store: SyncRunner, *, renewing: bool = False) -> int:
    """Claims, renews and finishes until nothing is left; how many."""
    done = 0
    while claimed := store.run_sync(claim(next(_count))):
        if renewing:
            store.run_sync(renew(claimed))
        store.run_sync(finish(claimed))
        done += len(claimed)
    return done
