"""What is printed: nothing stored steers the terminal, and people can read it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from outlast.cli.output import age, ago, local, safe, safe_lines, say_json, table


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0.0, "0s"),
        (0.26, "0.3s"),
        (9.94, "9.9s"),
        (12.9, "12s"),
        (60, "1m"),
        (3_599, "59m 59s"),
        (7_260, "2h 1m"),
        (86_400, "1d"),
        (200_000, "2d 7h"),
        (-3, "0s"),
    ],
)
def test_ages_are_two_units_at_most(seconds: float | None, words: str) -> None:
    assert age(seconds) == words


def test_the_past_and_the_future_are_told_apart() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert ago(now - timedelta(seconds=90), now) == "1m 30s ago"
    assert ago(now + timedelta(seconds=90), now) == "in 1m 30s"
    assert ago(None, now) == ""


def test_a_time_is_local_and_iso() -> None:
    moment = datetime(2030, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
    assert datetime.fromisoformat(local(moment)) == moment.replace(microsecond=0)
    assert local(None) == ""


@pytest.mark.parametrize("evil", ["\x1b[2J", "a\r\nb", "\x9b31m", "\u202egnp.exe", "tab\there", "\ud800"])
def test_control_characters_do_not_reach_the_terminal(evil: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert safe(f"x{evil}y").isprintable()
    assert all(line.isprintable() for line in safe_lines(f"x{evil}y\nsecond"))
    assert table(("A", "B"), [(evil, "x")]).count("\n") == 1
    say_json({"label": evil})
    said = capsys.readouterr().out
    assert said.isascii()
    assert all(c.isprintable() for c in said.rstrip("\n"))
    assert json.loads(said) == {"label": evil}


def test_columns_are_aligned_for_wide_characters_and_empty_ones_are_left_out() -> None:
    shown = table(("NAME", "EMPTY", "N"), [("日本", "", "1"), ("abc", "", "23")], numbers=("N",))
    assert shown.split("\n") == ["NAME   N", "日本   1", "abc   23"]
