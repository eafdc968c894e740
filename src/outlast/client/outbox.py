"""The outbox of another database, on the client's side: the row that an application writes there, and the admission that it becomes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from outlast.client.calls import Application
from outlast.client.submitting import prepare, prepare_sent, queues_of, still_admitting
from outlast.domain.access import Scope
from outlast.domain.errors import Invalid, Locked, NotRegistered
from outlast.domain.ids import LOWEST, uuid7
from outlast.domain.kinds import Kind, Task
from outlast.domain.model import Principal, TargetRef, Unique
from outlast.domain.outbox import OutboxRow, Value, asked, written
from outlast.domain.payload import check_key
from outlast.domain.values import encode
from outlast.domain.work import ActiveTaken, Admission, Admitted, KeyTaken
from outlast.observe.correlation import correlation_id
from outlast.store.programs import admission, status
from outlast.store.protocol import Store

_NOBODY = Scope("outlast", "outlast")


def outbox_row(
    app: Application,
    kind: Kind[Any],
    value: Any,
    *,
    owner: Principal,
    id: str | None,
    unique: Unique | None,
    target: TargetRef | None,
    not_before: datetime | None,
) -> dict[str, Value]:
    """The columns of a row that asks for the job; refused is what a submit would be refused for, as far as no store is needed."""
    if isinstance(kind, Task):
        raise NotRegistered("No task can be asked for through an outbox, only what @jobs.kind declares.")
    key = uuid7(time.time_ns() // 1_000_000, os.urandom(10)) if id is None else check_key(id, what="id of the row")
    prepared = prepare(app, kind, value, owner=owner, key=key, not_before=not_before, unique=unique, target=target)
    return written(
        key=key,
        owner=owner,
        kept={name: owner.claims[name] for name in kind.keep_claims if name in owner.claims},
        kind=kind.name,
        version=kind.version,
        input=encode(value, limit=app.settings.max_input, what="input", hint=kind.input_type),
        target=target,
        unique=unique,
        not_before_ms=None if not_before is None else max(0, round(not_before.timestamp() * 1000)),
        correlation_id=prepared.correlation_id,
    )


class Door:
    """Where rows enter a store: each under its own id as idempotency key, so that a repeat is the same job."""

    def __init__(self, app: Application, store: Store) -> None:
        self._app = app
        self._store = store

    @property
    def max_input(self) -> int:
        """The largest input in bytes."""
        return self._app.settings.max_input

    def check(self) -> None:
        """Asks the store for something; StoreUnavailable or NotMigrated if it does not answer as it should."""
        self._store.run_sync(status.job(_NOBODY, LOWEST))

    def prepare(self, row: OutboxRow) -> Admission:
        """What the row asks for; Invalid, NotRegistered or Forbidden. What the kind's own function raises comes as it is."""
        wanted = asked(row, limit=self.max_input)
        token = correlation_id.set(wanted.correlation_id)
        try:
            return prepare_sent(
                self._app,
                wanted.kind,
                _version(wanted.version),
                wanted.input,
                owner=wanted.owner,
                key=wanted.key,
                not_before=wanted.not_before,
                unique=wanted.unique,
                target=wanted.target,
            )
        finally:
            correlation_id.reset(token)

    def admit(self, prepared: Sequence[Admission]) -> Sequence[Admitted | KeyTaken | ActiveTaken]:
        """Admits these in one commit, or the one that has to be alone, and gives the workers a hint; the outcomes in order.

        Raises what a submit does; then none of them was admitted, but for OutcomeUnknown, where they may have been.
        """
        try:
            return self._admit(prepared)
        except Locked as error:
            raise still_admitting(error, prepared) from error
        finally:
            self._store.announce(queues_of(prepared))  # never waits, and one too many costs a look

    def _admit(self, prepared: Sequence[Admission]) -> Sequence[Admitted | KeyTaken | ActiveTaken]:
        if len(prepared) == 1 and prepared[0].alone:
            return [self._store.run_sync(admission.admit_alone(prepared[0]))]
        results = self._store.run_sync(admission.admit(prepared))
        return results  # noqa: RET504 - the type checker takes the type of a bare call from what is returned


def _version(version: int | None) -> int | None:
    if version is not None and version < 1:
        raise Invalid("The version of a kind is a whole number from 1.", code="invalid_row")
    return version
