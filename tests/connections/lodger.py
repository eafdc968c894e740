"""One of several processes that share a SQLite file: `python lodger.py URL ROLE`, told to stop by the end of its input.

It says on one line of JSON how often it was answered, how long the longest answer took, and everything that went wrong.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable

from connections.shop import WHO, Order, shop
from outlast.observe.events import Event, StoreNote
from outlast.observe.hub import subscribe
from outlast.store.open import open_store
from outlast.worker.runtime import Options, Worker

_stop = threading.Event()


def _listen_for_the_end() -> None:
    sys.stdin.read()
    _stop.set()


def repeat(call: Callable[[int], object]) -> dict[str, object]:
    longest, count, wrong = 0.0, 0, []
    while not _stop.is_set():
        began = time.monotonic()
        try:
            call(count)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            wrong.append(repr(error))
        longest = max(longest, time.monotonic() - began)
        count += 1
        time.sleep(0.02)
    return {"count": count, "longest": longest, "wrong": wrong}


async def work(url: str) -> dict[str, object]:
    jobs, _ = shop(url)
    store = open_store(url, worker=True)
    worker = Worker(store, jobs.registry, jobs.settings, Options(lease=10))
    wrong: list[str] = []

    def note(event: Event) -> None:
        if event.level in ("WARNING", "ERROR") and not isinstance(event, StoreNote):
            wrong.append(event.text())

    end = subscribe(note)
    running = asyncio.create_task(worker.run())
    await asyncio.to_thread(_stop.wait)
    worker.stop()
    exit_code = await running
    end()
    await store.close()
    if exit_code:
        wrong.append(f"ended with {exit_code}")
    return {"count": 0, "longest": 0.0, "wrong": wrong}


def main(url: str, role: str) -> dict[str, object]:
    threading.Thread(target=_listen_for_the_end, daemon=True).start()
    if role == "work":
        return asyncio.run(work(url))
    jobs, ship = shop(url)
    if role == "submit":
        result = repeat(lambda n: jobs.sync.submit(ship, Order(n), owner=WHO, key=f"k{n}"))
    else:
        result = repeat(lambda _: jobs.sync.list(principal=WHO))
    jobs.sync.close()
    return result


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
