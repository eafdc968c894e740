"""What is done to the store while the power may go: each kind of write, alone and several to a commit, noted once it is acknowledged.

A fact says what somebody was told is stored, and holds for ever: later writes add to it and never take it away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from contract.harness import ACCEPTED, RETENTION_MS, Harness, worker_of
from contract.plans import a
from outlast.domain.work import Admitted, Claimed, Control, Finished
from outlast.store.program import Operation
from outlast.store.programs import admission, completion, steps

Note: TypeAlias = Callable[..., None]
"""Takes a fact, its kind first."""

_LONG = "x" * 9_000  # more than a page of SQLite's


def live(h: Harness, run_all: Callable[[Sequence[Operation[Any]]], list[Any]], note: Note, rounds: int) -> None:
    """So many rounds of it, each with every kind of write."""

    def finish(claimed: Claimed, body: str) -> Operation[Any]:
        return completion.finish([Finished(claimed.ref, worker_of(claimed), body)], RETENTION_MS)

    def claim(many: int) -> dict[str, Claimed]:
        held = {f"{claimed.ref.job_id} {claimed.label}": claimed for claimed in h.claim(many)}
        for claimed in held.values():
            note("claim", claimed.ref.job_id, claimed.ref.no, claimed.ref.fence)
        return held

    for n in range(rounds):
        pair = h.admission(a("first"), a("second", after="first"), key=f"pair {n}", body=f'{{"round":{n}}}')
        single = h.admission(a("only", attempts=1), key=f"single {n}")
        stopped = h.admission(a("never", queue="idle"), a("ever", queue="idle"))
        jobs = [pair, single, stopped]
        for job, (result,) in zip(jobs, run_all([admission.admit([job]) for job in jobs]), strict=True):
            assert result == Admitted(job.job_id, replayed=False)
            note("job", job.job_id)
        held = claim(10)
        first, only = held[f"{pair.job_id} first"], held[f"{single.job_id} only"]
        for name, body in (("short", f'"{n}"'), ("long", f'"{n} {_LONG}"')):
            assert h.run(steps.store_step(first.ref, name, body)) == (ACCEPTED, body)
            note("step", pair.job_id, 0, name, body)
        assert h.fail(only).verdict is ACCEPTED
        note("asked", single.job_id, f"0.{only.ref.fence}")
        body = f'"{n} done {_LONG}"'
        assert h.finish(first, body).verdict is ACCEPTED
        note("done", pair.job_id, 0, body)
        assert h.act(single.job_id, "retry", attention=f"0.{only.ref.fence}") is Control.DONE
        note("answered", single.job_id, f"0.{only.ref.fence}", "retry")
        held = claim(10)
        last = [(held[f"{pair.job_id} second"], '"second"'), (held[f"{single.job_id} only"], '"only"')]
        for (claimed, body), (settled,) in zip(last, run_all([finish(*one) for one in last]), strict=True):
            assert settled.verdict is ACCEPTED
            note("done", claimed.ref.job_id, claimed.ref.no, body)
        assert h.cancel(stopped.job_id) is Control.DONE
        note("cancelled", stopped.job_id)
        if n % 3 == 2:
            h.backend.reset()
