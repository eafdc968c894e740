"""What the product's own checker says about a store under test."""

from __future__ import annotations

from contract.backends import Backend
from outlast.store.program import Access, Operation
from outlast.store.programs.verify import verify

_VERIFY = Operation("verify", Access.READ, lambda: verify(limit=50))  # nobody writes meanwhile, so it needs no snapshot


def differences(backend: Backend) -> list[str]:
    """What does not hold, as sentences."""
    found = backend.run(_VERIFY).findings
    return [f"{f.rule.full}: job {f.job_id[-4:]}, task {f.no}: {f.found}; should be: {f.expected}" for f in found]
