"""The figures: of each country its area and population, from the data files of the package `countryinfo`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources


@dataclass
class Country:
    """One country."""

    name: str
    subregion: str
    area: float
    population: int


def regions() -> list[str]:
    """The names of all regions that have figures."""
    return sorted({country["region"] for country in _files() if country.get("region") and country.get("population")})


def countries_of(region: str) -> list[Country]:
    """The countries of a region, the most populous first."""
    found = [
        Country(c["name"], c.get("subregion") or "", float(c.get("area") or 0), int(c["population"]))
        for c in _files()
        if c.get("region") == region and c.get("population")
    ]
    return sorted(found, key=lambda country: (-country.population, country.name))


def _files() -> list[dict[str, object]]:
    folder = resources.files("countryinfo").joinpath("data")
    return [json.loads(file.read_text("utf-8")) for file in sorted(folder.iterdir(), key=lambda f: f.name) if file.name.endswith(".json")]
