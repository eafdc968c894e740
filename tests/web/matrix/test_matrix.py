"""Who may do what to whose job: every route of the table, tried by everybody, on every kind of id."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import pytest

from outlast.http.routes import ROUTES
from outlast.http.table import Access, Route
from web.matrix.cells import Cell, Stage, anonymised, cells
from web.matrix.entries import ENTRIES, Caller, Entry, expected
from web.matrix.looking import changed, judged
from web.matrix.results import Results
from web.world import TENANTS, World, people

_numbers = itertools.count(1)


@asynccontextmanager
async def staged(world: World, folder: Path, *, development: bool = False) -> AsyncGenerator[Stage]:
    stage = Stage.on(world, folder / f"{next(_numbers)}.db", development=development)
    try:
        yield stage
    finally:
        await stage.close()


def test_every_route_has_an_entry() -> None:
    names = [route.name for route in ROUTES]
    assert len({*names}) == len(names)
    assert set(ENTRIES) == {*names}, "say in entries.py how each route is tried"


@pytest.mark.parametrize("access", Access)
def test_every_access_has_a_rule(access: Access) -> None:
    """A new kind of access must be thought about: `expected` knows no other."""
    if access is Access.SIGNED_IN:  # of what is one's own, so that no id names anything
        assert not [route for route in ROUTES if route.access is access and "{id}" in route.path]
        return
    route = Route("new", "GET", "/v1/jobs/{id}/new", ROUTES[0].endpoint, access, "")
    assert expected(route, Entry(deed="retry"), Caller(people("acme")["operator"]), people("acme")["owner"]) in (200, 403)


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
async def test_cells(route: Route, tenant: str, world: World, tmp_path: Path, results: Results) -> None:
    wrong: list[str] = []
    same: dict[object, tuple[Cell, object]] = {}

    def as_others(cell: Cell, what: str, key: object, value: object) -> None:
        first, wanted = same.setdefault((what, key), (cell, value))
        if value != wanted:
            wrong.append(f"{cell}: its {what} is not that of {first}:\n    {value}\n    {wanted}")

    # One answer for all, and the same work: what differs between unknown, foreign and malformed could be told by its time.
    async with staged(world, tmp_path) as shared:
        for cell in cells(route, tenant, world):
            if cell.writes:
                async with staged(world, tmp_path) as own:
                    rows, job = own.books.rows(), own.books.job(cell.named) if cell.named else {}
                    answer = await own.play(cell)
                    found = [*judged(cell, own, answer), *changed(cell, own, rows, job, answer)]
            else:
                answer = await shared.play(cell)
                found = [*judged(cell, shared, answer), *(["something was written"] if shared.books.written() else [])]
            wrong += [f"{cell}: {said}" for said in found]
            results.add(cell, answer.status)
            if answer.status in (401, 404):
                as_others(cell, "answer", answer.status, anonymised(cell, answer))
                as_others(cell, "work", (cell.role, id(cell.entry)), [] if cell.writes else list(shared.statements))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("route", [r for r in ROUTES if r.page and r.access is not Access.PUBLIC], ids=lambda route: route.name)
async def test_in_development_nobody_is_led_to_the_sign_in(route: Route, world: World, tmp_path: Path, results: Results) -> None:
    """In place of the 401, and alike for all ids; an id that is none is not carried along."""
    async with staged(world, tmp_path, development=True) as stage:
        answers = {column: set[str]() for column in ("named", "malformed")}
        for cell in cells(route, "acme", world):
            if cell.role != "anonymous":
                continue
            answer = await stage.play(cell)
            results.cells += 1
            assert (answer.status, answer.body) == (303, b"")
            assert not stage.statements
            answers["malformed" if cell.column == "malformed" else "named"].add(anonymised(cell, answer)[1]["location"])
        assert not stage.books.written()
        assert all(len(found) <= 1 for found in answers.values()), answers
        assert all(location.startswith("/sign-in?next=") for location in answers["named"])
        assert answers["malformed"] <= {"/sign-in?next=%2F"}


async def test_time_tells_nothing(world: World, tmp_path: Path, results: Results, request: pytest.FixtureRequest) -> None:
    """Foreign, unknown and malformed by turns; the medians are shown with the matrix, and not judged: machines are noisy."""
    took: defaultdict[str, list[float]] = defaultdict(list)
    (route,) = (route for route in ROUTES if route.name == "get_job")
    kinds = {"peer's": "foreign", "unknown": "unknown", "malformed": "malformed"}
    async with staged(world, tmp_path) as stage:
        asked = [c for c in cells(route, "acme", world) if c.role == "owner" and c.column in kinds and c.entry.state == "queued"]
        some = [next(cell for cell in asked if cell.column == column) for column in kinds]
        for _ in range(2_000 if request.config.getoption("--matrix", default=False) else 100):
            for cell in some:
                started = time.perf_counter()
                answer = await stage.play(cell)
                took[kinds[cell.column]].append(time.perf_counter() - started)
                assert answer.status == 404
                assert stage.statements == ["job_view", "job_view", "tombstone_of"]
    count = len(took["foreign"])
    results.notes.append(f"404 on SQLite, median of {count}: {', '.join(f'{k} {median(v) * 1e6:.0f} us' for k, v in took.items())}")
