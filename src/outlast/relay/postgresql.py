"""A connection to an outbox in PostgreSQL."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict

ERRORS: Final = (psycopg.Error,)
_USUAL: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "application_name": "outlast relay",
    "client_encoding": "utf8",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


class _AsStored(Loader):
    """Texts as bytes: what is no UTF-8 is the fault of its row, not of the whole batch."""

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


def connect(url: str) -> psycopg.Connection:
    """A connection in autocommit; nothing stays prepared, so that it may go through a pooler."""
    given = conninfo_to_dict(url)
    usual = {name: value for name, value in _USUAL.items() if name not in given}
    connection = psycopg.connect(url, autocommit=True, prepare_threshold=None, **usual)
    for name in ("text", "varchar"):
        connection.adapters.register_loader(name, _AsStored)
    return connection
