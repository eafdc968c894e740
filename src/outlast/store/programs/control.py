"""Cancel, stop, and the owner's decisions (T15 to T20, J4, J5, J7). All lock the job in a statement of its own first."""

from __future__ import annotations

from dataclasses import asdict

from outlast.domain.access import Scope, owns
from outlast.domain.effects import EffectRef, Word, word_of
from outlast.domain.errors import Invalid
from outlast.domain.work import Control, Settled, TaskRef, Verdict
from outlast.store.program import Access, Program, Statement, operation
from outlast.store.programs.graph import JobChange, settle_children, write
from outlast.store.programs.slots import free
from outlast.store.programs.verdicts import entry_of, key_of, refused


@operation(Access.TRANSACTION)
def cancel(scope: Scope, job_id: str, *, version: int | None, actor: str, retention_ms: int) -> Program[Control]:
    """Cancels the job: nothing of it is written by a task after this commit (J5).

    The state is judged before the version, so that repeating a cancel that won succeeds.
    """
    locked = yield Statement("lock_job", {"tenant": scope.tenant, "job_id": job_id, "owner": scope.owner})
    if not locked:
        return Control.NOT_FOUND
    state, stands_at = locked[0][0], int(locked[0][1])
    if state == "cancelled":
        return Control.REPEATED
    if state == "completed":
        return Control.ALREADY_COMPLETED
    if version is not None and version != stands_at:
        return Control.STALE_VERSION
    yield from end_job(scope.tenant, job_id, outcome="user", actor=actor, retention_ms=retention_ms)
    return Control.DONE


@operation(Access.TRANSACTION)
def act(
    scope: Scope,
    job_id: str,
    attention_id: str,
    *,
    action: str,
    answer: str | None,
    request_hash: str,
    actor: str,
    retention_ms: int,
) -> Program[Control]:
    """Takes the owner's decision on one open question (T17 to T20). The same request again is a success without a write.

    actor: who decides, and of a question about an effect that must be the job's owner: an operator's retry could make a call twice.
    """
    locked = yield Statement("lock_job", {"tenant": scope.tenant, "job_id": job_id, "owner": scope.owner})
    if not locked:
        return Control.NOT_FOUND
    asked = yield Statement("attention_of", {"tenant": scope.tenant, "job_id": job_id, "id": attention_id})
    if not asked:
        return Control.SUPERSEDED
    no, actions, _code, resolved, taken, taken_hash, required, label, name, input_hash = asked[0]
    if action not in str(actions).split() or (action == "skip" and required):
        return Control.NOT_OFFERED
    if resolved:
        return Control.REPEATED if taken == action and taken_hash == request_hash else Control.SUPERSEDED
    if name is not None and not owns(locked[0][3], actor):
        return Control.OWNERS_ALONE
    try:
        word = None if name is None or action not in ("retry", "answer") else word_of(answer)
    except Invalid:
        return Control.MISANSWERED
    place = {"tenant": scope.tenant, "job_id": job_id}
    resolution = {**place, "id": attention_id, "action": action, "actor": actor, "request_hash": request_hash}
    yield Statement("resolve_attention", resolution)
    if action == "dismiss":
        yield from end_job(scope.tenant, job_id, outcome="abandoned", actor=actor, retention_ms=retention_ms)
        return Control.DONE
    job = JobChange(scope.tenant, job_id)
    if action == "skip":
        yield from skip(job, no)
    else:
        yield from judge(EffectRef(scope.tenant, locked[0][2], label, name or "", input_hash), word)
        if answer is not None:
            yield Statement("store_answer", {**place, "no": no, "name": f"answer/{attention_id}", "body": answer})
        yield Statement("reopen_task", {**place, "no": no})
        yield Statement("open_entries", place)
        job.moved("needs_attention", "open", required=bool(required))
    yield from write(job, retention_ms=retention_ms)
    return Control.DONE


@operation(Access.TRANSACTION)
def stop(ref: TaskRef) -> Program[Settled]:
    """The holder of a cancelled task has stopped; with the job's last one `stopping` ends (T16)."""
    yield Statement("lock_job", {"tenant": ref.tenant, "job_id": ref.job_id, "owner": None})
    gone = yield Statement("stop_entry", key_of(ref))
    if gone:
        yield from free(gone[0][1], ref.tenant, ref.job_id, ref.no, ref.fence)
        yield from last_stopped(ref.tenant, ref.job_id)
        return Settled(Verdict.ACCEPTED)
    entry = yield from entry_of(ref)
    verdict = yield from refused(ref, entry)
    return Settled(Verdict.ACCEPTED if verdict is Verdict.CANCELLED and entry is None else Verdict.STALE)


def end_job(tenant: str, job_id: str, *, outcome: str, actor: str, retention_ms: int) -> Program[None]:
    """T15 on every task that is not final, and the job's end. The job is locked.

    `revoked` goes on all entries, with no word about the holder, waiting for a claim in flight; only the next statement deletes
    those nobody holds. In one statement an entry slips through while it is claimed or handed back.
    """
    place = {"tenant": tenant, "job_id": job_id}
    yield Statement("revoke_entries", place)
    yield Statement("cancel_tasks", place)
    yield Statement("delete_unheld", place)
    yield Statement("close_attention", {**place, "actor": actor})
    yield Statement("cancel_job", {**place, "outcome": outcome, "actor": actor, "retention_ms": retention_ms})


def judge(effect: EffectRef, word: Word | None) -> Program[None]:
    """The owner's word about an effect of unknown outcome, if there is one; what was settled meanwhile stays as it is."""
    if word is not None:
        yield Statement("judge_effect", {**asdict(effect), **asdict(word)})


def skip(job: JobChange, no: int) -> Program[None]:
    """T19: optional work that asks is skipped, and what waits for it goes on or is skipped too."""
    yield Statement("skip_task", {"tenant": job.tenant, "job_id": job.job_id, "no": no})
    job.moved("needs_attention", "skipped", required=False)
    yield from settle_children(job, no, "skipped")


def last_stopped(tenant: str, job_id: str) -> Program[None]:
    """The version counts the end of `stopping`."""
    left = yield Statement("revoked_left", {"tenant": tenant, "job_id": job_id})
    if not left[0][0]:
        yield Statement("bump_version", {"tenant": tenant, "job_id": job_id})
