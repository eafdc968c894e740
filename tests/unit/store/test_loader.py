"""The SQL's loader, and what holds for every statement of both dialects."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

import outlast
from outlast.store import loader, programs
from outlast.store.loader import blocks, expand, load, read
from outlast.store.migrate import Migration
from outlast.store.postgres import dialect as postgres
from outlast.store.sqlite import dialect as sqlite
from outlast.store.sqlite import subprograms

SOURCE = Path(outlast.__file__).parent
DIALECTS = {"sqlite": sqlite.statements(), "postgresql": postgres.statements("outlast")}
dialects = pytest.mark.parametrize("dialect", DIALECTS)


def table(name: str) -> str:
    return f"t_{name}"


def test_blocks_begin_with_their_name_and_lose_their_comments() -> None:
    text = "-- about the file\n-- name: one\n-- guard\nselect 1 -- why\nfrom x;\n\n-- name: two_2\ndelete from y\n"
    assert blocks(text) == {"one": "select 1 \nfrom x", "two_2": "delete from y"}
    assert blocks("-- nothing here\n") == {}


def test_a_block_twice_in_one_file_is_an_error() -> None:
    with pytest.raises(ValueError, match="one stands twice"):
        blocks("-- name: one\nselect 1\n-- name: one\nselect 2\n")


def test_tokens_are_replaced_from_the_inside_out() -> None:
    tokens: Mapping[str, loader.Token] = {"now": "clock()", "ms": lambda x: f"ms({x})", "sum": lambda x: " + ".join(x.split("|"))}
    assert expand("select {now}, {ms:{now}}, {sum:a|{ms:b}}", tokens, table) == "select clock(), ms(clock()), a + ms(b)"
    assert expand("from {outlast.job} using {index.job_owner}", tokens, table) == "from t_job using outlast_job_owner"
    assert expand("a token of a token: {outer}", {"outer": "{now}", **tokens}, table) == "a token of a token: clock()"


@pytest.mark.parametrize("text", ["{nothing}", "{nothing:x}", "select {ms:{nothing}}"])
def test_an_unknown_token_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"unknown token \{nothing\}"):
        expand(text, {"ms": lambda x: x}, table)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "some_package"
    (folder / "sql").mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder / "sql"
    import sys  # noqa: PLC0415

    sys.modules.pop("some_package", None)


def test_a_block_in_two_files_is_an_error(package: Path) -> None:
    (package / "a.sql").write_text("-- name: one\nselect 1")
    (package / "readme.txt").write_text("-- name: one\nno SQL")
    assert read("some_package", "sql") == {"one": "select 1"}
    (package / "b.sql").write_text("-- name: one\nselect 2")
    with pytest.raises(ValueError, match="one stands in two files"):
        read("some_package", "sql")


def test_an_override_stands_in_place_of_the_shared_block() -> None:
    tokens = sqlite.tokens()
    shared = load({}, tokens, table)
    changed = load({"clock": "select {now_ms} + 1"}, tokens, table)
    assert {name for name in shared if shared[name] != changed[name]} == {"clock"}
    assert changed["clock"].endswith(" + 1")


@dialects
def test_every_statement_is_complete(dialect: str) -> None:
    for name, sql in DIALECTS[dialect].items():
        assert not re.search(r"[{}]", sql), f"{name} has a token left"
        assert ";" not in sql, f"{name} is more than one statement"
        assert re.match(r"\s*(select|insert|update|delete|with)\b", sql) or name == "whereabouts", f"{name} begins unlike a statement"


def test_a_statement_of_both_dialects_takes_the_same_parameters() -> None:
    """Where SQLite has SQL of its own for a name, or the shared text, no parameter is missing or left over."""
    for name in DIALECTS["sqlite"].keys() & DIALECTS["postgresql"].keys():
        lite = set(re.findall(r"(?<![:\w]):([a-z_]\w*)", DIALECTS["sqlite"][name]))
        assert lite == set(re.findall(r"%\((\w+)\)s", DIALECTS["postgresql"][name])), name


def named(module: ModuleType) -> set[str]:
    """The statements that a module's text names: in `Statement("...")`, or in the choice of a name."""
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Statement"):
            continue
        name = node.args[0]
        if isinstance(name, ast.Constant):
            found.add(name.value)
        else:
            assert isinstance(name, ast.Name)
            found |= {c.value for a in ast.walk(tree) if chooses(a, name.id) for c in ast.walk(a.value) if is_text(c)}  # type: ignore[attr-defined]
    return found


def chooses(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def program_modules() -> list[ModuleType]:
    import importlib  # noqa: PLC0415
    import pkgutil  # noqa: PLC0415

    return [importlib.import_module(f"{programs.__name__}.{m.name}") for m in pkgutil.iter_modules(programs.__path__)]


def test_every_statement_of_a_program_exists_in_both_dialects() -> None:
    wanted = set().union(*(named(module) for module in program_modules()))
    assert len(wanted) > 40
    assert wanted - DIALECTS["postgresql"].keys() == set()
    assert wanted - DIALECTS["sqlite"].keys() - subprograms.SUBPROGRAMS.keys() == set()


def test_every_statement_of_a_subprogram_exists_on_sqlite() -> None:
    wanted = named(subprograms)
    assert wanted - DIALECTS["sqlite"].keys() == set()
    assert wanted & subprograms.SUBPROGRAMS.keys() == set(), "a sub-program does not stand for itself"


def test_no_statement_is_there_for_nothing() -> None:
    used = set().union(*(named(module) for module in program_modules())) | named(subprograms)
    for dialect, statements in DIALECTS.items():
        assert statements.keys() - used - subprograms.SUBPROGRAMS.keys() == set(), dialect


def test_rows_are_locked_for_no_key_update_only() -> None:
    for name, sql in DIALECTS["postgresql"].items():
        assert not re.search(r"\bfor (update|share|key share)\b", sql), name
    for name, sql in DIALECTS["sqlite"].items():
        assert not re.search(r"\bfor no key|skip locked", sql), name


def test_the_clock_is_the_one_that_is_given() -> None:
    """No statement reads another one: a test that holds the clock holds all of it."""
    clocks = re.compile(r"clock_timestamp|now\(\)|current_(date|time)|julianday|unixepoch|transaction_timestamp", re.IGNORECASE)
    for statements in (sqlite.statements("CLOCK"), postgres.statements("outlast", "CLOCK")):
        for name, sql in statements.items():
            assert not clocks.search(sql), name
    assert any("CLOCK" in sql for sql in sqlite.statements("CLOCK").values())


def test_parameters_are_written_as_psycopg_takes_them() -> None:
    sql = postgres.statements("outlast")["renew"]
    assert "%(tenants)s::text[]" in sql
    assert not re.search(r"(?<!:):[a-z]", sql), "a cast is no parameter, and every parameter is one of psycopg's"
    assert all(re.fullmatch(r"(?:[^%]|%%|%\(\w+\)s)*", text) for text in postgres.statements("outlast").values())


def test_tables_are_qualified() -> None:
    """In a caller's transaction the search path is the caller's."""
    ours = re.compile(r"\b(?:from|join|into|update|using)\s+(\"?[\w.\"]+)")
    known = {"job", "task", "queue_entry", "edge", "output", "attempt", "step", "attention", "submission", "queue", "job_input"}
    for name, sql in postgres.statements("some schema").items():
        for found in ours.findall(sql):
            assert found.strip('"') not in known, f"{name}: {found}"
    for name, sql in sqlite.statements().items():
        for found in ours.findall(sql):
            assert found.strip('"') not in known, f"{name}: {found}"


INDEX = re.compile(r"create (?:unique )?index \S+ on (\S+) \(([^)]*)\)(?: where (.*))?", re.DOTALL)


@pytest.mark.parametrize("migrations", [sqlite.schema_migrations(), postgres.schema_migrations("outlast")], ids=["sqlite", "postgresql"])
def test_no_index_names_what_a_hot_update_writes(migrations: tuple[Migration, ...]) -> None:
    forbidden = {
        "queue_entry": {"holder", "lease_until", "fence", "deadline_at", "revoked"},
        "job": {"finished_at", "purge_at", "state", "version", "open", "required_open", "problems"},
    }
    indexes = [m for migration in migrations for s in migration.statements if (m := INDEX.match(s))]
    assert len(indexes) > 5
    for index in indexes:
        name = index[1].rpartition(".")[2].removeprefix("outlast_")
        words = set(re.findall(r"\w+", f"{index[2]} {index[3] or ''}"))
        assert not words & forbidden.get(name, set()), index[0]


SQL = re.compile(
    r"\s*(select|insert into|update \S+ set|delete from|with \w+ as|create (table|index|schema)|drop|alter table)\b", re.IGNORECASE
)
# Each of these composes statements of its own identifiers, or of fixed names.
COMPOSERS = {
    "store/loader.py",
    "store/postgres/migrating.py",
    "store/postgres/session.py",
    "store/sqlite/migrating.py",
}


def test_statements_are_composed_nowhere_else() -> None:
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                first = node.values[0] if node.values else None
                if isinstance(first, ast.Constant) and SQL.match(str(first.value)):
                    found.add(path.relative_to(SOURCE).as_posix())
    assert found - COMPOSERS == set()
