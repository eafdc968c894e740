from __future__ import annotations

import pytest

from outlast.demo.markup import (
    Aside,
    Block,
    Entry,
    Heading,
    Items,
    Literal,
    Note,
    Paragraph,
    Quote,
    Table,
    joined,
    parse,
)
from outlast.demo.topics import Chapter


def only(text: str) -> Block:
    (block,) = parse(text)
    return block


def test_titles_by_their_underline() -> None:
    assert parse("One\n===\n\nTwo\n---\n\nThree\n~~~~~") == (Heading(1, "One"), Heading(2, "Two"), Heading(3, "Three"))


def test_paragraphs_are_unwrapped_and_broken_words_joined() -> None:
    assert only("a built-\nin word and left-\nor right-hand\nones") == Paragraph("a built-in word and left- or right-hand ones")
    assert joined([]) == ""


@pytest.mark.parametrize(
    "code",
    ["if x:\n    print(x)\n\nelse:\n    pass", ">>> 1 + 1\n2", "First, second = 1, 2", "Foo(bar)", "(yield <expr>)"],
)
def test_indented_code_is_kept_line_by_line(code: str) -> None:
    indented = "\n".join(f"   {line}" if line else "" for line in code.split("\n"))
    assert parse(f"It is equivalent to\n\n{indented}\n\nor so.") == (
        Paragraph("It is equivalent to"),
        Literal(code),
        Paragraph("or so."),
    )


def test_a_session_at_the_margin_is_code() -> None:
    assert parse(">>> 1\n1\n\nProse.") == (Literal(">>> 1\n1"), Paragraph("Prose."))


def test_indented_prose_is_a_quote() -> None:
    assert only("   Readability counts, as they say.") == Quote((Paragraph("Readability counts, as they say."),))


def test_grammar_is_aligned() -> None:
    assert only('   a_rule ::= one\n      | two\n        three\n   b      ::= "x"') == Literal(
        'a_rule ::= one\n           | two\n             three\nb      ::= "x"'
    )


def test_lists_nest_and_go_on() -> None:
    assert only("* one\n  more\n\n* two:\n\n  1. deep\n  2. deeper\n* three") == Items(
        "*",
        (
            (Paragraph("one more"),),
            (Paragraph("two:"), Items("1", ((Paragraph("deep"),), (Paragraph("deeper"),)))),
            (Paragraph("three"),),
        ),
    )
    assert only("II. two") == Items("II", ((Paragraph("two"),),))


def test_a_number_that_opens_a_wrapped_paragraph_is_no_list() -> None:
    assert only("I. The equivalent is\ncalled.") == Paragraph("I. The equivalent is called.")


def test_terms_and_signatures() -> None:
    assert only("Strings\n   Text it is.") == Entry(("Strings",), is_code=False, body=(Paragraph("Text it is."),))
    assert only("a.b(c)\na.d(*, e=1) -> int\n\n   Does it.\n\n      code(1)") == Entry(
        ("a.b(c)", "a.d(*, e=1) -> int"), is_code=True, body=(Paragraph("Does it."), Literal("code(1)"))
    )
    assert only("d[key] = value\n\n   Set it to *value*.") == Entry(
        ("d[key] = value",), is_code=True, body=(Paragraph("Set it to *value*."),)
    )
    assert only("f(x)") == Entry(("f(x)",), is_code=True, body=())


def test_asides_with_the_text_below_or_beside() -> None:
    assert only("Note:\n\n  Mind it.") == Aside("Note", (Paragraph("Mind it."),))
    assert only("See also: the\nother one.") == Aside("See also", (Paragraph("the other one."),))


def test_tables() -> None:
    drawn = """\
+------+-----------+
| Sign | Meaning   |
|======|===========|
| "+"  | plus, or  |
|      | more      |
+------+-----------+
| "-"  | minus     |
|      |           |
|      | or less   |
+------+-----------+"""
    assert only(drawn) == Table(
        head=((("Sign",), ("Meaning",)),),
        rows=((('"+"',), ("plus, or more",)), (('"-"',), ("minus", "or less"))),
    )


def test_footnotes_and_rules() -> None:
    text = "=" * 70 + "\n\n-[ Footnotes ]-\n\n[1] One\n    more.\n\n[2] Two."
    assert parse(text) == (Note("1", (Paragraph("One more."),)), Note("2", (Paragraph("Two."),)))


def test_nothing_gives_nothing() -> None:
    assert parse("") == ()
    assert parse("\n  \n") == ()


def test_the_reference_is_read_whole(reference_book: tuple[Chapter, ...]) -> None:
    """No word is lost on the way, in whatever version of the reference this Python carries."""
    for chapter in reference_book:
        for section in chapter.sections:
            read = str(parse(section.text))
            lost = {word for word in section.text.split() if word.isalpha() and word not in read} - {"Footnotes"}
            assert not lost, section.name
