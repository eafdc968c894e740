"""What docs/submitting.md shows is run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from outlast import Context, Outlast, Principal
from outlast.store.open import migrate

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "submitting.md").read_text("utf-8")


class Base(DeclarativeBase):
    pass


class Document(Base):
    __tablename__ = "document"
    id: Mapped[str] = mapped_column(primary_key=True)
    month: Mapped[str]


@dataclass
class Report:
    month: str


async def test_the_example_does_what_it_says(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    migrate(url)
    jobs = Outlast(url, base_url="/jobs")

    @jobs.task
    async def report(ctx: Context, report: Report) -> None: ...

    shop: dict[str, Any] = {"Document": Document, "Report": Report, "jobs": jobs, "report": report}
    exec(compile(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[0], "shop.py", "exec"), shop)  # noqa: S102 - the document's own text
    engine = create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:"))
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    ann = Principal("acme", "ann")
    async with AsyncSession(engine) as db:
        address = await shop["create"]("2026-11", db, ann)
        assert (await db.execute(select(Document.id))).scalars().all() == ["d-2026-11"]
    (job,) = (await jobs.list(principal=ann)).items
    assert address.endswith(job.id)
    await engine.dispose()
    await jobs.close()


def test_with_the_recipe_a_savepoint_takes_its_job_with_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    migrate(url)
    jobs = Outlast(url)

    @jobs.task
    async def report(ctx: Context, report: Report) -> None: ...

    shop: dict[str, Any] = {}
    exec(compile(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[1], "shop.py", "exec"), shop)  # noqa: S102 - the document's own text
    engine = create_engine(url)
    shop["begin_as_a_writer"](engine)
    ann = Principal("acme", "ann")
    with Session(engine) as db:
        with db.begin_nested():
            jobs.sync.submit(report, Report("gone"), owner=ann, transaction=db)
        db.rollback()
        assert jobs.sync.list(principal=ann).items == ()
        inner = db.begin_nested()
        jobs.sync.submit(report, Report("gone too"), owner=ann, transaction=db)
        inner.rollback()
        jobs.sync.submit(report, Report("there"), owner=ann, transaction=db)
        db.commit()
    assert len(jobs.sync.list(principal=ann).items) == 1
    engine.dispose()
    jobs.sync.close()
