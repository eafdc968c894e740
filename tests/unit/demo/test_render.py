from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from outlast.demo.render import chapter_html, section_html, section_id, text, title_html, title_text
from outlast.demo.topics import Chapter, ChapterSpec, Section, chapter_plan, collect


def html_of(body: str) -> str:
    return section_html(Section("a topic", "Title", body), level=2)


def test_everything_is_escaped() -> None:
    nasty = '<script>alert(1)</script> & "<b>" *<i>*'
    html = section_html(Section('"><x', nasty, f'{nasty}\n\n   <pre> & """\n\nf(<x>)\n\n   Does <it>.'), level=2)
    ET.fromstring(html)
    assert "<script" not in html
    assert "<code>&lt;b&gt;</code>" in html
    assert "<em>&lt;i&gt;</em>" in html
    assert "<pre><code>&lt;pre&gt; &amp; &quot;&quot;&quot;</code></pre>" in html
    assert 'id="topic----x"' in html


def test_what_xml_cannot_hold_is_replaced() -> None:
    assert text("a\x00b\x1b\ufffe") == "a\ufffdb\ufffd\ufffd"


def test_titles() -> None:
    section = Section("if", 'The "if" statement', "")
    assert title_text(section) == "The if statement"
    assert title_html(section) == "The <code>if</code> statement"
    assert section_id(section) == "topic-if"


def test_headings_go_down_to_the_sixth() -> None:
    html = html_of('A\n=\n\nB\n-\n\nC\n~\n\nD\n^\n\nE\n"\n')
    assert [f"<h{level}>" in html for level in range(1, 8)] == [False, True, True, True, True, True, False]


def test_footnotes_are_linked_both_ways_and_numbered_from_one() -> None:
    html = html_of("Once [4], twice [4], never [9].\n\n-[ Footnotes ]-\n\n[4] So.\n\n[5] Uncited.")
    root = ET.fromstring(html)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    targets = [element.get("href", "")[1:] for element in root.iter("a")]
    assert len(ids) == len(set(ids))
    assert set(targets) <= set(ids)
    assert html.count("<sup>") == 2
    assert "[9]" not in html
    assert "never." in html
    assert html.count("back</a>") == 1


def test_lists_tables_asides_and_entries() -> None:
    html = html_of(
        "3. three\n4. four\n\nII. two\n\nWarning:\n\n  Hot.\n\nf(x=- 1)\n\n   Works.\n\ng()\n\n   Too.\n\n"
        "   +---+\n   | a |\n   |===|\n   | b |\n   +---+\n\nNew in version 3.2: Much."
    )
    assert '<ol start="3">' in html
    assert '<ol type="I" start="2">' in html
    assert '<aside class="warning">' in html
    assert html.count("<dl>") == 1
    assert "f(x=-1)" in html
    assert "<th>a</th>" in html
    assert '<p class="version"><em>New in version 3.2:</em> Much.</p>' in html


def test_escapes_with_a_variable_part() -> None:
    assert r"<code>\x<em>hh</em></code>" in html_of(r'The "\x*hh*" escape.')


@pytest.mark.parametrize("spec", chapter_plan(), ids=lambda spec: spec.title)
def test_every_chapter_is_well_formed_with_no_mark_left(spec: ChapterSpec) -> None:
    chapter = collect(spec)
    root = ET.fromstring(chapter_html(chapter, level=1))
    for code in [*root.iter("pre"), *root.iter("code")]:
        code.clear()
    prose = " ".join(root.itertext())
    for mark in ("`", "**", "-[", "+--", "====", "::="):
        assert mark not in prose


def test_an_empty_chapter_is_well_formed() -> None:
    ET.fromstring(chapter_html(Chapter(1, "Void", ()), level=1))
