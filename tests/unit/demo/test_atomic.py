from __future__ import annotations

import os
from pathlib import Path

import pytest

from outlast.demo.atomic import write_whole


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_writes_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "book"
    assert write_whole(path, b"old") == 3
    assert write_whole(str(path), b"newer") == 5
    assert path.read_bytes() == b"newer"
    assert names(tmp_path) == ["book"]


def test_gives_the_mode_of_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write_whole(tmp_path / "book", b"x")
    assert (tmp_path / "book").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "book"
    path.write_bytes(b"old")

    def broken(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["book"]


def test_a_process_killed_on_the_way_leaves_no_half_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on disk when the process would die: all of it under another name, nothing under the final one."""
    path = tmp_path / "book"
    seen: list[str] = []

    def killed(self: Path, target: Path) -> Path:
        seen.extend(names(tmp_path))
        raise SystemExit

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(SystemExit):
        write_whole(path, b"book")
    (partial,) = seen
    assert partial.startswith(".book.")
    assert partial.endswith(".part")
    assert not path.exists()
