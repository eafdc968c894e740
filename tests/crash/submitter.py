"""Submits one rehearsal job under a key, in a process of its own, which hooks may kill: `python submitter.py URL KEY`."""

from __future__ import annotations

import sys
from typing import Any

from crash.runner import Armed, armed
from crash.stage import OWNER, client
from outlast.rehearsal import app
from outlast.store.open import open_store


def main() -> None:
    """Prints the job's id."""
    url, key = sys.argv[1:]
    store = open_store(url)
    body: Any = {"tasks": [{"label": "A"}]}
    handle = client(url, app, Armed(store, list(armed()))).submit(app.registry.kind("rehearsal"), body, owner=OWNER, key=key)
    print(f"{handle.id} {handle.replayed} ready", flush=True)
    store.close_sync()


if __name__ == "__main__":
    main()
