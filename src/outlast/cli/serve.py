"""`outlast serve`: API and page, without a worker."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import click

from outlast.cli.exits import Exit, Refused
from outlast.cli.log import log_options, write_log
from outlast.cli.options import Whole, seconds, store_option, target_argument
from outlast.cli.options import application as target_of
from outlast.cli.output import note, say
from outlast.cli.stopping import leave, stopping
from outlast.cli.web import LOOPBACK, PORT, Web, application, listen
from outlast.domain.defaults import GRACE
from outlast.store.programs import status

_CLOSE = 0.5


@click.command()
@target_argument
@store_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=Whole(0, 65_535), default=PORT, show_default=True, help="0: any that is free.")
@click.option("--dev-identities", is_flag=True, help="Let anybody be whoever they say, by Bearer dev:TENANT:SUBJECT. Loopback only.")
@click.option("--grace", type=seconds, default=GRACE, show_default=True, help="How long requests may go on after a stop signal.")
@log_options
def command(target: str, *, store: str | None, host: str, port: int, dev_identities: bool, grace: float, log: str, log_format: str) -> None:
    """Serve the API and the page of TARGET (module:attribute) until told to stop; the work is done by `outlast worker`.

    Prints `listening on http://HOST:PORT` once it is ready. Who calls is decided by what TARGET's module gives to jobs.asgi(identify=...).
    SIGTERM or SIGINT: event streams end, requests have the grace period; exit code 0. The store must be migrated.
    """
    if dev_identities and host not in LOOPBACK:
        raise Refused(
            "With --dev-identities anybody is whoever they say, so the server listens on loopback only: leave --host away.",
            code="not_loopback",
        )
    app = target_of(target, store)
    asgi = application(app, development=dev_identities)
    write_log(log, log_format)
    app.store.run_sync(status.clock())  # refuses a store that is away or not migrated, in words
    web = Web(app, asgi, listen(host, port), grace=grace)
    if dev_identities:
        note("development identities: whoever can reach this server is whoever they say")
    stopping.install()
    loop = asyncio.new_event_loop()

    def stop() -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(web.stop)

    def ready(url: str) -> None:
        stopping.begin(stop, grace=grace)
        with suppress(OSError):
            say(f"listening on {url}")

    async def run() -> None:
        try:
            await web.run(ready)
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE):
                    await app.close()

    loop.run_until_complete(run())
    leave(Exit.OK)
