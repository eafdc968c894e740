"""The demo's application: one kind of job that makes a book.

The chapters are collected in steps, one each, so that a worker that takes over goes on where the last one died; the book is
usable as soon as it is written; the index and the cover come after, and the cover may fail.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from outlast.app import Outlast
from outlast.demo import ledger
from outlast.demo.book import (
    Chapter,
    ChapterSpec,
    Edition,
    chapter_plan,
    collect,
    draw_cover,
    index_words,
    words,
    write_epub,
    write_html,
    write_index,
    write_whole,
)
from outlast.domain.failures import Permanent, Retry
from outlast.domain.kinds import Plan
from outlast.domain.retry import RetryPolicy
from outlast.worker.completion import Completion
from outlast.worker.context import Context, SyncContext

EDITION = Edition()

app = Outlast(os.environ.get("OUTLAST_STORE", "sqlite:///outlast-demo.db"))


@dataclass(frozen=True)
class Book:
    """What is asked for: the folder that the book goes to, and how long a chapter takes at least, in seconds."""

    folder: str
    pace: float = 0.0


@dataclass(frozen=True)
class Files:
    """What was written: paths, and the number of words."""

    epub: str
    html: str
    words: int


@app.task(max_attempts=5, retry=RetryPolicy(base=0.2, cap=1.0))
async def collect_topics(ctx: Context, book: Book) -> list[Chapter]:
    """The text of all chapters; each is stored when it is there, and never made again."""
    chapters: list[Chapter] = []
    specs = chapter_plan()
    for spec in specs:
        ctx.check()
        chapters.append(await ctx.step(f"chapter {spec.number}", _gather, spec, book, ctx.job_id, ctx.fence))
        ctx.progress(f"{spec.number} of {len(specs)} chapters")
    return chapters


async def _gather(spec: ChapterSpec, book: Book, job_id: str, fence: int) -> Chapter:
    await asyncio.sleep(book.pace)
    chapter = collect(spec)
    ledger.note(Path(book.folder), job_id, spec.number, fence)
    return chapter


@app.task(retry=RetryPolicy(base=0.2, cap=1.0))
def write_book(ctx: SyncContext, book: Book) -> Completion[Files]:
    """The book on disk, as EPUB and as one HTML page. Both appear whole or not at all, so that a second try does no harm."""
    chapters = ctx.output(collect_topics)
    folder = Path(book.folder)
    epub, html = folder / "book.epub", folder / "book.html"
    write_epub(chapters, epub, edition=EDITION)
    ctx.check()
    write_html(chapters, html, edition=EDITION)
    count = sum(words(section.text) for chapter in chapters for section in chapter.sections)
    return ctx.complete(Files(str(epub), str(html), count)).at(epub.resolve().as_uri())


@app.task(retry=RetryPolicy(base=0.2, cap=1.0))
def index_the_words(ctx: SyncContext, book: Book) -> int:
    """An index page beside the book; the number of its entries."""
    entries = index_words(ctx.output(collect_topics))
    write_index(entries, Path(book.folder) / "index.html")
    return len(entries)


@app.task(max_attempts=3, retry=RetryPolicy(base=0.2, cap=1.0))
def draw_the_cover(ctx: SyncContext, book: Book) -> str:
    """A picture, which the book can do without. It fails once on purpose."""
    if ctx.attempt == 1:
        raise Retry("printer_jam", "The printer jammed.")
    try:
        picture = draw_cover(EDITION.title, EDITION.subtitle)
    except ImportError as error:
        raise Permanent("pillow_missing", "Drawing needs Pillow: pip install 'outlast[demo]'.") from error
    path = Path(book.folder) / "cover.png"
    write_whole(path, picture)
    return str(path)


@app.kind(
    "book",
    label="The Python language reference as a book",
    promise=(20, 30),
    success="The book can be opened as EPUB and as one web page.",
    cancel_note="What has been written to the folder stays there.",
)
def make_book(plan: Plan[Book], _input: Book) -> None:
    """Collect, write, and then what the book can do without."""
    topics = plan.task(collect_topics, label="Collect the topics")
    book = plan.task(write_book, label="Write the book", after=[topics], usable=True)
    plan.task(index_the_words, label="Index the words", after=[topics, book])
    plan.task(draw_the_cover, label="Draw the cover", after=[book], optional=True)
