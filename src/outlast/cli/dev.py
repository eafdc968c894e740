"""`outlast dev`: API, page, worker and store in one process, for development."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from typing import Final

import click

from outlast.cli.exits import Exit
from outlast.cli.log import log_options, write_log
from outlast.cli.options import Whole, store_option, target_argument
from outlast.cli.options import application as target_of
from outlast.cli.output import note, say
from outlast.cli.stopping import leave, stopping
from outlast.cli.web import PORT, Web, WebThread, application, listen
from outlast.cli.work import work
from outlast.domain.defaults import GRACE
from outlast.store.open import migrate, parse
from outlast.worker.runtime import Options

LEASE: Final = 5.0
"""Seconds, unless the application sets its own: who kills this process and starts it again does not want to wait for a minute."""
_WEB_GRACE: Final = 1.0


@click.command()
@target_argument
@store_option
@click.option("--port", type=Whole(0, 65_535), default=PORT, show_default=True, help="On 127.0.0.1; 0: any that is free.")
@click.option("--no-worker", is_flag=True, help="API and page only.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in your browser.")
@log_options
def command(target: str, *, store: str | None, port: int, no_worker: bool, open_page: bool, log: str, log_format: str) -> None:
    """Run TARGET (module:attribute) for development: API, page and worker in one process, until told to stop.

    Migrates the store by itself; without --store, the one that the code of TARGET names. Prints `listening on http://127.0.0.1:PORT` and
    `worker ID ready`. Sign in on the page as whoever you like, or send `Authorization: Bearer dev:TENANT:SUBJECT`. Kill it and start it
    again: it goes on where it was.
    """
    app = target_of(target, store)
    asgi = application(app, development=True)
    for step in migrate(app.url):
        note(f"applied {step.number:04d}_{step.name}")
    note(f"store {parse(app.url).shown}")
    write_log(log, log_format)
    web = Web(app, asgi, listen("127.0.0.1", port), grace=_WEB_GRACE)

    def listening(url: str) -> None:
        with suppress(OSError):
            say(f"listening on {url}")
        if open_page:
            webbrowser.open(url)

    serving = WebThread(web, app, listening)
    if no_worker:
        stopping.install()
        stopping.begin(web.stop, grace=GRACE)
        serving.run()
        leave(Exit.OK)
    serving.start()
    work(app, Options(lease=app.settings.lease or LEASE), also=serving)
