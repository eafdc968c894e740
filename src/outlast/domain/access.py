"""Who may do what: the owner everything to their own jobs; an operator of the tenant reads, cancels and retries; nobody else anything.

What comes out is a scope that the statements carry in their predicate, so that a foreign row is never read in the first place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from outlast.domain.errors import Invalid
from outlast.domain.model import Principal

OPERATOR = "operator"

Deed = Literal["read", "result", "recovery", "cancel", "retry", "decide", "rerun", "replay", "queues", "forget"]

_OPERATORS_MAY: frozenset[Deed] = frozenset({"read", "cancel", "retry", "rerun", "replay", "queues", "forget"})


@dataclass(frozen=True, slots=True)
class Scope:
    """The predicate of a principal's statement: this tenant, and this owner unless None (an operator)."""

    tenant: str
    owner: str | None


def scope_of(principal: Principal, deed: Deed) -> Scope:
    """The rows on which the principal may do this; an operator may not see payloads nor decide for the owner."""
    if not isinstance(principal, Principal):
        raise Invalid("principal= takes a Principal: who is calling.")
    if OPERATOR in principal.roles and deed in _OPERATORS_MAY:
        return Scope(principal.tenant, None)
    return Scope(principal.tenant, principal.subject)


def owns(owner: str, actor: str) -> bool:
    """Whether who acts is the job's owner, whatever else they may: what nobody decides for an owner is asked for by this."""
    return owner == actor


def reading_scope(principal: Principal) -> Scope:
    """The rows that the principal may read: what lies in it, but not in `scope_of` a deed, is refused as forbidden, not as unknown."""
    return scope_of(principal, "read")
