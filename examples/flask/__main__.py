"""`python -m examples.flask`: the shop and a worker, until Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import os

from examples.shop.beside import worker_beside
from werkzeug.serving import make_server

from outlast.store.open import migrate


def main() -> None:
    """Makes the tables, starts a worker by `flask outlast worker`, and serves."""
    parser = argparse.ArgumentParser(description="A shop on Flask with durable jobs.")
    parser.add_argument("--port", type=int, default=8000, help="on 127.0.0.1; 0: any that is free")
    parser.add_argument("--db", help="the file with the shop's tables and the jobs; default: shop.db")
    options = parser.parse_args()
    if options.db:
        os.environ["SHOP_DB"] = os.path.abspath(options.db)  # noqa: PTH100 - the worker has it in its environment
    from examples.flask.app import app, jobs, make_tables  # noqa: PLC0415 - it reads the environment

    migrate(jobs.url)
    make_tables()
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = make_server("127.0.0.1", options.port, app, threaded=True)
    with worker_beside(["flask", "--app", "examples.flask.app", "outlast", "worker", "--lease", "2"]):
        print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
