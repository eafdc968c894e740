"""Who would wait for the same lock of the store takes turns before it, so that one owner's requests do not take up all connections."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

if TYPE_CHECKING:
    import asyncio  # at run time by those functions that need it: `import outlast` stays quick in processes that run no loop

_Locks: TypeAlias = "WeakValueDictionary[Hashable, asyncio.Lock]"


class Turns:
    """One at a time for each key, in each event loop of the process. What nobody waits for is forgotten."""

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Locks] = WeakKeyDictionary()

    def of(self, key: Hashable) -> asyncio.Lock:
        """The lock of a key; hold a reference while you use it."""
        from asyncio import Lock, get_running_loop  # noqa: PLC0415 - `import outlast` stays quick in processes that run no loop

        locks: _Locks = self._loops.setdefault(get_running_loop(), WeakValueDictionary())
        lock = locks.get(key)
        if lock is None:
            lock = locks[key] = Lock()
        return lock
