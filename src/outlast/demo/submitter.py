"""A client process that dies between the commit of its submit and the answer: `python -m outlast.demo.submitter URL KEY FOLDER PACE`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from outlast.demo.app import app, make_book, request
from outlast.domain.model import Principal
from outlast.store.open import open_store
from outlast.store.program import Operation

READER = Principal("demo", "reader")


def die_after_commit(url: str, key: str, folder: Path, pace: float) -> None:
    """Submits the book; the process is killed when the store has committed and nobody has been told."""
    store = open_store(url)
    commit = store.run_sync

    def run_and_die(operation: Operation[Any]) -> Any:  # noqa: ANN401 - whatever the operation gives
        value = commit(operation)
        if operation.name == "admit":
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    vars(store)["run_sync"] = run_and_die  # the fault that is rehearsed
    app.adopt(store)
    app.sync.submit(make_book, request(folder, pace), owner=READER, key=key)


if __name__ == "__main__":
    die_after_commit(sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4]))
