from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict

import msgspec
import pytest

from outlast.demo.topics import Chapter, ChapterSpec, chapter_plan, collect, reference, words

SOURCE = {
    "compound": """\
Compound statements
*******************

They span lines.


The "if" statement
==================

One suite runs. [1]


Details
-------

As said.


The "match" statement
=====================

Patterns match.

-[ Footnotes ]-

[1] Or none.
    At all.

[2] Unused.
""",
    "if": 'The "if" statement\n******************\n\nOne suite runs. [1]\n\n\nDetails\n=======\n\nAs said.\n',
    "else": 'The "if" statement\n******************\n\nOne suite runs. [1]\n\n\nDetails\n=======\n\nAs said.\n',
    "try": 'The "try" statement\n*******************\n\nIt may fail. [1]\n',
    "novelty": "A novelty\n*********\n\nNew.\n",
    "bare": "No title at all.",
}


def test_plan_has_every_topic_once_but_for_twins() -> None:
    plan = chapter_plan()
    counts = Counter(name for spec in plan for name in spec.topics)
    assert set(counts.values()) == {1}
    missing = set(reference()) - set(counts)
    assert missing <= {"else"}
    assert 12 <= len(plan) <= 20
    assert [spec.number for spec in plan] == list(range(1, len(plan) + 1))
    assert plan == chapter_plan()


def test_plan_cuts_long_themes_and_appends_unknown_topics() -> None:
    plan = chapter_plan(2, source=SOURCE)
    assert [(spec.title, spec.topics) for spec in plan] == [
        ("Compound Statements (1 of 2)", ("compound", "if")),
        ("Compound Statements (2 of 2)", ("try",)),
        ("Further Topics", ("bare", "novelty")),
    ]


def test_plan_refuses_chapters_without_room() -> None:
    with pytest.raises(ValueError, match="at least one topic"):
        chapter_plan(0)


def test_collect_says_everything_once() -> None:
    wide, narrow = collect(ChapterSpec(3, "Compound", ("compound", "if")), source=SOURCE).sections
    assert wide.title == "Compound statements"
    assert "They span lines." in wide.text
    assert "Patterns match." in wide.text
    assert "One suite runs." not in wide.text
    assert "As said." not in wide.text
    assert narrow.title == 'The "if" statement'
    assert "As said." in narrow.text


def test_collect_gives_a_section_the_footnotes_it_cites() -> None:
    wide, attempt = collect(ChapterSpec(1, "Compound", ("compound", "try")), source=SOURCE).sections
    assert "Footnotes" not in wide.text
    assert attempt.text.endswith("-[ Footnotes ]-\n\n[1] Or none.\n    At all.")
    assert "Unused" not in attempt.text


def test_collect_names_a_section_without_title_by_its_topic() -> None:
    (section,) = collect(ChapterSpec(1, "Bare", ("bare",)), source=SOURCE).sections
    assert (section.title, section.text) == ("bare", "No title at all.")


def test_collect_refuses_an_unknown_topic() -> None:
    with pytest.raises(KeyError):
        collect(ChapterSpec(1, "Nothing", ("nothing",)), source=SOURCE)


def test_chapters_are_small_json_that_reads_back() -> None:
    for spec in chapter_plan():
        chapter = collect(spec)
        stored = json.dumps(asdict(chapter))
        assert 1_000 < len(stored) < 128 * 1024
        assert msgspec.json.decode(stored, type=Chapter) == chapter
        assert chapter == collect(spec)


def test_words_counts_what_a_reader_would() -> None:
    assert words("It\u2019s a built-in, “really”: x.y (3.14)!") == 6
