from __future__ import annotations

import pytest

from outlast.demo.inline import Span, plain, spans


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('the "while" loop', ["while"]),
        ("the ``while`` loop", ["while"]),
        ('("True"), "None".', ["True", "None"]),
        ('all "Error"s', ["Error"]),
        ('"try"…"finally"', ["try", "finally"]),
        ('"{"one": 1, "two": 2}" it is', ['{"one": 1, "two": 2}']),
        ('"{" and "}"', ["{", "}"]),
        ('the strings ""False"" or ""True""', ['"False"', '"True"']),
        ('a quote (""") is', ['"']),
        ('so """ in "abc"" is', ['"" in "abc"']),
        ('"hasattr(x, "y")".', ['hasattr(x, "y")']),
        ('an inch is 1" and 2" are two', []),
        ('a lone " stands', []),
    ],
)
def test_code_ends_where_a_reader_would_end_it(text: str, code: list[str]) -> None:
    assert [span.text for span in spans(text) if span.kind == "code"] == code


def test_all_kinds_in_order() -> None:
    assert list(spans('See *this* and **that** in "it" [12].')) == [
        Span("text", "See "),
        Span("em", "this"),
        Span("text", " and "),
        Span("strong", "that"),
        Span("text", " in "),
        Span("code", "it"),
        Span("text", " [12]."),
    ]


def test_citations_follow_prose() -> None:
    assert [span.kind for span in spans("as said. [1] Also [2]")] == ["text", "note", "text", "note"]
    assert [span.kind for span in spans("[1] and a[1]")] == ["text"]


@pytest.mark.parametrize("text", ["2 * 3 * 4", "*args and **kwargs", "a**b**c", "x*y*z"])
def test_stars_that_mark_nothing_stay(text: str) -> None:
    assert list(spans(text)) == [Span("text", text)]


def test_a_letter_may_be_marked_within_a_word() -> None:
    assert list(spans("*i*th")) == [Span("em", "i"), Span("text", "th")]


def test_plain_drops_marks_only() -> None:
    assert plain('The "if" *and* the rest [1]') == "The if and the rest"
