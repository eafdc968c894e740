"""The seeds that once failed: they are run again with each run of the tests."""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).with_name("seeds.txt")
MOST = 2**63 - 1


def seed_of(text: str) -> int:
    """A seed as it is written; ValueError, with words for people, for what is none."""
    if not (text.isascii() and text.isdigit()) or int(text) > MOST:
        raise ValueError(f"{text!r} is no seed: a seed is a whole number from 0 to {MOST}.")
    return int(text)


def kept(file: Path = FILE) -> list[int]:
    """Those in the file, a line each: the seed, and behind `#` what it found."""
    lines = [line.partition("#")[0].strip() for line in file.read_text("utf-8").splitlines()]
    return [seed_of(line) for line in lines if line]


def keep(seed: int, found: str, file: Path = FILE) -> None:
    """One more, if it is not there."""
    if seed not in kept(file):
        with file.open("a", encoding="utf-8") as stream:
            stream.write(f"{seed}  # {' '.join(found.split())[:160]}\n")
