"""`python -m examples.fastapi`: the shop and a worker, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import os
import socket

import uvicorn
from examples.shop.beside import worker_beside

from outlast.store.open import migrate


def main() -> None:
    """Makes the tables, starts a worker, and serves."""
    parser = argparse.ArgumentParser(description="A shop on FastAPI with durable jobs.")
    parser.add_argument("--port", type=int, default=8000, help="on 127.0.0.1; 0: any that is free")
    parser.add_argument("--db", help="the file with the shop's tables and the jobs; default: shop.db")
    options = parser.parse_args()
    if options.db:
        os.environ["SHOP_DB"] = os.path.abspath(options.db)  # noqa: PTH100 - the worker has it in its environment
    from examples.fastapi.app import app, jobs, make_tables  # noqa: PLC0415 - it reads the environment

    migrate(jobs.url)
    asyncio.run(make_tables())
    try:
        listening = socket.create_server(("127.0.0.1", options.port))
    except OSError as error:
        parser.error(f"port {options.port} cannot be used ({error.strerror}); name another with --port")
    with worker_beside(["outlast", "worker", "examples.fastapi.app:jobs", "--lease", "2"]):
        print(f"listening on http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listening])


if __name__ == "__main__":
    main()
