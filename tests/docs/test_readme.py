"""What the README shows is run, and the files and commands that it names are there."""

from __future__ import annotations

import asyncio
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from click import Context
from starlette.types import ASGIApp

from outlast import Outlast, Principal
from outlast.cli.main import commands
from outlast.store.open import migrate, open_store
from outlast.worker.runtime import Exit, Options, Worker

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_example_is_short_enough_to_be_read() -> None:
    example, _ = python_blocks()
    code = [line for line in example.splitlines() if line.strip() and not line.lstrip().startswith(("#", "from", "import", "@"))]
    assert len(code) <= 22


async def test_the_example_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    example, web = python_blocks()
    shop = types.ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", shop)
    exec(compile(example, "shop.py", "exec"), vars(shop))  # noqa: S102 - the README's own text
    jobs: Outlast = shop.jobs
    migrate(jobs.url)
    who = Principal("acme", "ann")
    first, again = shop.create("2026-11", "ann"), shop.create("2026-11", "ann")
    assert first == again
    hosted = types.ModuleType("web")
    exec(compile(web, "web.py", "exec"), vars(hosted))  # noqa: S102 - the README's own text
    assert await status_of(hosted.app, f"/jobs/v1/jobs/{first.rpartition('/')[2]}", b"ann") == 200
    assert await status_of(hosted.app, f"/jobs/v1/jobs/{first.rpartition('/')[2]}", b"bob") == 404
    assert await status_of(hosted.app, "/jobs/", b"ann") == 200
    store = open_store(jobs.url, worker=True)
    worker = Worker(store, jobs.registry, jobs.settings, Options(lease=5))

    async def follow() -> None:
        job = await jobs.wait(first.rpartition("/")[2], principal=who, timeout=15)
        assert (job.state, job.outcome) == ("completed", "succeeded")
        assert await jobs.result(job.id, principal=who) == "2026-11: sold 3 chairs\n2026-11: sold 1 table"
        assert await jobs.result(job.id, shop.count_words, principal=who) == 8
        worker.stop()

    (ended, _) = await asyncio.gather(worker.run(), follow())
    assert ended is Exit.CLEAN
    await store.close()
    await jobs.close()


async def status_of(app: ASGIApp, path: str, user: bytes) -> int:
    found: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])

    headers = [(b"host", b"testserver"), (b"x-user", user)]
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
    }
    await app({**scope, "server": ("testserver", 80), "root_path": ""}, receive, send)
    return found[0]


def test_linked_files_exist() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_named_commands_exist() -> None:
    known = commands.list_commands(Context(commands))
    for name in set(re.findall(r"`outlast ([a-z]+)", README)):
        assert name in known, name


def test_the_two_commands_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("demo", "test", "check", "setup", "bench"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
        assert target not in ("demo", "test") or f"make {target}" in README
