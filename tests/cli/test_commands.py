"""The command line as a whole: help, exit codes and their documentation, what is imported when."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cli.conftest import Shell
from outlast.cli.exits import MEANINGS, Exit, exit_of
from outlast.cli.main import commands
from outlast.domain import errors
from outlast.domain.errors import OutlastError
from outlast.worker import runtime

DOCS = Path(__file__).parents[2] / "docs" / "commands.md"


def walk(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    """All commands with their names; a group too, where it does something by itself."""
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    found: list[tuple[tuple[str, ...], click.Command]] = [(path, command)] if command.invoke_without_command else []
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        found.extend(walk(child, (*path, name)))
    return found


def test_every_exit_code_has_a_meaning_in_the_help_and_in_the_documentation(shell: Shell) -> None:
    said, docs = shell.run("--help").stdout, DOCS.read_text()
    assert set(MEANINGS) == set(Exit)
    for code, meaning in MEANINGS.items():
        assert f"{code.value:>3}  {meaning}" in said
        assert f"| {code.value} | {meaning} |" in docs


def test_every_command_and_option_is_documented() -> None:
    docs = DOCS.read_text()
    for path, command in walk(commands):
        assert f"outlast {' '.join(path)}" in docs, path
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.opts[0] in docs, (path, parameter.opts)


def test_every_command_says_what_it_does(shell: Shell) -> None:
    for path, command in walk(commands):
        assert command.help, path
        assert shell.run(*path, "--help").stdout.startswith("Usage: ")


def test_what_reads_can_say_it_in_json() -> None:
    readers = {("jobs", "list"), ("jobs", "show"), ("queues",), ("doctor",), ("bench",), ("migrate",), ("verify",)}
    with_json = {path for path, command in walk(commands) if any("--json" in p.opts for p in command.params)}
    assert readers <= with_json


def test_each_error_has_an_exit_code_and_those_of_a_worker_agree() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, OutlastError)]
    assert len(kinds) > 10
    for kind in kinds:
        made = kind.__new__(kind)
        assert exit_of(made) not in (Exit.OK, Exit.ATTENTION, Exit.DEFECT)
    for code in runtime.Exit:
        assert Exit(int(code)) in MEANINGS


def test_an_unknown_command_is_wrong_usage(shell: Shell) -> None:
    assert "No such command 'wroker'" in shell.run("wroker", code=2).stderr


@pytest.mark.parametrize("command", [("jobs", "list"), ("queues",), ("migrate",), ("doctor",), ("verify",)])
def test_without_a_store_the_commands_say_how_to_name_one(shell: Shell, command: tuple[str, ...]) -> None:
    said = shell.run(*command, code=2, store=False).stderr
    assert "--store URL, or the environment variable OUTLAST_STORE" in said
    assert "sqlite:///jobs.db" in said


def test_a_url_of_another_kind_is_refused(shell: Shell) -> None:
    assert "Stores of the kind 'mysql' are not known" in shell.run("queues", "--store", "mysql://x/y", code=2).stderr


def test_a_url_that_cannot_be_read_is_refused_without_repeating_it(shell: Shell) -> None:
    for command in (("queues",), ("migrate",), ("doctor",), ("jobs", "list")):
        said = shell.run(*command, "--store", "postgresql://u:hunter2@h/x?nonsense=1", code=2).stderr
        assert "The PostgreSQL URL cannot be read" in said
        assert "hunter2" not in said


def test_a_store_that_does_not_answer_is_code_5_and_no_password_is_shown(shell: Shell) -> None:
    url = "postgresql://u:hunter2@127.0.0.1:1/x"
    said = shell.run("migrate", "--store", url, code=5)
    assert "error: The store cannot be reached." in said.stderr
    assert "hunter2" not in said.output


def test_a_file_that_is_no_store_is_code_5(shell: Shell) -> None:
    (shell.folder / "text.db").write_text("not a database, but long enough to look like one " * 50)
    said = shell.run("migrate", "--store", f"sqlite:///{shell.folder}/text.db", code=5).stderr
    assert "Check that it is a SQLite file" in said


def test_a_store_that_is_not_migrated_is_code_6_and_the_command_is_named(bare: Shell) -> None:
    assert "Run `outlast migrate --store URL`." in bare.run("jobs", "list", code=6).stderr


def test_it_runs_as_a_module_and_help_imports_neither_worker_nor_drivers() -> None:
    code = (
        "import sys, json\nfrom outlast.cli.main import main\nsys.argv = ['outlast', '--help']\n"
        "try: main()\nexcept SystemExit as e: print(json.dumps([e.code, sorted(sys.modules)]), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    status, modules = json.loads(ran.stderr)
    assert status == 0
    assert not {"psycopg", "apsw", "outlast.worker.runtime", "outlast.cli.measure"} & set(modules)
    version = subprocess.run([sys.executable, "-m", "outlast", "--version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith("outlast, version ")


def test_an_error_of_ours_is_code_70_with_its_traceback() -> None:
    code = (
        "import sys\nimport outlast.cli.queues as q\n"
        "def broken(**_): raise ZeroDivisionError\n"
        "q.command.callback = broken\nsys.argv = ['outlast', 'queues']\nfrom outlast.cli.main import main\nmain()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == Exit.DEFECT
    assert "ZeroDivisionError" in ran.stderr


def test_an_interrupt_from_the_keyboard_is_code_130(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("outlast.cli.queues.at_store", interrupted)
    shell.run("queues", code=130)
