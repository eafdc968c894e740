"""A real MariaDB for tests, of Debian's package: a private folder, a socket in it and no port, nothing left behind."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pymysql

PROGRAM = Path("/usr/sbin/mariadbd")
INSTALL = Path("/usr/bin/mariadb-install-db")
START_SECONDS = 30.0
# Ends the server and removes its folder when the tests are gone, however they ended: the pipe closes then.
_WATCH = 'read -r _; kill -9 "$1"; rm -rf "$2"'


def installed() -> bool:
    """Whether there is a MariaDB on this machine."""
    return PROGRAM.exists() and INSTALL.exists()


class MariaDbServer:
    """One server with databases of its own. It is not made for power cuts: nothing is flushed."""

    def __enter__(self) -> Self:
        """Make the tables of the server and start it; return when it takes connections."""
        self._who: dict[str, Any] = {}
        options = []
        self._folder = Path(tempfile.mkdtemp(prefix="outlast-mariadb-", dir="/tmp"))
        if os.geteuid() == 0:  # which it refuses to run as
            account = pwd.getpwnam("mysql")
            os.chown(self._folder, account.pw_uid, account.pw_gid)
            options = ["--user=mysql"]
        made = subprocess.run(
            [
                str(INSTALL),
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                f"--datadir={self._folder / 'data'}",
                *options,
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise RuntimeError(f"mariadb-install-db failed:\n{made.stdout}{made.stderr}"[-3000:])
        self._process = subprocess.Popen(
            [
                str(PROGRAM),
                "--no-defaults",
                f"--datadir={self._folder / 'data'}",
                f"--socket={self.socket}",
                f"--pid-file={self._folder / 'pid'}",
                f"--log-error={self._folder / 'log'}",
                "--skip-networking",
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-buffer-pool-size=16M",
                *options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt typed at the tests is not one for the server
        )
        self._watch = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "watch", str(self._process.pid), str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with socket.socket(socket.AF_UNIX) as probe:  # the driver leaves its own open where nobody listens
                if probe.connect_ex(str(self.socket)) == 0:
                    return self
            time.sleep(0.02)
        log = self._folder / "log"
        said = log.read_text(errors="replace")[-3000:] if log.exists() else ""
        self.__exit__(None, None, None)
        raise RuntimeError(f"MariaDB did not start:\n{said}")

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        """Stop the server and remove its folder."""
        self._process.kill()
        self._process.wait()
        self._watch.kill()
        self._watch.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def socket(self) -> Path:
        """The server's socket."""
        return self._folder / "socket"

    def connect(self, database: str | None = None) -> Any:
        """A connection in autocommit."""
        return pymysql.connect(unix_socket=str(self.socket), user="root", database=database, charset="utf8mb4", autocommit=True)

    def create_database(self, name: str) -> str:
        """Create a database and return its URL."""
        with self.connect() as db, db.cursor() as cursor:
            cursor.execute(f"create database {name}")
        return f"mariadb://root@localhost/{name}?unix_socket={self.socket}"
