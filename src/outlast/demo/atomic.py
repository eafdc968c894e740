"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def write_whole(path: str | os.PathLike[str], data: bytes) -> int:
    """Put `data` under the final name in one step and return its size; a reader sees the old file or the new one.

    A process killed on the way leaves at most a hidden `.name.….part` beside it, never half a book under the name.
    """
    final = Path(path)
    # Two attempts at the same book may run at once; the random part keeps them out of each other's file.
    partial = final.with_name(f".{final.name}.{secrets.token_hex(6)}.part")
    try:
        # Not tempfile, whose files are for one user only: a book gets the mode of any new file.
        with partial.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(final)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    return len(data)
