from __future__ import annotations

from contract.fixtures import backend, contract_dsn, files, h, postgres_async, postgres_sync, sqlite_template

__all__ = ["backend", "contract_dsn", "files", "h", "postgres_async", "postgres_sync", "sqlite_template"]
