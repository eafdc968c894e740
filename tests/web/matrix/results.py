"""What came of the cells, kept until the end of the run, and the table that it makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import pytest

from outlast.http.routes import ROUTES
from web.matrix.cells import COLUMNS, ROLES, Cell


class Results:
    """The statuses that were seen, by route, role and kind of id."""

    def __init__(self) -> None:
        self.cells = 0
        self.notes: list[str] = []
        self._seen: defaultdict[tuple[str, str, str], set[int]] = defaultdict(set)

    def add(self, cell: Cell, status: int) -> None:
        """One more cell."""
        self.cells += 1
        self._seen[cell.route.name, cell.role, cell.column].add(status)

    def lines(self) -> Iterator[str]:
        """The table, a route and role on a line."""
        width = max(len(f"{route.method} {route.path}") for route in ROUTES)
        yield f"{'route':{width}}  {'role':14}  {'  '.join(f'{column:14}' for column in COLUMNS)}"
        for route in ROUTES:
            for role in ROLES:
                yield f"{f'{route.method} {route.path}' if role == ROLES[0] else '':{width}}  {role:14}  {self._row(route.name, role)}"

    def _row(self, name: str, role: str) -> str:
        without = self._statuses(name, role, "no id")
        if without:
            return without
        return "  ".join(f"{self._statuses(name, role, column) or '-':14}" for column in COLUMNS)

    def _statuses(self, name: str, role: str, column: str) -> str:
        return " ".join(str(status) for status in sorted(self._seen[name, role, column]))


RESULTS: Final = pytest.StashKey[Results]()
