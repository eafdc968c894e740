"""The store's URL from the settings of a DATABASES alias, so that a project says once where its database is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from outlast.store.sqlite.build import DRIVER_VARIABLE

_PLAIN_HOST: Final = re.compile(r"[A-Za-z0-9._-]+")
_IN_MEMORY: Final = (
    "The database {alias!r} is an SQLite database in memory, which no other connection can see, so no store can be in it. Django's tests "
    "take one unless they are told a file: DATABASES[{alias!r}]['TEST'] = {{'NAME': BASE_DIR / 'test.sqlite3'}}."
)


def store_url(alias: str = "default") -> str:
    """The URL for `Outlast(...)` of the database that DATABASES has under this alias; during tests, of the test database.

    It holds the password: show it to nobody. ImproperlyConfigured for an engine that cannot be a store, an SQLite database in memory, and
    one of which Outlast is told to use another build than Django's.
    """
    connection: Any = connections[alias]
    match connection.vendor:
        case "sqlite":
            return _sqlite(alias, str(connection.settings_dict["NAME"]))
        case "postgresql":
            return _postgresql(connection)
        case _:
            raise ImproperlyConfigured(
                f"The database {alias!r} has the engine {connection.settings_dict['ENGINE']!r}, which no store can be in: name another "
                "alias in OUTLAST['database'], of PostgreSQL or SQLite."
            )


def _sqlite(alias: str, name: str) -> str:
    if name.startswith("file:") or ":memory:" in name:
        raise ImproperlyConfigured(_IN_MEMORY.format(alias=alias))
    if os.environ.get(DRIVER_VARIABLE) == "apsw":
        raise ImproperlyConfigured(
            f"{DRIVER_VARIABLE}=apsw: Django would open the database {alias!r} with another SQLite library than Outlast, which corrupts "
            "it. Unset the variable."
        )
    return f"sqlite:///{quote(os.path.abspath(name))}"  # noqa: PTH100 - as Django takes it: links are not followed


def _postgresql(connection: Any) -> str:
    """What Django would give the driver, of that which libpq knows."""
    from psycopg.pq import Conninfo  # noqa: PLC0415 - an extra

    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    given: Mapping[str, Any] = connection.get_connection_params()
    wanted = {key: str(value) for key, value in given.items() if key in known and value is not None}
    role = connection.settings_dict["OPTIONS"].get("assume_role")
    if role:
        wanted["options"] = f"{wanted.get('options', '')} -c role={role}".strip()
    user, password = (quote(wanted.pop(key, ""), safe="") for key in ("user", "password"))
    account = f"{user}:{password}@" if password else f"{user}@" if user else ""
    place = ""
    if _PLAIN_HOST.fullmatch(wanted.get("host", "")) and wanted.get("port", "1").isdecimal():
        place = wanted.pop("host")
        port = wanted.pop("port", "")
        place += f":{port}" if port else ""
    database = quote(wanted.pop("dbname", ""), safe="")
    rest = urlencode(wanted, quote_via=quote)
    return f"postgresql://{account}{place}/{database}" + (f"?{rest}" if rest else "")
