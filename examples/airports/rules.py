"""Which rows of the file are imported, and why the others are not: the same rows by the same rules are judged the same, always."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from examples.airports.source import COLUMNS, Row

_CODE: Final = re.compile(r"[A-Z0-9]{4}")
_POLE, _DATE_LINE = 90, 180


@dataclass
class Rules:
    """What a tenant asks of a row besides what every airport needs."""

    iata_required: bool = False
    city_required: bool = False


@dataclass
class Airport:
    """A row that was found good."""

    icao: str
    iata: str
    name: str
    city: str
    subd: str
    country: str
    elevation: float
    lat: float
    lon: float
    tz: str
    lid: str


@dataclass
class Judged:
    """A row of the file: `line` counts from 1, after the head. Either `airport` or `reason` is there."""

    line: int
    row: Row
    airport: Airport | None = None
    reason: str = ""


def judge(rows: Iterable[Row], rules: Rules) -> Iterator[Judged]:
    """Each row with what came of it, in order. Of rows that have a code or a place in common the first good one counts."""
    codes: set[str] = set()
    places: set[tuple[float, float]] = set()
    for line, row in enumerate(rows, 1):
        try:
            airport = _airport(row)
            _check(airport, rules)
            _check_free(airport, codes, places)
        except _Rejected as rejected:
            yield Judged(line, row, reason=rejected.reason)
            continue
        codes.add(airport.icao)
        places.add((airport.lat, airport.lon))
        yield Judged(line, row, airport)


class _Rejected(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _airport(row: Row) -> Airport:
    """The row with its figures as numbers, and without blanks around its words."""
    if len(row) != len(COLUMNS):
        raise _Rejected("columns_missing")
    icao, iata, name, city, subd, country, elevation, lat, lon, tz, lid = (value.strip() for value in row)
    return Airport(
        icao,
        iata,
        name,
        city,
        subd,
        country,
        _number(elevation, "elevation_malformed"),
        _number(lat, "coordinates_impossible"),
        _number(lon, "coordinates_impossible"),
        tz,
        lid,
    )


def _check(airport: Airport, rules: Rules) -> None:
    if not airport.name:
        raise _Rejected("name_missing")
    if not _CODE.fullmatch(airport.icao):
        raise _Rejected("code_malformed")
    if abs(airport.lat) > _POLE or abs(airport.lon) > _DATE_LINE or airport.lat == airport.lon == 0:
        raise _Rejected("coordinates_impossible")  # at 0, 0 there is water, and what nobody knew the place of
    if rules.iata_required and not airport.iata:
        raise _Rejected("iata_missing")
    if rules.city_required and not airport.city:
        raise _Rejected("city_missing")


def _check_free(airport: Airport, codes: AbstractSet[str], places: AbstractSet[tuple[float, float]]) -> None:
    if airport.icao in codes:
        raise _Rejected("code_taken")
    if (airport.lat, airport.lon) in places:
        raise _Rejected("place_taken")


def _number(text: str, reason: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise _Rejected(reason) from None
    if not math.isfinite(number):
        raise _Rejected(reason)
    return number
