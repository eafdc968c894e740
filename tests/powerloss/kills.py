"""Kills a process at its n-th write, sync, cut or removal of a file, by strace, for every n, and looks at what is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from invariants import problems, query
from powerloss.history import python_path

CALLS = "pwrite64,fdatasync,fsync,ftruncate,unlink"
_MOST = 400
_FACTS = (
    "select 'job' as kind, id, '' as no, '' as name, '' as body from {job}",
    "select 'step' as kind, job_id as id, no, name, body from {step}",
    "select 'done' as kind, job_id as id, no, '' as name, body from {output}",
)


@dataclass(slots=True)
class Kills:
    """What came of it."""

    driver: str
    points: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list[str])
    unsound: list[str] = field(default_factory=list[str])
    recovered: int = 0
    """Jobs that a new process brought to their end."""

    @property
    def clean(self) -> bool:
        """Nothing was lost, all is whole, and processes were killed."""
        return self.points > 0 and self.acknowledged > 0 and not self.lost and not self.unsound


def missing_tool() -> str | None:
    """Why nothing can be killed here; None where it can."""
    if shutil.which("strace") is None:
        return "strace is not installed (apt-get install strace)"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.strip()[:200]}"


def kill_everywhere(driver: str, *, every: int = 1, most: int = _MOST, recover: int = 10) -> Kills:
    """Kills it at the 1st, the 1 + every-th ... such call of one of its threads, until it comes to its end; each on a store of its own.

    recover: of every so-manieth store that is left behind a new process has to bring the job to its end.
    """
    report = Kills(driver)
    folder = Path(tempfile.mkdtemp(prefix="outlast-kills-"))
    try:
        template = folder / "template.db"
        _python(driver, "-c", f"from outlast.store.open import migrate; migrate('sqlite:///{template}')")
        for n in range(1, most, every):
            path = folder / f"{n}.db"
            shutil.copy(template, path)
            killed = _run(driver, path, n)
            _judge(report, path, killed.stdout, f"killed at call {n}")
            if killed.returncode == 0:
                break
            if killed.returncode != -signal.SIGKILL:
                report.unsound.append(f"at call {n} it was not killed, it failed: {killed.stderr[-300:]}")
                break
            report.points += 1
            if report.points % recover == 0:
                again = _run(driver, path, None)
                _judge(report, path, again.stdout, f"after a new process, killed before at call {n}")
                report.recovered += again.returncode == 0
                if again.returncode != 0:
                    report.unsound.append(f"killed at call {n}: a new process did not end: {again.stderr[-300:]}")
            for left in folder.glob(f"{n}.db*"):
                left.unlink()
        else:
            report.unsound.append(f"after {most} calls it is still not at its end")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report


def _run(driver: str, path: Path, n: int | None) -> subprocess.CompletedProcess[str]:
    tracing = (
        [] if n is None else ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={CALLS}", "-e", f"inject={CALLS}:signal=KILL:when={n}"]
    )
    return _python(driver, "-m", "powerloss.job", str(path), before=tracing)


def _python(driver: str, *arguments: str, before: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OUTLAST_SQLITE_DRIVER": driver, "PYTHONPATH": python_path()}
    command = [*(before or ()), sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def _judge(report: Kills, path: Path, said: str, when: str) -> None:
    url = f"sqlite:///{path}"
    wrong = problems(url)
    report.unsound += [f"{when}: {line}" for line in wrong]
    if wrong:
        return
    facts = {tuple(str(value) for value in row.values() if value != "") for sql in _FACTS for row in query(url, sql)}
    for line in said.splitlines():
        fact = tuple(json.loads(line))
        report.acknowledged += 1
        if fact not in facts:
            report.lost.append(f"{when}: {' '.join(fact)}")
