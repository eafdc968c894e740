"""Runs the relay from an outbox in another database as this process: ready line, signals, and an end that comes in time."""

from __future__ import annotations

import threading
from contextlib import suppress

from outlast.app import Outlast
from outlast.cli.output import say
from outlast.cli.stopping import stopping
from outlast.client.outbox import Door
from outlast.relay.inbound import Inbound
from outlast.relay.source import Source

_GRACE = 5.0


def move(app: Outlast, url: str, *, table: str, every: float, once: bool) -> None:
    """Moves rows until told to stop; once: until none is left that may be tried now. Refusals and missing tables are raised."""
    source = Source(url, table=table)
    stop = threading.Event()
    stopping.install()

    def ready() -> None:
        with suppress(OSError):  # nobody reads it any more
            say(f"relay of {source.shown} ready")

    stopping.begin(stop.set, grace=_GRACE)
    try:
        Inbound(source, Door(app.desk.app, app.store)).run(stop, every=every, once=once, on_ready=ready)
    finally:
        source.close()
        app.sync.close()
