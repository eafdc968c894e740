"""The file: the CSV of the package `airportsdata`, some 28,000 airports and landing strips."""

from __future__ import annotations

import csv
import hashlib
import io
from importlib import resources

COLUMNS = ("icao", "iata", "name", "city", "subd", "country", "elevation", "lat", "lon", "tz", "lid")

Row = list[str]
"""A row as it stands in the file, in the order of COLUMNS."""


class NoSuchFile(Exception):
    """The file is not what the import knows how to read."""


def read() -> tuple[str, list[Row]]:
    """The file's fingerprint and its rows without the head; NoSuchFile if its columns are others."""
    content = resources.files("airportsdata").joinpath("airports.csv").read_bytes()
    rows = list(csv.reader(io.StringIO(content.decode("utf-8"), newline="")))
    if not rows or tuple(rows[0]) != COLUMNS:
        raise NoSuchFile("The columns of the file are not those of a list of airports.")
    return hashlib.sha256(content).hexdigest(), rows[1:]
