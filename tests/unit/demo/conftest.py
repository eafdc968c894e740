"""A book small enough to read, with one of everything that the makers of books must get right."""

from __future__ import annotations

import pytest

from outlast.demo.book import Chapter, Section, chapter_plan, collect

SHORT = """\
A "while" loop runs *often* & <ends> [1].

   while_stmt ::= "while" expression ":" suite
            ["else" ":" suite]

* first "a < b"
* second

Note:

  Mind the **gap**.

-[ Footnotes ]-

[1] Or never, see "break".
"""


@pytest.fixture(scope="session")
def reference_book() -> tuple[Chapter, ...]:
    """The whole book, as the Python that runs has it."""
    return tuple(collect(spec) for spec in chapter_plan())


@pytest.fixture
def chapters() -> tuple[Chapter, ...]:
    return (
        Chapter(1, "Loops & More", (Section("while", 'The "while" statement', SHORT),)),
        Chapter(2, "Names", (Section("naming", "Naming", "Names refer to objects.\n"),)),
    )
