"""The command `outlast`, with faults armed at the store of its client, as runner.py arms them at a worker's.

python tests/crash/commanded.py jobs replay --all --reason "It is back." --store sqlite:////tmp/x.db
"""

from __future__ import annotations

import outlast.app
from crash.runner import Armed, armed
from outlast.cli.main import main

if __name__ == "__main__":
    hooks = list(armed())
    plain = outlast.app.open_store
    outlast.app.open_store = lambda url: Armed(plain(url), hooks)
    main()
