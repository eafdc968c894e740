"""A worker beside a web server, as a process of its own that is started anew when it dies. In production that is your supervisor's task."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress


@contextmanager
def worker_beside(command: Sequence[str]) -> Generator[None]:
    """Runs `python -m COMMAND` until the block ends, and tells each process that it starts."""
    ending = threading.Event()
    running: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.DEVNULL)
        running[:] = [process]
        print(f"worker started (pid {process.pid}); kill it, and another one goes on", flush=True)
        return process

    def watch(process: subprocess.Popen[bytes]) -> None:
        while not ending.is_set():
            code = process.wait()
            if ending.is_set() or code == 0:  # 0: it was told to stop, by Ctrl-C for example, as this process is
                return
            print(f"the worker ended ({code})", flush=True)
            if ending.wait(0.5):
                return
            process = start()

    thread = threading.Thread(target=watch, args=(start(),), daemon=True)
    thread.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # ends the block, and with it the worker, as Ctrl-C does
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        ending.set()
        running[0].terminate()
        thread.join()
        running[0].terminate()  # another one, if it was just being started
        running[0].wait()
