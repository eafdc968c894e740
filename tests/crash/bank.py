"""An application whose tasks grant credits in the store's own database: `crash.bank:jobs`, the store's address in OUTLAST_STORE."""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import dataclass
from typing import Any

from outlast import Completion, Context, Outlast, Permanent, SyncContext

jobs = Outlast(os.environ.get("OUTLAST_STORE", "sqlite:///bank.db"))


@dataclass
class Grant:
    """One credit for an account."""

    account: str
    seconds: float = 0.0


def save(db: Any, account: str, seconds: float) -> int:
    """The business write: one credit, and a line that says whose; slow enough to be killed in the middle."""
    mark = "?" if isinstance(db, sqlite3.Connection) else "%s"
    found = db.execute(f"update account set credits = credits + 1 where name = {mark}", (account,))
    time.sleep(seconds)
    if found.rowcount == 0:
        raise Permanent("no_account", "The account is gone.")
    return 1


@jobs.task(max_attempts=50)
async def grant(ctx: Context, grant: Grant) -> Completion[int]:
    return ctx.commit(save, grant.account, grant.seconds)


@jobs.task(max_attempts=50)
def grant_sync(ctx: SyncContext, grant: Grant) -> Completion[int]:
    with ctx.transaction() as tx:
        return tx.complete(save(tx.db, grant.account, grant.seconds))
