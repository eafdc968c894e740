"""A client that dies when its answer is there, before it has read it: `python -m outlast.demo.submitter PORT TENANT SUBJECT KEY ORDER`.

The API answers after its commit, so by then the job is there, and nobody has been told.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from http.client import HTTPConnection

from outlast.demo.visitor import PATIENCE, Visitor


def die_before_reading(connection: HTTPConnection) -> None:
    """Kills this process when the first byte of the answer can be read; returns if none comes."""
    sock: socket.socket = connection.sock
    readable, _, _ = select.select([sock], [], [], PATIENCE)
    if readable and sock.recv(1, socket.MSG_PEEK):  # looked at and left where it is: the end of a connection could be read as well
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    port, tenant, subject, key, order = sys.argv[1:]
    die_before_reading(Visitor(int(port), tenant, subject).send_order(order.encode(), key))
    sys.exit("The API did not answer.")
