"""A SQLite store, and a worker of the rehearsal app in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.stage import Stage
from invariants import check
from outlast.rehearsal.ledger import FILE
from outlast.store.open import migrate


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A migrated store with a client; handlers of this process write its ledger."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    migrate(url)
    made = Stage(url, tmp_path)
    monkeypatch.setenv(FILE, str(made.ledger))
    try:
        yield made
    finally:
        made.close()
    check(url)
