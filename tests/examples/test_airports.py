"""The example runs as it is documented, on both stores; it counts all rows itself, against the file. And which rows it rejects."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from servers.postgres import PostgresServer

ROOT = Path(__file__).resolve().parents[2]
GOOD = ["EBBR", "BRU", "Brussels Airport", "Brussels", "Brussels", "BE", "175", "50.5405", "4.2904", "Europe/Brussels", ""]
PLACES = ("icao", "iata", "name", "city", "subd", "country", "elevation", "lat", "lon", "tz", "lid")


@pytest.mark.slow
@pytest.mark.timeout(170)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_each_row_is_imported_or_rejected_once(store: str, request: pytest.FixtureRequest) -> None:
    command = [sys.executable, "-m", "examples.airports.run"]
    server: PostgresServer | None = None
    if store == "postgresql":
        server = request.getfixturevalue("postgres_server")
        command += ["--store", server.create_database("airports_example")]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    if server is not None:
        server.drop_database("airports_example")
    assert done.returncode == 0, done.stdout + done.stderr
    file = re.search(r"imports of a file of ([\d,]+) airports", done.stdout)
    assert file is not None
    published = re.findall(r"(\w+): 3 imports are published, each with ([\d,]+) rows imported, ([\d,]+) rejected", done.stdout)
    assert [tenant for tenant, _, _ in published] == ["atlas", "skyfare"]
    assert {number(imported) + number(rejected) for _, imported, rejected in published} == {number(file[1])}
    assert len(re.findall(r"skyfare is asked: .* It answers", done.stdout)) == 4
    assert len(re.findall(r"cityguide: an import that was stopped", done.stdout)) == 2
    assert "the limit is 2 for a tenant" in done.stdout


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    from examples.airports import rules  # noqa: PLC0415 - a folder that is not installed

    return rules


def row(**changes: str) -> list[str]:
    return [changes.get(place, value) for place, value in zip(PLACES, GOOD, strict=True)]


@pytest.mark.parametrize(
    ("changes", "strict", "reason"),
    [
        ({}, {}, ""),
        ({"name": " \t"}, {}, "name_missing"),
        ({"icao": "_MLH"}, {}, "code_malformed"),
        ({"icao": "EBB"}, {}, "code_malformed"),
        ({"lat": "90.1"}, {}, "coordinates_impossible"),
        ({"lon": "-180.5"}, {}, "coordinates_impossible"),
        ({"lat": "north"}, {}, "coordinates_impossible"),
        ({"lat": "nan"}, {}, "coordinates_impossible"),
        ({"lat": "0", "lon": "0.0"}, {}, "coordinates_impossible"),
        ({"lat": "-90.0", "lon": "0.0"}, {}, ""),
        ({"elevation": "high"}, {}, "elevation_malformed"),
        ({"iata": "", "city": ""}, {}, ""),
        ({"iata": ""}, {"iata_required": True}, "iata_missing"),
        ({"city": ""}, {"city_required": True}, "city_missing"),
    ],
)
def test_a_row_is_rejected_for_its_reason(changes: dict[str, str], strict: dict[str, bool], reason: str, rules: ModuleType) -> None:
    (judged,) = rules.judge([row(**changes)], rules.Rules(**strict))
    assert (judged.line, judged.reason) == (1, reason)
    assert (judged.airport is None) == bool(reason)


def test_of_rows_with_a_code_or_a_place_in_common_the_first_good_one_counts(rules: ModuleType) -> None:
    rows = [row(name=""), row(), row(lat="51"), row(icao="EBMB"), GOOD[:-1]]
    reasons = [judged.reason for judged in rules.judge(rows, rules.Rules())]
    assert reasons == ["name_missing", "", "code_taken", "place_taken", "columns_missing"]


SPOILT = {
    "a row twice": "insert into airport select * from airport where line = 9",
    "a row that is gone": "delete from reject where line = 17",
    "a row both imported and rejected": "insert into reject values ('import', 9, 'name_missing', '[]')",
    "another row than the file's": "update airport set lat = lat + 0.000001 where line = 9",
    "another reason": "update reject set reason = 'city_missing' where line = 17",
    "a total counted twice": "update edition set imported = imported + 1",
    "published before its end": "update edition set published = 1",
    "a step counted twice": "insert into landing select * from landing",
}


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT.keys())
def test_the_count_finds_what_is_wrong(spoilt: str, rules: ModuleType, tmp_path: Path) -> None:
    from examples.airports import count, tables  # noqa: PLC0415 - a folder that is not installed

    url = f"sqlite:///{tmp_path}/airports.db"
    tables.make(url)
    rows = [row(icao=f"A{line:03}", lat=str(line), name="" if line == 17 else "Airfield") for line in range(1, 31)]
    judged = list(rules.judge(rows, rules.Rules()))
    wanted = count.Expected([repr(count.stored(one)) for one in judged], [one.reason for one in judged])
    with closing(sqlite3.connect(tmp_path / "airports.db")) as db, db:
        for chunk in (judged[:10], judged[10:20]):
            tables.store(db, tables.Importer("import", "atlas", 1), chunk)
    assert count.whole(url, "import", wanted, published=False) == tables.Totals(19, 1)
    tables.ask(url, spoilt)
    with pytest.raises(count.Wrong):
        count.whole(url, "import", wanted, published=False)


def test_imports_at_once_are_told_by_the_steps_that_one_claim_stored(rules: ModuleType, tmp_path: Path) -> None:
    from examples.airports import count, tables  # noqa: PLC0415 - a folder that is not installed

    url = f"sqlite:///{tmp_path}/airports.db"
    tables.make(url)
    log = {
        ("a", "atlas", 1): (1, 2),
        ("a", "atlas", 2): (5, 9),
        ("b", "atlas", 1): (2, 5),
        ("c", "atlas", 4): (6, 6),
        ("d", "sky", 1): (6, 7),
    }
    for (job, tenant, fence), times in log.items():
        for at in times:
            tables.ask(
                url, "insert into landing (job, tenant, fence, first_line, size, at) values (?, ?, ?, 1, 1, ?)", job, tenant, fence, at
            )
    assert count.at_once(url, "abcd") == ({"atlas": 2, "sky": 1}, 3)
    assert count.at_once(url, "bcd") == ({"atlas": 1, "sky": 1}, 2)
