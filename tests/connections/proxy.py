"""A network between two ends of this machine that can stop to carry anything, without a word to either end."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Self


class Proxy:
    """Carries bytes to a port of 127.0.0.1; while `swallow` is set it takes them and drops them."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._closed = False
        self.port: int = self._listening.getsockname()[1]
        self.swallow = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._closed = True
        for one in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                if self._closed:
                    return
                time.sleep(0.01)
                continue
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        lost = False
        with contextlib.suppress(OSError):
            while data := one.recv(65_536):
                lost = lost or self.swallow  # what lost a part of its stream never comes back
                if not lost:
                    other.sendall(data)
        if not lost and not self.swallow:
            with contextlib.suppress(OSError):
                other.shutdown(socket.SHUT_RDWR)
