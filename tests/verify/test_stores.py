"""What `outlast verify` does about the store as a whole: it writes nothing, sees one moment, and says why it cannot read."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from contract.backends import Backend, PostgresBackend, SqliteBackend
from outlast.cli.main import commands
from outlast.domain.errors import StoreUnavailable
from outlast.store.open import migrate, snapshot
from outlast.store.program import Statement
from outlast.store.programs import verify as programs
from outlast.store.programs.verify import BEGINNINGS, Report, verify
from outlast.store.sqlite.build import linked
from outlast.store.sqlite.raw import ERRORS, open_raw
from outlast.store.sqlite.snapshot import Snapshot
from servers.postgres import PostgresServer
from verify.conftest import Store

ON_SQLITE = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
ON_POSTGRES = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
IN_TURNS = not linked().wal_is_safe  # else files have the write-ahead log, and are read in one transaction
CANARY = "canary-of-a-payload"


def run(url: str, *more: str, code: int = 0) -> Result:
    """The command, with its exit code checked."""
    result = CliRunner().invoke(commands, ["verify", "--store", url, *more], env={"OUTLAST_STORE": None})
    assert result.exit_code == code, f"{result.exit_code}: {result.output} {result.exception!r}"
    return result


def report_of(url: str) -> Report:
    with snapshot(url, beginnings=BEGINNINGS) as moment:
        return moment.run(verify(limit=100))


@contextmanager
def spoilt(backend: Backend, change: str, back: str) -> Iterator[None]:
    """The store with something wrong in it, committed, and right again afterwards."""
    backend.query(change)
    try:
        yield
    finally:
        backend.query(back)


WRONG = ("update {outlast.job} set open = open + 1 where label = 'fresh'", "update {outlast.job} set open = open - 1 where label = 'fresh'")


# -- the command ----------------------------------------------------------------------------------------------


def test_a_sound_store_ends_with_0(store: Store) -> None:
    said = run(store.url).stdout.splitlines()
    assert said[0].startswith("store ")
    assert said[1:] == ["read 16 jobs, 31 tasks, 5 effects", "all is sound"]
    found = json.loads(run(store.url, "--json").stdout)
    assert found.pop("store")
    assert found == {"ok": True, "read": {"jobs": 16, "tasks": 31, "effects": 5}, "total": 0, "rules": [], "findings": []}


def test_findings_are_named_and_end_with_1(store: Store, backend: Backend) -> None:
    with spoilt(backend, *WRONG):
        found = json.loads(run(store.url, "--json", code=1).stdout)
        said = run(store.url, code=1).stdout
    (finding,) = found["findings"]
    assert (found["ok"], found["total"]) == (False, 1)
    assert found["rules"] == [{"rule": "D6", "name": "counters", "sentence": "A job's counters are those of its tasks.", "findings": 1}]
    assert finding.pop("job") in said
    assert finding == {
        "rule": "D6", "name": "counters", "tenant": "acme", "task": None, "found": "open is 3", "expected": "2 by its tasks",
    }  # fmt: skip
    assert "D6 counters: A job's counters are those of its tasks. (1 finding)\n" in said
    assert " of acme: open is 3; should be: 2 by its tasks\n" in said
    assert said.endswith("\n1 finding\n")


def test_what_is_not_shown_is_counted(store: Store, backend: Backend) -> None:
    with spoilt(backend, "update {outlast.job} set version = version + 100", "update {outlast.job} set version = version - 100"):
        found = json.loads(run(store.url, "--json", "--limit", "2", code=1).stdout)
        said = run(store.url, "--limit", "0", code=1).stdout
        with spoilt(backend, *WRONG):
            both = run(store.url, code=1).stdout
    assert (len(found["findings"]), found["total"]) == (2, 15), "of a job with a target the version says less"
    assert "counters: A job's counters are those of its tasks. (1 finding)\n    job" in both
    assert both.endswith("\n16 findings\n")
    assert said.endswith("(15 findings)\n15 more are not shown: --limit\n15 findings\n")


def test_a_report_has_no_payload(store: Store, backend: Backend) -> None:
    words = {
        "job_input": ("input", f'"{CANARY}"'),
        "output": ("body", f'"{CANARY}"'),
        "step": ("body", f'"{CANARY}"'),
        "attempt": ("detail", CANARY),
        "attention": ("message", CANARY),
        "effect": ("outcome", f'"{CANARY}"'),
        "submission": ("fingerprint", CANARY),
        "queue_entry": ("holder", CANARY),
        "task": ("state", CANARY),
    }
    with store.changed([f"update {{outlast.{table}}} set {column} = '{text}'" for table, (column, text) in words.items()]):
        report = store.verify(1_000)
    assert report.total > 50
    assert CANARY not in repr(report.findings)


# -- reading --------------------------------------------------------------------------------------------------


def test_small_pages_find_the_same(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    statements = ["update {outlast.job} set open = open + 1", "update {outlast.effect} set provider_key = name"]
    with store.changed(statements):
        whole = store.verify()
        for page, tasks, effects in ((1, 1, 1), (3, 2, 2), (11, 4, 4)):
            monkeypatch.setattr(programs, "PAGE", page)
            monkeypatch.setattr(programs, "_TASKS", tasks)
            monkeypatch.setattr(programs, "_EFFECTS", effects)
            assert store.verify() == whole
    assert (whole.jobs, whole.tasks, whole.effects, whole.total) == (16, 31, 5, 21)


def test_nothing_is_written(backend: Backend) -> None:
    if isinstance(backend, SqliteBackend):
        before = (
            hashlib.sha256(backend.path.read_bytes()).digest(),
            backend.path.stat().st_mtime_ns,
            sorted(backend.path.parent.iterdir()),
        )
        run(f"sqlite:///{backend.path}")
        assert before == (
            hashlib.sha256(backend.path.read_bytes()).digest(),
            backend.path.stat().st_mtime_ns,
            sorted(backend.path.parent.iterdir()),
        )
        return
    assert isinstance(backend, PostgresBackend)
    run(f"{backend.dsn}?options=-cdefault_transaction_read_only%3Don")


def test_the_connection_cannot_write(backend: Backend) -> None:
    url = f"sqlite:///{backend.path}" if isinstance(backend, SqliteBackend) else backend.dsn  # type: ignore[attr-defined]
    with pytest.raises(StoreUnavailable), snapshot(url, beginnings=()) as moment:
        moment.run(_writing())


def _writing() -> Any:
    yield Statement("bump_version", {"tenant": "acme", "job_id": "00000000-0000-7000-8000-000000000001"})


def test_what_is_changed_meanwhile_is_not_seen_in_part(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL and the write-ahead log show one moment. The rollback journal lets writers in before a page, never into one."""
    monkeypatch.setattr(programs, "PAGE", 3)
    url = f"sqlite:///{backend.path}" if isinstance(backend, SqliteBackend) else backend.dsn  # type: ignore[attr-defined]
    met: list[str] = []

    def between() -> Any:
        """The program, with a writer that tries to come in before each of its statements."""
        program = verify(limit=10)
        statement = next(program)
        while True:
            met.append(f"{statement.name} {_move(backend)}")
            try:
                statement = program.send((yield statement))
            except StopIteration as stop:
                return stop.value

    with snapshot(url, beginnings=BEGINNINGS) as moment:
        report = moment.run(between())
    assert report.total == 0
    if isinstance(backend, SqliteBackend):
        assert ("verify_tasks kept out" in met) == IN_TURNS
        return
    assert not any(one.endswith("kept out") for one in met)
    assert report_of(url).total == 1
    backend.query("update {outlast.job} set open = open % 100 where label = 'fresh'")
    assert report_of(url).total == 0


def _move(backend: Backend) -> str:
    """A change that breaks a rule; whether it came through."""
    if not isinstance(backend, SqliteBackend):
        backend.query("update {outlast.job} set open = open + 100 where label = 'fresh'")
        return "came in"
    with closing(open_raw(str(backend.path), linked())) as other:
        try:
            other.execute("update outlast_job set label = label where label = 'fresh'", ())
        except ERRORS:
            return "kept out"
    return "came in"


def test_writers_of_a_rollback_journal_come_in_between_two_pages(
    files: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shutil.copy(sqlite_template, files / "turns.db")
    execute, turns = Snapshot.execute, []

    def watched(self: Snapshot, sql: str, params: Any = ()) -> Any:
        found = execute(self, sql, params)
        if sql == "begin":
            with closing(open_raw(str(path), linked())) as writer:
                writer.execute("insert into outlast_queue (name) values (?)", (f"q{len(turns)}",))
            turns.append(sql)
        return found

    monkeypatch.setattr(Snapshot, "execute", watched)
    assert report_of(f"sqlite:///{path}").total == 0
    assert len(turns) == 1 + len(BEGINNINGS) * IN_TURNS


# -- stores that cannot be read -------------------------------------------------------------------------------


def _no_file(folder: Path) -> str:
    return f"sqlite:///{folder}/nothing.db"


def _no_database(folder: Path) -> str:
    (folder / "other.db").write_bytes(b"hello" * 1_000)
    return f"sqlite:///{folder}/other.db"


def _folder(folder: Path) -> str:
    return f"sqlite:///{folder}"


def _nobody_answers(_folder: Path) -> str:
    return "postgresql://u:hunter2@127.0.0.1:1/x"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (_no_file, "The store's file does not exist. Correct the path. (store_unavailable)"),
        (_no_database, "cannot be read. Check that it is a SQLite file, undamaged, and its permissions. (store_unavailable)"),
        (_folder, "The store's file does not exist."),
        (_nobody_answers, "The store cannot be reached, or the connection was lost. Check that it is running"),
    ],
)
def test_a_store_that_cannot_be_read_is_5(tmp_path: Path, made: Callable[[Path], str], said: str) -> None:
    result = run(made(tmp_path), code=5)
    assert said in result.stderr
    assert result.stdout == ""
    assert "hunter2" not in result.output
    assert not (tmp_path / "nothing.db").exists()


@ON_POSTGRES
def test_wrong_names_and_rights_on_a_server_are_5(backend: Backend) -> None:
    assert isinstance(backend, PostgresBackend)
    with psycopg.connect(backend.dsn, autocommit=True) as connection:
        connection.execute("drop role if exists verify_reader")
        connection.execute("create role verify_reader")
        reader = f"{backend.dsn}?options=-crole%3Dverify_reader"
        try:
            assert "it needs USAGE on the schema outlast, and SELECT on its tables" in run(reader, code=5).stderr
            connection.execute("grant usage on schema outlast to verify_reader")
            connection.execute("grant select on all tables in schema outlast to verify_reader")
            run(reader)
        finally:
            connection.execute("drop owned by verify_reader")
            connection.execute("drop role verify_reader")
    head, _, _ = backend.dsn.partition("?")
    assert "the name of the database" in run(f"{head}_that_is_not_there", code=5).stderr


def test_a_store_of_another_version_is_6(tmp_path: Path, postgres_server: PostgresServer) -> None:
    sqlite3.connect(tmp_path / "empty.db").execute("create table t (x)").connection.close()
    assert "The store is not migrated (missing: 0001_engine" in run(f"sqlite:///{tmp_path}/empty.db", code=6).stderr
    assert "The store is not migrated (missing: 0001_engine" in run(postgres_server.dsn(), code=6).stderr


def test_a_newer_store_is_6_unless_it_is_still_understood(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    migrate(url)
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as connection:
        connection.execute("insert into outlast_migration values (9001, 'later', 0, 'x', 0)")
        run(url)
        connection.execute("update outlast_migration set breaking = 1 where number = 9001")
        assert "migration 9001 (later), which this version of Outlast does not know" in run(url, code=6).stderr


def _copied(backend: SqliteBackend, path: Path) -> Path:
    with closing(open_raw(str(backend.path), linked())) as connection:
        connection.execute("vacuum into ?", (str(path),))
    return path


@ON_SQLITE
@pytest.mark.parametrize("many", [False, True])
def test_a_file_whose_index_lacks_a_row_is_found(backend: Backend, tmp_path: Path, many: bool) -> None:
    assert isinstance(backend, SqliteBackend)
    path = _copied(backend, tmp_path / "broken.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executemany(  # more than SQLite has messages, of which some builds have a wrong one for each
            "insert into outlast_quota_job select tenant, owner, kind, ? from outlast_quota_job limit 1",
            [(f"00000000-0000-7000-8000-{n:012}",) for n in range(150 * many)],
        )
        connection.execute("create table hosts (a text not null, b text not null, primary key (b)) without rowid")
        connection.execute("insert into hosts values ('a', 'b')")
        connection.execute("pragma writable_schema = on")
        changed = "update sqlite_master set sql = replace(sql, '(due_at)', '(fence)') where name = ?"
        connection.execute(changed, ("outlast_entry_due",))
    found = json.loads(run(f"sqlite:///{path}", "--json", "--limit", "500", code=1).stdout)
    of_file = [f for f in found["findings"] if f["rule"] == "I5"]
    assert (len(found["findings"]) - len(of_file), {f["job"] for f in of_file}) == (150 * many, {None})
    assert "missing from index outlast_entry_due" in of_file[0]["found"]
    assert not any("hosts" in f["found"] for f in of_file)
    assert "missing from index outlast_entry_due; should be: " in run(f"sqlite:///{path}", "--limit", "500", code=1).stdout


@ON_SQLITE
def test_a_file_that_a_dead_process_left_is_named_and_left_alone(backend: Backend, tmp_path: Path) -> None:
    assert isinstance(backend, SqliteBackend)
    source = _copied(backend, tmp_path / "source.db")
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = delete")
        connection.execute("pragma cache_size = 1")
        connection.execute("begin")
        connection.execute("create table filler (body text)")
        for _ in range(50):
            connection.execute("insert into filler values (?)", ("x" * 5_000,))
        connection.execute("update outlast_job set version = version + 1")
        for suffix in ("", "-journal"):
            shutil.copy(f"{source}{suffix}", f"{tmp_path}/left.db{suffix}")
    before = {path: path.read_bytes() for path in tmp_path.glob("left.db*")}
    assert len(before) == 2
    assert "A process died while it wrote to the file" in run(f"sqlite:///{tmp_path}/left.db", code=5).stderr
    assert {path: path.read_bytes() for path in tmp_path.glob("left.db*")} == before
    CliRunner().invoke(commands, ["queues", "--store", f"sqlite:///{tmp_path}/left.db"], catch_exceptions=False)
    run(f"sqlite:///{tmp_path}/left.db")
