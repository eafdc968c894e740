"""The main job on real input, as `make demo` runs it, on both stores."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from outlast.demo.book import check_epub
from servers.postgres import PostgresServer

SAID = (
    "A client submitted the book and was killed before it read the answer.",
    "it is the same job",
    "was killed in the middle",
    "The book can be opened.",
    "The job is completed: succeeded.",
    "ended with worker_lost",
    "no stored step ran twice",
    "The cover failed once, and that did not matter",
    "The EPUB was checked: 19 chapters",
)


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "outlast", "demo", "--folder", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


def check(ran: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for sentence in SAID:
        assert sentence in ran.stdout
    report = check_epub(folder / "book.epub")
    assert report.chapters == 19
    assert (folder / "book.html").stat().st_size > 100_000
    assert (folder / "index.html").exists()
    assert (folder / "cover.png").exists()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_demo_on_a_file(tmp_path: Path) -> None:
    check(run(tmp_path), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_demo_on_postgresql(tmp_path: Path, postgres_server: PostgresServer) -> None:
    postgres_server.create_database("demo")
    check(run(tmp_path, "--store", postgres_server.dsn("demo")), tmp_path)


def test_an_unreachable_store_is_said_in_words(tmp_path: Path) -> None:
    ran = run(tmp_path, "--store", "postgresql://nobody@127.0.0.1:1/none")
    assert ran.returncode != 0
    assert "cannot be reached" in ran.stderr
    assert "Traceback" not in ran.stderr
