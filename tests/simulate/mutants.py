"""Changes of the engine that the simulator has to find out: each takes one guard away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from types import ModuleType
from typing import Any, Final

from outlast.store.program import Program, Rows, Statement
from outlast.store.programs import sweep
from outlast.store.sqlite import subprograms, writer
from simulate.world import Mutant

Sql = Mapping[str, str]
Change = Callable[[Sql], Sql]

_HOLDER = "fence = :fence and holder = :holder"
_OUTPUT = "values (:tenant, :job_id, :no, :body, :ref)"
_ANEW = "on conflict (tenant, owner, key) do update set job_id = excluded.job_id"
_LEASE = "lease_until > simulated_now()"


def replaced(old: str, new: str, *names: str) -> Change:
    """These statements with another text in place of one of theirs."""

    def change(sql: Sql) -> Sql:
        for name in names:
            assert old in sql[name], f"{name} no longer says {old!r}"
        return {**sql, **{name: sql[name].replace(old, new) for name in names}}

    return change


def all_of(*changes: Change) -> Change:
    """One after the other."""
    return lambda sql: reduce(lambda done, change: change(done), changes, sql)


@contextmanager
def _put(module: ModuleType | type, name: str, value: Any) -> Iterator[None]:
    """While it lasts."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


@contextmanager
def _finishing(finish: Callable[[Mapping[str, Any]], Program[Rows]]) -> Iterator[None]:
    """While it lasts SQLite's finish is another one."""
    with _put(writer, "SUBPROGRAMS", {**writer.SUBPROGRAMS, "finish": finish}):
        yield


def _answering_first(self: writer.Writer, batch: list[writer.Request]) -> list[tuple[writer.Request, Any, Exception | None]]:
    """As the writer's own, but who asked is told before the commit."""
    try:
        connection = self._open()
        connection.execute("begin immediate")
        results = [(r, *self._one(connection, r.operation, alone=len(batch) == 1)) for r in batch]
        for request, value, refusal in results:
            if refusal is None:
                request.future.set_result(value)
        connection.execute("commit")
    except Exception as error:
        self._abandon(error)
        raise
    return results


def _without_state_guard(params: Mapping[str, Any]) -> Program[Rows]:
    """Where no entry stands it does not give up: it is enough that the task has this fence."""
    program = subprograms.finish(params)
    statement = next(program)
    try:
        while True:
            rows = yield statement
            if statement.name == "end_entry" and not rows:
                place = {name: statement.params[name] for name in ("tenant", "job_id", "no")}
                ended = yield Statement("task_end", place)
                if ended and ended[0][0] == "completed" and ended[0][1] == statement.params["fence"]:
                    rows = [(ended[0][2], None, None)]
            statement = program.send(rows)
    except StopIteration as stop:
        made: Rows = stop.value
        return made


MUTANTS: Final = (
    Mutant("a finish of whatever fence", replaced(_HOLDER, "holder is not null", "end_entry"), found_by=11),
    Mutant("a finish after the lease", replaced(_LEASE, "true", "end_entry"), found_by=2),
    Mutant("a finish after the cancel", replaced("and not revoked", "", "end_entry"), found_by=10),
    Mutant("a claim that does not raise the fence", replaced("fence = fence + 1", "fence = max(fence, 1)", "claim_one")),
    Mutant(
        "a finish that has no guard of the state",
        replaced(
            _OUTPUT,
            f"{_OUTPUT} on conflict do nothing",
            "insert_output",
        ),
        patch=lambda: _finishing(_without_state_guard),
        found_by=10,
    ),
    Mutant("a finish in two transactions", split=frozenset({"insert_output"}), found_by=1),
    Mutant("a retry that commits before its attempt's row", split=frozenset({"insert_attempt"}), found_by=1),
    Mutant("an admission that commits before its tasks", split=frozenset({"admit_input"})),
    Mutant("a renewal of a lease that has ended", replaced(_LEASE, "true", "renew_one"), found_by=37),
    Mutant(
        "a sweep that does not look at the lease",
        replaced("lease_until <= simulated_now()", "true", "ended_leases", "release_lost"),
        patch=lambda: _put(sweep, "_still_lost", lambda entry, candidate: entry is not None and entry.holder is not None),
    ),
    Mutant("a retry by whoever asks", replaced(_HOLDER, "holder is not null", "release_entry"), found_by=22),
    Mutant("a cancel that revokes nothing", replaced("set revoked = true", "set revoked = revoked", "revoke_entries"), found_by=1),
    Mutant("a step of whoever asks", replaced(_HOLDER, "holder is not null", "store_step"), found_by=1),
    Mutant("an effect that is intended by whoever asks", replaced(_HOLDER, "holder is not null", "effect_place"), found_by=30),
    Mutant(
        "a claim that looks for no pause",
        replaced("q.paused_at is not null", "false", "claim_candidates", "keyed_candidates", "keyed_room"),
    ),
    Mutant("an effect that waits for no earlier call", replaced("begun_at + timeout_ms", "begun_at", "effect_of"), found_by=1),
    Mutant("an answer before its commit", patch=lambda: _put(writer.Writer, "_commit", _answering_first), found_by=7),
    Mutant("a slot that is not freed", replaced("job_id = null, no = null, fence = null", "job_id = job_id", "free_slot")),
    Mutant(
        "a key that is not kept",
        replaced("on conflict do nothing", _ANEW, "admit_submission"),
    ),
    Mutant("a purge that does not look at the time", replaced("j.purge_at <= simulated_now()", "true", "walk_jobs", "lock_due")),
    Mutant("a sweep that finds nothing", replaced("where holder is not null", "where false and holder is not null", "ended_leases")),
)
"""The first six are those that the method asks for; the others are of the same kind."""
