"""The matrix is shown at the end of a run that asks for it: pytest tests/web/matrix --matrix."""

from __future__ import annotations

import pytest

from web.matrix.results import RESULTS, Results
from web.world import world

__all__ = ["world"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--matrix", action="store_true", help="print the authorization matrix")


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest) -> Results:
    """What is shown in the end."""
    return request.config.stash.setdefault(RESULTS, Results())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = config.stash.get(RESULTS, None)
    if found is None or not config.getoption("--matrix", default=False):
        return
    terminalreporter.section("authorization matrix: status by role and whose job the id names", sep="=")
    for line in found.lines():
        terminalreporter.write_line(line)
    for line in found.notes:
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"{found.cells} cells checked")
