"""The main job on real input, as `make demo` runs it, on both stores; and that it leaves nothing behind, however it ends."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from demo.conftest import Demo
from outlast.demo.book import check_epub
from servers.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]

README = Path(__file__).parents[2] / "README.md"
SAID = (
    "was killed when its answer was there, before it had read any of it.",
    "202, Idempotency-Replayed: true.",
    "The two requests made one job, ",
    "Its page: http://127.0.0.1:",
    "A stranger who knows its id is told 404",
    "Worker 1 was killed in the middle.",
    "The API was killed too.",
    "Worker 2 took over without it",
    "The API is back",
    "The book can be opened.",
    "The job is completed: succeeded.",
    "ended with worker_lost",
    "no stored step ran twice",
    "The cover failed once, and that did not matter",
    "The EPUB was checked: 19 chapters",
)

Start = Callable[..., Demo]


def shown_in_the_readme() -> list[str]:
    """How each line of the demo begins there; what follows has numbers of its own in each run."""
    lines = re.findall(r"^ {7,}\d+\.\d s  (.*)$", README.read_text("utf-8"), re.MULTILINE)
    assert len(lines) > 10
    return [" ".join(line.split()[:3]) for line in lines]


def check(ran: Demo, folder: Path) -> None:
    for sentence in (*SAID, *shown_in_the_readme()):
        assert sentence in ran.said
    assert check_epub(folder / "book.epub").chapters == 19
    assert (folder / "book.html").stat().st_size > 100_000
    assert (folder / "index.html").exists()
    assert (folder / "cover.png").exists()


def get(address: str, path: str, who: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=15)
    connection.request("GET", path, headers={"Authorization": f"Bearer dev:{who}"})
    response = connection.getresponse()
    try:
        return response.status, response.read()
    finally:
        connection.close()


def test_the_demo_on_a_file_and_again_in_the_same_folder(demo: Start, folder: Path) -> None:
    for _ in range(2):
        ran = demo()
        assert ran.ended() == 0, ran.said + ran.complaint
        check(ran, folder)
        assert ran.complaint == ""
        assert not ran.leaves_something


def test_the_demo_on_postgresql(demo: Start, folder: Path, postgres_server: PostgresServer) -> None:
    postgres_server.create_database("demo")
    ran = demo("--store", postgres_server.dsn("demo"))
    assert ran.ended() == 0, ran.said + ran.complaint
    check(ran, folder)
    assert not ran.leaves_something


@pytest.mark.parametrize(
    ("options", "env", "number"), [((), {"KEEP": "1"}, signal.SIGTERM), (("--keep",), {}, signal.SIGINT)], ids=["KEEP=1", "--keep"]
)
def test_what_is_kept_goes_on_until_a_signal(
    demo: Start, folder: Path, options: tuple[str, ...], env: dict[str, str], number: signal.Signals
) -> None:
    ran = demo(*options, **env)
    ran.until("The job is completed")
    address = urlsplit(ran.until("http://127.0.0.1:").strip())
    assert get(address.netloc, address.path, "demo:reader")[0] == 200
    status, body = get(address.netloc, f"/v1{address.path}", "demo:reader")
    assert (status, json.loads(body)["state"]) == (200, "completed")
    assert get(address.netloc, f"/v1{address.path}", "demo:stranger")[0] == 404
    assert ran.leaves_something
    ran.signal(number)
    assert ran.ended() == 0, ran.complaint
    assert ran.said.rstrip().endswith(address.geturl())
    check(ran, folder)
    assert not ran.leaves_something


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_demo_that_is_stopped_on_its_way_ends_what_it_started(demo: Start, number: signal.Signals) -> None:
    ran = demo()
    ran.until("Worker 1 (outlast worker, pid ")
    ran.signal(number)
    assert ran.ended() == -number
    assert ran.complaint == ""
    assert not ran.leaves_something


def test_a_demo_that_fails_says_why_and_ends_what_it_started(demo: Start, folder: Path) -> None:
    (folder / "chapters.jsonl").mkdir()  # no chapter can be noted, so that no worker gets anywhere
    ran = demo("--keep")
    assert ran.ended() == 1
    assert "The demo failed: the job asks its owner" in ran.complaint
    assert "Traceback" not in ran.complaint
    assert not ran.leaves_something


def test_an_unreachable_store_is_said_in_words(demo: Start) -> None:
    ran = demo("--store", "postgresql://nobody@127.0.0.1:1/none")
    assert ran.ended() == 1
    assert "cannot be reached" in ran.complaint
    assert "Traceback" not in ran.complaint


@pytest.mark.parametrize(("module", "name"), [("uvicorn", "uvicorn"), ("PIL", "Pillow"), ("starlette", "Starlette"), ("jinja2", "Jinja2")])
def test_what_is_not_installed_is_said_in_one_line(folder: Path, module: str, name: str) -> None:
    without = f"import sys; sys.modules[{module!r}] = None; sys.argv = ['outlast', 'demo', '--folder', {str(folder)!r}]"
    command = [sys.executable, "-c", f"{without}; from outlast.cli.main import main; main()"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 2
    assert ran.stderr == f"error: The demo needs {name}: pip install 'outlast[demo,web]' uvicorn (extra_missing)\n"
    assert ran.stdout == ""
    assert list(folder.iterdir()) == []
