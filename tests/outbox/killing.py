"""Runs the relay in children of its own, one for each statement, and lets each be killed there: before it, and after its answer.

    python killing.py OUTBOX_URL STORE_URL     with one row in the outbox; prints how many children were killed

Each child goes on with what the one before has left, as a supervisor's next process does.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from outbox.outboxes import shop
from outlast.client.outbox import Door
from outlast.relay.inbound import Inbound
from outlast.relay.source import Source

_MOST = 60


class Killer:
    """Ends the process with SIGKILL at one of the points that it is asked at."""

    def __init__(self, at: int) -> None:
        self._left = at

    def point(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **more: Any) -> Any:
            self.point()
            found = call(*args, **more)
            self.point()
            return found

        return called


def relay_once(outbox: str, store: str, at: int) -> None:
    """One round; its connections are its own."""
    killer = Killer(at)
    source = Source(outbox)
    for name in ("_execute", "_many"):
        setattr(source, name, killer.around(getattr(source, name)))
    jobs = shop(store)
    jobs.store.run_sync = killer.around(jobs.store.run_sync)  # type: ignore[method-assign]
    Inbound(source, Door(jobs.desk.app, jobs.store)).run_once()
    source.close()
    jobs.sync.close()


def main(outbox: str, store: str) -> None:
    for at in range(_MOST):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                relay_once(outbox, store, at)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            print(at, os.WEXITSTATUS(status), flush=True)
            return
        print("killed", at, flush=True)
        sys.stdin.readline()  # the test has looked, and has written the row of the next round
    raise SystemExit("never came to its end")


if __name__ == "__main__":
    main(*sys.argv[1:])
