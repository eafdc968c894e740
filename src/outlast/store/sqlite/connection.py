"""One connection to a SQLite file: how it is opened, and how it waits for locks."""

from __future__ import annotations

import time
from pathlib import Path

from outlast.domain.errors import StoreUnavailable
from outlast.store.program import Rows
from outlast.store.sqlite.build import OLDEST, Build, linked
from outlast.store.sqlite.faults import is_busy
from outlast.store.sqlite.raw import ERRORS, Parameters, Raw, open_raw

BUSY_PATIENCE = 5.0
_PAUSE = 0.0005  # SQLite's own wait backs off to 100 ms and starves beside busy writers
_NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "ceph",
        "glusterfs",
        "afs",
        "lustre",
        "gfs2",
        "ocfs2",
        "fuse.sshfs",
        "fuse.s3fs",
        "davfs",
        "fuse.glusterfs",
    }
)
_MOUNTS = Path("/proc/self/mountinfo")
_MOUNT_POINT = 4  # the place of the mount point in its lines


class Connection:
    """A connection in autocommit mode; `execute` waits for other processes' locks, up to 5 s."""

    def __init__(self, path: str) -> None:
        build = linked()
        if not build.usable:
            wanted = ".".join(map(str, OLDEST))
            raise StoreUnavailable(f"This Python links SQLite {build}; Outlast needs {wanted} or later.")
        refuse_network(path)
        self.path = path
        self.inode = -1
        self._closed = False
        self._raw = open_raw(path, build)
        try:
            self._prepare(build)
        except BaseException:
            self._raw.close()
            raise

    def _prepare(self, build: Build) -> None:
        mode = self.execute(f"pragma journal_mode = {build.journal_mode}")[0][0]
        if self.path != ":memory:" and mode != build.journal_mode:
            raise StoreUnavailable(
                f"The file is in {mode} mode, which is not safe with SQLite {build}, and another program has it open. "
                "Close that program, or use the same, fixed SQLite build everywhere."
            )
        self.execute("pragma synchronous = extra")
        self.execute("pragma temp_store = memory")
        self.inode = inode_of(self.path)

    def execute(self, sql: str, params: Parameters = ()) -> Rows:
        """The statement's rows, as `patiently`."""
        return patiently(self._raw, sql, params)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; an error may have ended it."""
        return self._raw.in_transaction

    @property
    def outdated(self) -> bool:
        """Whether it has to be opened anew: a fork closed it, or the file at the path is another than the one that was opened."""
        return self._closed or (self.path != ":memory:" and inode_of(self.path) != self.inode)

    def close(self) -> None:
        """Closes the file."""
        self._closed = True
        self._raw.close()


def patiently(raw: Raw, sql: str, params: Parameters = ()) -> Rows:
    """The statement's rows. Meeting a lock it tries again every half millisecond, for 5 s."""
    until = 0.0
    while True:
        try:
            return raw.execute(sql, params)
        except ERRORS as error:
            if not is_busy(error):
                raise
            now = time.monotonic()
            until = until or now + BUSY_PATIENCE
            if now >= until:
                raise
            time.sleep(_PAUSE)


def inode_of(path: str) -> int:
    """What tells a file from another at the same path; -1 while there is none."""
    try:
        return Path(path).stat().st_ino
    except OSError:
        return -1


def refuse_network(path: str, mounts: Path = _MOUNTS) -> None:
    """Raises StoreUnavailable for a file on a network file system, whose locks and syncs SQLite cannot trust."""
    if path == ":memory:":
        return
    try:
        lines = mounts.read_text("utf-8").splitlines()
    except OSError:
        return
    target = str(Path(path).resolve())
    best, kind = "", ""
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) <= _MOUNT_POINT or not right:
            continue
        mount = fields[_MOUNT_POINT].replace("\\040", " ")
        inside = target == mount or target.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, right.split(" ")[0]
    if kind in _NETWORK:
        raise StoreUnavailable(
            f"The file is on a network file system ({kind}), where SQLite can lose data. Use a local disk, or PostgreSQL."
        )
