"""TARGET: what a person reads who names it wrongly, or whose module fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.conftest import Shell
from outlast import Invalid


def refusal(shell: Shell, target: str) -> str:
    return shell.run("jobs", "submit", target, "order", "--input", "-", "--as", "a:b", stdin="{}", code=2).stderr


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("shop", "'shop' is no target. TARGET is written module:attribute, for example shop.jobs:app. (target)"),
        (":jobs", "is no target"),
        ("shop:", "is no target"),
        ("shop.py:jobs", "a module is named with dots and without .py: shop:jobs."),
        ("./shop.py:jobs", "without .py: shop:jobs."),
        ("shop:nothing", "The module shop has no attribute 'nothing'. It has shop:jobs."),
        ("shop:not_jobs", "shop:not_jobs is an int, not an Outlast. It has shop:jobs."),
        ("shop:pack", "shop:pack is a Task, not an Outlast."),
        ("json:dumps", "json:dumps is a function, not an Outlast. That module makes no Outlast"),
    ],
)
def test_a_wrong_target_is_explained(shell: Shell, target: str, words: str) -> None:
    assert words in refusal(shell, target)


def test_a_module_that_is_not_there_names_the_folder(shell: Shell) -> None:
    said = refusal(shell, "shoop:jobs")
    assert "There is no module 'shoop'" in said
    assert str(shell.folder) in said
    assert "PYTHONPATH" in said


def test_a_package_that_the_module_imports_is_not_taken_for_the_module(shell: Shell) -> None:
    (shell.folder / "needy.py").write_text("import surely_not_installed\n")
    assert "It imports 'surely_not_installed', which is not installed here." in refusal(shell, "needy:jobs")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("password = 'hunter2'\nraise ValueError(password)", "ValueError"),
        ("import sys\nsys.exit('hunter2')", "SystemExit"),
        ("x = = 'hunter2'", "SyntaxError"),
    ],
)
def test_a_module_that_fails_is_named_with_the_exception_and_the_place_but_not_its_text(shell: Shell, code: str, kind: str) -> None:
    (shell.folder / "failing.py").write_text(code)
    said = refusal(shell, "failing:jobs")
    assert f"failed while it was imported: {kind} in " in said
    assert "failing.py, line" in said
    assert "python -c 'import failing'" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("@jobs.task(limit=Limit('mail', 0))\ndef t(ctx: SyncContext) -> None: ...", "Invalid in FILE, line 3: "),
        ("@jobs.kind('k', quota=0)\ndef k(plan: Plan[int], n: int) -> None: ...", "Invalid in FILE, line 3: "),
        (
            "\n@jobs.task\ndef t(ctx: SyncContext, n: int) -> None: ...\njobs.task(name='t')(lambda c, n: 1)",
            "Invalid in FILE, line 6: ",
        ),
    ],
)
def test_a_mistake_that_outlast_refuses_is_told_with_the_applications_line_and_the_words(shell: Shell, wrong: str, words: str) -> None:
    file = shell.folder / "wrong.py"
    file.write_text(f"from outlast import Limit, Outlast, Plan, SyncContext\njobs = Outlast('sqlite:///x.db')\n{wrong}\n")
    said = refusal(shell, "wrong:jobs")
    assert words.replace("FILE", str(file)) in said
    with pytest.raises(Invalid) as raised:
        exec(file.read_text(), {"__name__": "wrong"})  # noqa: S102 - the same, to compare the words
    assert raised.value.message.removesuffix(".") in said
    assert "site-packages" not in said


@pytest.mark.parametrize("way", ["submit", "schedule", "rerun"])
def test_a_kinds_function_that_raises_is_one_line_without_its_text(shell: Shell, way: str) -> None:
    sound, broken = ("", "    raise ValueError('hunter2')\n")
    text = (
        "from outlast import Outlast, Plan, SyncContext\njobs = Outlast('sqlite:///x.db')\n"
        "@jobs.task\ndef t(ctx: SyncContext, n: int) -> None: ...\n"
        "@jobs.kind('k')\ndef k(plan: Plan[int], n: int) -> None:\n{}    plan.task(t, label='T')\n"
    )
    (shell.folder / "planner.py").write_text(text.format(sound))
    submit = ("jobs", "submit", "planner:jobs", "k", "--input", "-", "--as", "a:b")
    old = shell.run(*submit, stdin="1").stdout.split()[0]
    shell.run("jobs", "cancel", old)
    (shell.folder / "planner.py").write_text(text.format(broken))
    sys.modules.pop("planner", None)
    command = {
        "submit": submit,
        "schedule": ("schedules", "add", "planner:jobs", "k", "--name", "n", "--every", "60", "--input", "-", "--as", "a:b"),
        "rerun": ("jobs", "rerun", old, "--target", "planner:jobs"),
    }[way]
    said = shell.run(*command, stdin="1", code=2).stderr
    assert said.count("\n") == 1
    assert "failed: ValueError in " in said
    assert "planner.py, line 7. Nothing was written. (plan_failed)" in said
    assert "hunter2" not in said


def test_an_attribute_may_lie_deeper(shell: Shell, folder: Path) -> None:
    (folder / "deep.py").write_text("import shop\nclass holder:\n    jobs = shop.jobs\n")
    assert shell.run("jobs", "submit", "deep:holder.jobs", "order", "--input", "-", "--as", "a:b", stdin="{}").stdout


def test_a_target_that_has_used_its_store_already_takes_no_other(shell: Shell) -> None:
    (shell.folder / "early.py").write_text("import shop\njobs = shop.jobs\njobs.store\n")
    assert "The store is open already" in refusal(shell, "early:jobs")
