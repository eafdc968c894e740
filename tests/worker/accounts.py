"""The host's own table, in the store's database, and what its tasks do with it."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass
from typing import Any

import psycopg

from outlast import JobView, Outlast, Principal

ANN = Principal("acme", "ann")
TABLE = "create table account (name varchar(50) primary key, credits integer not null)"


@dataclass
class Grant:
    """So many credits for an account."""

    account: str
    credits: int = 1


@dataclass
class Bank:
    """The host's own table, in the store's database."""

    url: str

    def do(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        if self.url.startswith("sqlite"):
            connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=20)
            try:
                rows = connection.execute(sql, params).fetchall()
                connection.commit()
                return rows
            finally:
                connection.close()
        with psycopg.connect(self.url) as pg:
            cursor = pg.execute(sql.replace("?", "%s"), params)
            return cursor.fetchall() if cursor.description else []

    @property
    def credits(self) -> dict[str, int]:
        return dict(self.do("select name, credits from account"))  # type: ignore[arg-type]


async def done(jobs: Outlast, job_id: str) -> JobView:
    return await jobs.wait(job_id, principal=ANN, timeout=15)


async def attention(jobs: Outlast, job_id: str) -> JobView:
    async with asyncio.timeout(15):
        while True:
            job = await jobs.get(job_id, principal=ANN)
            if job.state == "needs_attention":
                return job
            await asyncio.sleep(0.02)


def alchemy_url(url: str, *, asynchronous: bool, driver: str = "psycopg") -> str:
    if url.startswith("sqlite"):
        return url.replace("sqlite://", "sqlite+aiosqlite://") if asynchronous else url
    return url.replace("postgresql://", f"postgresql+{driver}://")
