"""Refusals and faults as problem documents (RFC 9457): a closed catalogue of codes, and nothing that was sent is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from outlast.domain.conflicts import Conflict, NotReady
from outlast.domain.errors import Forbidden, Invalid, KeyReused, NotFound, NotMigrated, NotRegistered, OutlastError
from outlast.domain.model import JobView


@dataclass(frozen=True, slots=True)
class Entry:
    """One code of the catalogue: its status, what it is called, and whether the same request may succeed later."""

    status: int
    title: str
    retryable: bool = False


CATALOGUE: Final[Mapping[str, Entry]] = {
    "bad_request": Entry(400, "The request is malformed"),
    "malformed_json": Entry(400, "The body is not JSON"),
    "invalid_key": Entry(400, "The Idempotency-Key header is missing or malformed"),
    "invalid_query": Entry(400, "A query parameter cannot be used"),
    "unauthenticated": Entry(401, "Sign in first"),
    "forbidden": Entry(403, "You may not do this"),
    "stale_form": Entry(403, "This form is out of date"),
    "cross_site": Entry(403, "The request came from another site"),
    "not_found": Entry(404, "Nothing is here for you"),
    "method_not_allowed": Entry(405, "This method is not offered here"),
    "request_timeout": Entry(408, "The body did not arrive in time", retryable=True),
    "already_completed": Entry(409, "The job had completed before"),
    "attention_superseded": Entry(409, "The question was settled otherwise"),
    "conflict": Entry(409, "The job stands otherwise"),
    "not_final": Entry(409, "The job is not final"),
    "no_target": Entry(409, "The job has no target"),
    "nothing_parked": Entry(409, "No result waits to be applied"),
    "target_changed": Entry(409, "The target is at another version"),
    "target_failed": Entry(409, "The result could not be put there"),
    "not_ready": Entry(409, "There is no result yet", retryable=True),
    "still_admitting": Entry(409, "A request with this key is still being admitted", retryable=True),
    "unique_active": Entry(409, "Another job with this unique key is active"),
    "expired": Entry(410, "The job is no longer kept"),
    "stale_version": Entry(412, "The job changed since the version you named"),
    "too_large": Entry(413, "The body is too large"),
    "target_too_long": Entry(414, "The address is too long"),
    "unsupported_media_type": Entry(415, "The body is not sent as JSON"),
    "invalid": Entry(422, "The request cannot be used as it is"),
    "key_reused": Entry(422, "The idempotency key belongs to another request"),
    "not_offered": Entry(422, "This action is not offered"),
    "not_registered": Entry(422, "There is no such kind"),
    "precondition_required": Entry(428, "Say which version you mean"),
    "quota_exceeded": Entry(429, "You have as many unfinished jobs of this kind as are allowed", retryable=True),
    "too_many_streams": Entry(429, "Too many open event streams", retryable=True),
    "too_many_waits": Entry(429, "Too many open waits", retryable=True),
    "headers_too_large": Entry(431, "The header fields are too large"),
    "internal": Entry(500, "Something went wrong here"),
    "contended": Entry(503, "The store is busy", retryable=True),
    "not_migrated": Entry(503, "The store is not at this version", retryable=True),
    "outcome_unknown": Entry(503, "It is not known whether this was accepted", retryable=True),
    "store_unavailable": Entry(503, "The store does not answer", retryable=True),
    "unidentified": Entry(503, "It cannot be found out who you are", retryable=True),
}

RETRY_SECONDS: Final = 2
"""What Retry-After says where nothing better is known."""

_OWN_CODES: Final = (
    (NotFound, "not_found"),
    (Forbidden, "forbidden"),
    (KeyReused, "key_reused"),
    (NotMigrated, "not_migrated"),
    (NotRegistered, "not_registered"),
)


class Problem(Exception):
    """A request is refused: a code of the catalogue, and what to do, in words that repeat nothing of the request."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        pointers: tuple[str, ...] = (),
        job: JobView | None = None,
        headers: Mapping[str, str] | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.entry = CATALOGUE[code]
        self.detail = detail
        self.pointers = pointers
        self.job = job
        self.headers = dict(headers or {})
        self.retryable = self.entry.retryable if retryable is None else retryable
        if self.entry.status in (429, 503) or code == "still_admitting":
            self.headers.setdefault("Retry-After", str(RETRY_SECONDS))


class ProblemDocument(msgspec.Struct, omit_defaults=True, rename=None):
    """The members of a problem document. `job`, where given, is the job as it stands; `pointers` name places in the body."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    retryable: bool
    correlation_id: str
    pointers: tuple[str, ...] = ()
    job: msgspec.Raw | None = None


def problem_of(error: OutlastError, *, retry_after: int | None = None) -> Problem:
    """The refusal of a call as a problem. What has no code of its own in the catalogue is `invalid` or `conflict`.

    retry_after: seconds until it may be otherwise, where more is known of it than of all refusals.
    """
    if isinstance(error, Conflict):
        code = error.code if error.code in CATALOGUE else "conflict"
        final = isinstance(error, NotReady) and error.job.final
        return Problem(code, error.message, job=error.job if error.shown else None, retryable=False if final else None)
    for kind, code in _OWN_CODES:
        if isinstance(error, kind):
            return Problem(code, _FOR_USERS.get(code, error.message))
    if isinstance(error, Invalid):
        code = error.code if error.code in CATALOGUE else "invalid"
        return Problem(code, error.message, pointers=error.pointers)
    if error.code in CATALOGUE:
        headers = None if retry_after is None else {"Retry-After": str(retry_after)}
        return Problem(error.code, _FOR_USERS.get(error.code, error.message), headers=headers)
    return Problem("internal", "The application met an unexpected error. The correlation id finds it in the log.")


_FOR_USERS: Final = {
    # What an operator is told names commands and addresses; a caller needs neither.
    "not_migrated": "The service is being upgraded. Nothing was stored; try again.",
    "store_unavailable": "The service cannot reach its store, or cannot write to it. Nothing was stored; try again.",
    "outcome_unknown": "Whether this was stored could not be learnt. Repeat the request with the same Idempotency-Key.",
}
