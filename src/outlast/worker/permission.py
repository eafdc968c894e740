"""Whether the owner may still have this done: asked of the kind before each attempt, with the job as it stands."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import cast

from outlast.domain.access import Scope
from outlast.domain.failures import Retry
from outlast.domain.kinds import Permission
from outlast.domain.model import Principal
from outlast.domain.work import JobRow
from outlast.store.programs import status
from outlast.store.protocol import Store
from outlast.worker.hold import Hold
from outlast.worker.threads import Threads

NOT_PERMITTED = "You may no longer have this done: the right to it has ended since you asked. Have it given back, then try again."
UNKNOWN = "Whether this may still be done could not be learnt."


async def permitted(permission: Permission, hold: Hold, owner: Principal, store: Store, threads: Threads) -> bool:
    """What the hook says; raises what it raises, and Retry for an answer that is neither True nor False."""
    ref = hold.claimed.ref
    row: JobRow | None = await store.run(status.job(Scope(ref.tenant, hold.claimed.owner), ref.job_id))
    if row is None:
        raise Retry("permission_unknown", UNKNOWN)
    job = permission.view(row)
    said: object
    if inspect.iscoroutinefunction(permission.ask):
        said = permission.ask(owner, job)
    else:
        said = await threads.run(lambda: permission.ask(owner, job), hold.threads)
    if inspect.isawaitable(said):
        said = await cast("Awaitable[object]", said)
    if not isinstance(said, bool):
        raise TypeError(f"still_permitted gave a {type(said).__name__}, not True or False")
    return said
