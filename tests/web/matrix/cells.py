"""The cells of the matrix: who calls what on whose job, and everything that is looked at in the answer."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from outlast.http.app import build
from outlast.http.development import identify
from outlast.http.page.assets import assets
from outlast.http.table import Route
from web.exchange import bearer, exchange
from web.matrix.entries import MALFORMED, Caller, Entry, entries_of, expected
from web.site import Answer, Site
from web.world import NOBODYS, TENANTS, Books, Person, World, application, people

ROLES: Final = ("owner", "peer", "operator", "namesake", "other operator", "anonymous")
COLUMNS: Final = ("owner's", "peer's", "other tenant's", "unknown", "malformed")


def caller(role: str, tenant: str) -> Caller:
    """Who that is, seen from the tenant."""
    (elsewhere,) = (name for name in TENANTS if name != tenant)
    here, there = people(tenant), people(elsewhere)
    return Caller(
        {
            "owner": here["owner"],
            "peer": here["peer"],
            "operator": here["operator"],
            "namesake": there["owner"],
            "other operator": there["operator"],
            "anonymous": None,
        }[role]
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """One call: who, on what, and whose job the id names (None: nobody's)."""

    route: Route
    entry: Entry
    tenant: str
    role: str
    column: str
    owner: Person | None
    named: str

    @property
    def caller(self) -> Caller:
        """Who calls."""
        return caller(self.role, self.tenant)

    @property
    def wanted(self) -> int:
        """The status that it must have."""
        return expected(self.route, self.entry, self.caller, self.owner)

    @property
    def writes(self) -> bool:
        """Whether it is to change something."""
        return self.entry.changes != "nothing" and self.wanted == self.entry.good

    def __str__(self) -> str:
        return f"{self.route.method} {self.route.path} ({self.entry.state}) by {self.role} of {self.tenant} on {self.column} {self.named!r}"


def cells(route: Route, tenant: str, world: World) -> Iterator[Cell]:
    """All calls of a route, seen from a tenant."""
    (elsewhere,) = (name for name in TENANTS if name != tenant)
    for entry in entries_of(route):
        for role in ROLES:
            if "{id}" not in route.path:
                yield Cell(route, entry, tenant, role, "no id", None, "")
                continue
            for column, owner in (
                ("owner's", people(tenant)["owner"]),
                ("peer's", people(tenant)["peer"]),
                ("other tenant's", people(elsewhere)["owner"]),
            ):
                yield Cell(route, entry, tenant, role, column, owner, world.id(owner, entry.state))
            yield Cell(route, entry, tenant, role, "unknown", None, NOBODYS)
            yield Cell(route, entry, tenant, role, "unknown", None, str(uuid.uuid4()))
            for named in MALFORMED.values():
                yield Cell(route, entry, tenant, role, "malformed", None, named)


@dataclass(slots=True)
class Stage:
    """An application on a world of its own, with the names of the statements that it ran."""

    site: Site
    world: World
    books: Books
    statements: list[str] = field(default_factory=list[str])

    @classmethod
    def on(cls, world: World, path: Path, *, development: bool = False) -> Stage:
        """A stage on a copy of the world."""
        copied = world.copy(path)
        jobs = application(copied.url)
        stage = cls(Site(jobs, build(jobs.desk, identify, development=development)), copied, Books(copied.path))
        store: Any = stage.site.jobs.store
        store._sql = _Noting(store._sql, stage.statements)
        return stage

    async def play(self, cell: Cell) -> Answer:
        """The answer to a cell's call."""
        headers = bearer(None if cell.caller.person is None else cell.caller.person.who)
        headers += [(name.lower().encode(), value.encode()) for name, value in cell.entry.headers.items()]
        content, media_type = cell.entry.content(self.world, cell.owner or people(cell.tenant)["owner"])
        if media_type:
            headers.append((b"content-type", media_type.encode()))
        headers.append((b"content-length", str(len(content)).encode()))
        target = cell.route.path.replace("{id}", cell.named).replace("{no}", "0").replace("{name}", _STYLE)
        self.statements.clear()
        return await exchange(self.site, cell.route.method, target, headers, (content,))

    async def close(self) -> None:
        """Gives back what it holds."""
        self.site.app.stop()
        await self.site.jobs.close()
        self.books.__exit__(None, None, None)


_STYLE: Final = assets()["page.css"].name
_WATCHER: Final = frozenset({"jobs_watched", "newest_of_owner"})
"""What is read for streams that are open, whoever calls meanwhile."""


class _Noting(dict[str, str]):
    """A store's statements, noting which were looked up: each is run by the name that stands here."""

    def __init__(self, statements: Mapping[str, str], names: list[str]) -> None:
        super().__init__(statements)
        self._names = names

    def __getitem__(self, name: str) -> str:
        if name not in _WATCHER:
            self._names.append(name)
        return super().__getitem__(name)


def anonymised(cell: Cell, answer: Answer) -> tuple[int, dict[str, str], bytes]:
    """The answer without what differs from call to call: the correlation id, and the id that was asked for."""
    correlation = answer.headers["x-request-id"].encode()
    named = cell.named.encode() or correlation

    def plain(text: bytes) -> bytes:
        return text.replace(correlation, b"CORRELATION").replace(named, b"ID")

    headers = {name: plain(value.encode("latin-1")).decode("latin-1") for name, value in answer.headers.items()}
    return answer.status, headers, plain(answer.body)
