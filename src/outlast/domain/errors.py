"""Refusals and faults that a caller meets.

    OutlastError
    ├── Invalid             an argument, payload, plan or setting; nothing was written
    ├── NotRegistered       a kind, task or version that this process does not know
    ├── NotAParent          ctx.output of a task that is no parent; permanent
    ├── CompletionMissing   the block of ctx.transaction ended without tx.complete; rolled back
    ├── TransactionMisused  a session that Outlast cannot use, or a function that ended its transaction; permanent
    ├── NotFound            unknown or not theirs, never which
    ├── Forbidden           may read it, may not do this
    ├── Expired             their own, and no longer kept (module `conflicts`)
    ├── KeyReused           the idempotency key belongs to another request
    ├── QuotaExceeded       the owner has as many open jobs of the kind as are allowed
    ├── Conflict            the job stands otherwise; `job` says how (module `conflicts`)
    │   ├── StaleVersion
    │   ├── AlreadyCompleted
    │   ├── UniqueActive
    │   └── NotReady
    ├── Contended           the caller's transaction has to begin anew
    ├── StillAdmitting      another transaction is admitting a job with this key
    ├── StoreUnavailable    unreachable, read-only or full; nothing was written
    │   └── Locked          another transaction held a lock for too long
    ├── OutcomeUnknown      repeat the call with the same key
    └── NotMigrated         the store's schema is older or newer than this code

Each has a stable `code`, a `message` that is safe to show and says what to do, and `retryable`: whether
repeating the call may help.
"""

from __future__ import annotations

from collections.abc import Sequence


class OutlastError(Exception):
    """The root of all refusals and faults."""

    code: str = "error"
    retryable: bool = False

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class Invalid(OutlastError):
    """An argument, payload, plan or setting cannot be used; nothing was written. `pointers` are JSON pointers, never values."""

    code = "invalid"

    def __init__(self, message: str, *, code: str | None = None, pointers: Sequence[str] = ()) -> None:
        super().__init__(message, code=code)
        self.pointers = tuple(pointers)


class NotRegistered(OutlastError):
    """A kind, task or version that this process does not know. Register it, or call the process that does."""

    code = "not_registered"


class NotAParent(OutlastError):
    """The task asked for is no parent of this one, or stands several times in the plan and no label was given."""

    code = "not_a_parent"


class CompletionMissing(OutlastError):
    """The block of `ctx.transaction()` ended without `tx.complete(value)`. It was rolled back; nothing of it remains."""

    code = "completion_missing"


class TransactionMisused(OutlastError):
    """A session, or a function that was lent one, did what leaves no single transaction. Repeating it cannot help.

    Codes: `session_invalid` (what the factory makes cannot be used), `session_elsewhere` (another database than the store's),
    `transaction_ended` (the function committed, rolled back or closed by itself), `inside_transaction` (a call that writes in a
    transaction of its own was made inside one), `transaction_misused` (whatever else the session's library refuses as misuse).
    """

    code = "transaction_misused"


class NotFound(OutlastError):
    """No such job for this principal; whether it exists for another is not said."""

    code = "not_found"


class Forbidden(OutlastError):
    """The principal may read this job, and may not do this to it."""

    code = "forbidden"


class KeyReused(OutlastError):
    """The idempotency key was used for another request; nothing was written. Use a new key for a new request."""

    code = "key_reused"


class QuotaExceeded(OutlastError):
    """The owner has as many open jobs of this `kind` as its quota allows; nothing was written. Try again when one has ended."""

    code = "quota_exceeded"
    retryable = True

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class Contended(OutlastError):
    """The caller's transaction cannot see what another one has just committed; nothing was written. Begin a new one."""

    code = "contended"
    retryable = True


class StoreUnavailable(OutlastError):
    """The store cannot be reached, is read-only or is full; nothing was written."""

    code = "store_unavailable"
    retryable = True


class Locked(StoreUnavailable):
    """Another transaction held what this one needs for longer than the limit; nothing was written."""


class StillAdmitting(OutlastError):
    """Another transaction holds this key and has not ended within the lock time-out of 2 s; nothing was written. Repeat it."""

    code = "still_admitting"
    retryable = True


class OutcomeUnknown(OutlastError):
    """The connection was lost at the commit and what came of it could not be read. Repeat the call with the same key."""

    code = "outcome_unknown"
    retryable = True


class NotMigrated(OutlastError):
    """The store's schema is not the one this code needs. Run `outlast migrate`, or upgrade Outlast if the store is newer."""

    code = "not_migrated"
