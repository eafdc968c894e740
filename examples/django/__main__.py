"""Starts the example: database, a worker, and the shop. `python -m examples.django [--port N] [--data FOLDER]`.

A worker that dies is started anew: kill it by the process id that is printed, and watch the order go on.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from socket import socket
from types import FrameType

from examples.shop.beside import worker_beside

_DATA = str(Path(tempfile.gettempdir()) / f"outlast-django-example-{os.getuid()}")
_LEASE = "3"
"""Seconds after which the work of a killed worker is taken over: short, so that it can be watched."""


def main() -> None:
    """Runs until it is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m examples.django")
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free")
    parser.add_argument("--data", default=_DATA, help="where the database is")
    wanted = parser.parse_args()
    Path(wanted.data).mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ.update(EXAMPLE_DATA=wanted.data, EXAMPLE_SECRET=secrets.token_hex(), DJANGO_SETTINGS_MODULE="examples.django.settings")
    subprocess.run([sys.executable, "-m", "examples.django.manage", "migrate", "--run-syncdb", "--verbosity", "0"], check=True)
    with worker_beside(["examples.django.manage", "outlast_worker", "--lease", _LEASE]):
        _serve(wanted.port)


def _serve(port: int) -> None:
    import uvicorn  # noqa: PLC0415 - after the settings are named
    from examples.django.asgi import application  # noqa: PLC0415

    class Server(uvicorn.Server):
        """Says where it is, and ends event streams when it is told to stop."""

        async def startup(self, sockets: list[socket] | None = None) -> None:
            await super().startup(sockets)
            print(f"shop on http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}/", flush=True)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            application.stop()
            super().handle_exit(sig, frame)

    Server(uvicorn.Config(application, host="127.0.0.1", port=port, log_level="warning")).run()


if __name__ == "__main__":
    main()
