"""Debian's pgbouncer in transaction mode, for tests: its own port, nothing left behind."""

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

PROGRAM = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
_CONFIG = """
[databases]
* = host=127.0.0.1 port={server} user=outlast
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
"""


def installed() -> bool:
    """Whether there is a pgbouncer on this machine."""
    return Path(PROGRAM).exists()


class Pooler:
    """Between clients and the server at a port; so many server sessions a database."""

    def __init__(self, server_port: int, size: int = 4) -> None:
        self._server = server_port
        self._size = size
        self.port = 0

    def __enter__(self) -> Self:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._folder = Path(tempfile.mkdtemp(prefix="outlast-pooler-"))
        self._folder.chmod(0o755)
        config = self._folder / "pgbouncer.ini"
        config.write_text(_CONFIG.format(server=self._server, port=self.port, size=self._size))
        who: dict[str, Any] = {}
        if os.geteuid() == 0:  # which it refuses to run as
            account = pwd.getpwnam("nobody")
            who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self._process = subprocess.Popen(
            [PROGRAM, str(config)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **who
        )
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return self
        self._process.kill()
        raise RuntimeError(f"pgbouncer did not start: {self._process.communicate()[1][-1000:]}")

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def dsn(self, dbname: str) -> str:
        """The address of a database through the pooler."""
        return f"postgresql://outlast@127.0.0.1:{self.port}/{dbname}"
