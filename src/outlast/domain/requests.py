"""What a request for a job is stored as, whoever makes it: a caller, or a schedule whose time has come."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outlast.domain.errors import Forbidden
from outlast.domain.kinds import Kind
from outlast.domain.model import Principal, TargetRef, Unique
from outlast.domain.payload import JSON, canonical, dump, parse
from outlast.domain.work import ActiveKey, Admission

_MAX_CALLER = 65_536
_VERSION = "/"
_UNNAMED = "~"


@dataclass(frozen=True, slots=True)
class Request:
    """An input: as it was sent, of which version (None: nothing was said), and what is made of it."""

    sent: str
    version: int | None
    input: str
    value: Any


def read_request(kind: Kind[Any], sent: str, version: int | None, *, limit: int) -> Request:
    """The input as the handler will get it; Invalid if it does not fit the kind, or cannot be brought up to its present version."""
    present, value = kind.read(sent, kind.version if version is None else version, limit=limit)
    return Request(sent, version, present, value)


def check_may_submit(principal: Principal, kind: Kind[Any]) -> None:
    """Forbidden unless the principal has one of the kind's roles, where it names any."""
    if kind.roles and not kind.roles & principal.roles:
        raise Forbidden(f"Only some roles may submit jobs of the kind {kind.name!r}, and none of them is yours.")


def caller_of(owner: Principal, kind: Kind[Any]) -> str:
    """What is kept of who asked: roles, and those claims that the kind keeps."""
    kept = {name: owner.claims[name] for name in kind.keep_claims if name in owner.claims}
    return dump({"roles": sorted(owner.roles), "claims": kept}, limit=_MAX_CALLER, what="claims")


def asked_for(caller: str, due_ms: int) -> str:
    """The same, for the job of a schedule's due time."""
    return dump({**json.loads(caller), "scheduled_for": due_ms}, limit=2 * _MAX_CALLER, what="claims")


def owner_of(tenant: str, subject: str, caller: str) -> Principal:
    """Who asked, as far as it was kept."""
    kept: Mapping[str, Any] = json.loads(caller)
    return Principal(tenant, subject, roles=kept.get("roles", ()), claims=kept.get("claims", {}))


def scheduled_for_ms(caller: str) -> int | None:
    """The due time of a schedule's job, in milliseconds; None for all others."""
    found: int | None = json.loads(caller).get("scheduled_for")
    return found


def same_request(stored: str, repeated: str) -> bool:
    """Whether a request that comes under a key is the one that the key was taken for, by their fingerprints.

    Kind, input as it was sent, unique key and target have to be equal. The version has to be equal only where the repeat names
    one: then it is compared with the version that was named, or, where none was, with the one that the kind had at the time.
    """
    was, _, meant = stored.partition(_VERSION)
    now, _, named = repeated.partition(_VERSION)
    return was == now and (named.startswith(_UNNAMED) or named == meant.removeprefix(_UNNAMED))


def _fingerprint(kind: Kind[Any], request: Request, rerun_of: str | None, unique: Unique | None, target: TargetRef | None) -> str:
    """A hash of what was asked for, and the version beside it, so that `same_request` can tell a named one from an unnamed one."""
    asked: list[JSON] = [kind.name, parse(request.sent, limit=sys.maxsize), rerun_of]
    if unique is not None:
        asked.append({"unique": [unique.key, unique.policy]})
    if target is not None:
        asked.append({"target": [target.ref, target.version]})
    version = f"{_UNNAMED}{kind.version}" if request.version is None else str(request.version)
    return f"{hashlib.sha256(canonical(asked).encode()).hexdigest()}{_VERSION}{version}"


def admission_of(
    kind: Kind[Any],
    request: Request,
    *,
    job_id: str,
    correlation_id: str,
    traceparent: str | None,
    tenant: str,
    owner: str,
    caller: str,
    key: str | None,
    not_before_ms: int | None,
    retention_ms: int,
    rerun_of: str | None = None,
    effect_root: str | None = None,
    unique: Unique | None = None,
    target: TargetRef | None = None,
) -> Admission:
    """The admission of a request that was read; the kind's function fills the plan here. It is stored in the kind's present version."""
    return Admission(
        tenant=tenant,
        owner=owner,
        key=key,
        fingerprint=_fingerprint(kind, request, rerun_of, unique, target),
        job_id=job_id,
        kind=kind.name,
        schema_version=kind.version,
        label=kind.label,
        input=request.input,
        caller=caller,
        tasks=kind.plan(request.value),
        not_before_ms=not_before_ms,
        rerun_of=rerun_of,
        effect_root=effect_root or job_id,
        correlation_id=correlation_id,
        traceparent=traceparent,
        unique=None if unique is None else ActiveKey(kind.active_scope(owner), unique.key, unique.policy, retention_ms),
        target=target,
        quota=kind.quota,
    )
