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
    asked: list[JSON] = [kind.name, request.version, parse(request.sent, limit=sys.maxsize), rerun_of]
    if unique is not None:
        asked.append({"unique": [unique.key, unique.policy]})
    if target is not None:
        asked.append({"target": [target.ref, target.version]})
    return Admission(
        tenant=tenant,
        owner=owner,
        key=key,
        fingerprint=hashlib.sha256(canonical(asked).encode()).hexdigest(),
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
