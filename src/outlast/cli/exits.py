"""How a command ends: one table of exit codes, and the refusal that carries one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from outlast.cli.output import note, safe
from outlast.domain.conflicts import Conflict, Expired
from outlast.domain.errors import (
    Contended,
    Forbidden,
    KeyReused,
    NotFound,
    NotMigrated,
    OutcomeUnknown,
    OutlastError,
    QuotaExceeded,
    StoreUnavailable,
)


class Exit(IntEnum):
    """The exit codes of all commands."""

    OK = 0
    ATTENTION = 1
    INVALID = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNAVAILABLE = 5
    NOT_MIGRATED = 6
    FORBIDDEN = 7
    DEFECT = 70
    ZOMBIES = 75
    INTERRUPTED = 130


MEANINGS: Final[Mapping[Exit, str]] = MappingProxyType(
    {
        Exit.OK: "done, or nothing to do; a worker or relay was told to stop and did",
        Exit.ATTENTION: "something needs you: pending migrations, a finding of doctor or verify, a deletion to be repeated, "
        "a parked outbox row",
        Exit.INVALID: "wrong usage, target, input or setting; nothing was written",
        Exit.NOT_FOUND: "no such job, not theirs, or no longer kept",
        Exit.CONFLICT: "the job stands otherwise, the key belongs to another request, or a quota is used up",
        Exit.UNAVAILABLE: "the store, or an outbox, did not answer, or its answer to a commit was lost",
        Exit.NOT_MIGRATED: "the store is older or newer than this version: outlast migrate; or the table of an outbox is missing",
        Exit.FORBIDDEN: "may see the job, may not do this with it",
        Exit.DEFECT: "a loop of the worker died, or a defect of Outlast: see its log",
        Exit.ZOMBIES: "a worker ended itself: too much code outlived its lease; start it anew",
        Exit.INTERRUPTED: "interrupted from the keyboard",
    }
)

_BY_ERROR: Final[tuple[tuple[type[OutlastError], Exit], ...]] = (
    (NotFound, Exit.NOT_FOUND),
    (Expired, Exit.NOT_FOUND),
    (Forbidden, Exit.FORBIDDEN),
    (KeyReused, Exit.CONFLICT),
    (QuotaExceeded, Exit.CONFLICT),
    (Conflict, Exit.CONFLICT),
    (Contended, Exit.UNAVAILABLE),
    (StoreUnavailable, Exit.UNAVAILABLE),
    (OutcomeUnknown, Exit.UNAVAILABLE),
    (NotMigrated, Exit.NOT_MIGRATED),
)


def exit_of(error: OutlastError) -> Exit:
    """The exit code of a refusal or fault."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.INVALID)


class Refused(Exception):
    """A command is refused, with an exit code: what to know and what to do."""

    def __init__(self, message: str, exit_code: Exit = Exit.INVALID, *, code: str) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.code = code


def tell(error: OutlastError | Refused) -> Exit:
    """Prints one line on standard error; the exit code of the command."""
    note(f"error: {safe(error.message)} ({error.code})")
    return error.exit_code if isinstance(error, Refused) else exit_of(error)


def table_of_exits() -> str:
    """For the help: codes and meanings."""
    return "\n".join(["Exit codes:", *(f"  {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items())])
