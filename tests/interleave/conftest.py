"""One stage for each test process, and the lines at the end that say how many orders were run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from interleave.explorer import Explorer, Tally
from interleave.pairs import Pair
from interleave.scenes import CLOCK, Stage
from outlast.store.postgres.dialect import SCHEMA, statements
from servers.postgres import PostgresServer

PROPERTY = "interleavings"
LOST = "began anew, for a connection was lost"
DIVERGED = "an order went another way than before"


@pytest.fixture(scope="session")
def explorer() -> Iterator[Explorer]:
    """The stage with all scenes, on a server that nobody else uses or stops, and the two sessions that meet on it."""
    with PostgresServer(settings={"autovacuum": "off"}) as server:
        stage = Stage(server.create_database("interleave"))
        one = Explorer(stage, log=lambda: server.log)
        yield one
        one.close()
        stage.close()


@pytest.fixture(scope="session")
def sql() -> Mapping[str, str]:
    """The statements as the store has them, but for the clock."""
    return statements(SCHEMA, CLOCK)


@pytest.fixture
def run_pair(explorer: Explorer, sql: Mapping[str, str], request: pytest.FixtureRequest) -> Callable[[Pair], Tally]:
    """Runs every order of a pair, and counts them under the name of the test's file. An order costs no new connection."""

    def run(pair: Pair) -> Tally:
        before = explorer.connects
        tally = explorer.pair(pair.scene, pair.one, pair.other, sql)
        assert explorer.lost or explorer.connects <= before + 1, "after a failure before it"
        group = request.path.stem.removeprefix("test_")
        while explorer.lost:
            request.node.user_properties.append((LOST, explorer.lost.pop()))
        while explorer.diverged:
            request.node.user_properties.append((DIVERGED, explorer.diverged.pop()))
        request.node.user_properties.append((PROPERTY, (group, pair.name, tally.runs, tally.waits, tally.left_out)))
        return tally

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each group of pairs, and for each pair that was only sampled."""
    groups: dict[str, list[tuple[str, int, int, int]]] = {}
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in getattr(report, "user_properties", ()):
            if name in (LOST, DIVERGED) and report.when == "call":
                terminalreporter.write_line(f"{report.nodeid}, {name}: {value}")
            if name == PROPERTY and report.when == "call":
                groups.setdefault(value[0], []).append(tuple(value[1:]))
    if not groups:
        return
    terminalreporter.section("statement interleavings")
    for group, pairs in sorted(groups.items()):
        runs, waits = sum(p[1] for p in pairs), sum(p[2] for p in pairs)
        terminalreporter.write_line(f"{group}: {len(pairs)} pairs, {runs} orders, {waits} of them with a lock wait")
        for name, one, _, left in pairs:
            if left:
                terminalreporter.write_line(f"    a sample, {one} of more than {one + left} orders: {name}")
            elif terminalreporter.verbosity > 0:
                terminalreporter.write_line(f"    {one} orders: {name}")
    total = sum(p[1] for pairs in groups.values() for p in pairs)
    terminalreporter.write_line(f"in all {sum(map(len, groups.values()))} pairs, {total} orders")
