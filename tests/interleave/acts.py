"""The operations that meet, each as one side of a pair, and which of them meet where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from interleave.explorer import Act
from interleave.scenes import (
    CALL,
    HANDLERS,
    HORIZON_MS,
    HOURLY,
    JOB,
    LEASE_MS,
    OTHER,
    OWNER,
    OWNERS,
    QUEUE,
    RETENTION_MS,
    SCHEDULE,
    START_MS,
    TENANT,
    WINDOW_MS,
    job,
    ref,
    task,
)
from outlast.domain.access import Scope
from outlast.domain.effects import EffectRef, Intent
from outlast.domain.model import UniquePolicy
from outlast.domain.retry import RetryIn
from outlast.domain.schedules import DueSchedule, Every, firing, read, stored
from outlast.domain.work import Admitted, Asked, Claimed, Control, Failed, Finished, LostLease, OpenWindow, Renewal, Swept
from outlast.store.program import Operation
from outlast.store.programs import (
    admission,
    claims,
    completion,
    control,
    effects,
    forgetting,
    queues,
    replay,
    rerun,
    retention,
    schedules,
    slots,
    steps,
    sweep,
)


def _claimed(rows: list[Claimed]) -> object:
    return tuple((row.ref.no, row.ref.fence, row.spent, row.ref.holder) for row in rows)


def _failed(no: int, *, permanent: bool = False) -> Failed:
    return Failed(ref(no), f"w{no}", "error", "It failed.", permanent=permanent)


def _finished(no: int) -> Finished:
    return Finished(ref(no), f"w{no}", f'"output of {no}"', f"ref/{no}")


# -- what a holder does ---------------------------------------------------------------------------------------


def claim(limit: int, holder: str, *nos: int) -> Act:
    """Claims up to so many of the scene's ready tasks, which are named so that each may be found locked."""
    return Act(f"claim {limit}", lambda: claims.claim(QUEUE, HANDLERS, limit, f"{holder}:9", LEASE_MS), passes=nos, shown=_claimed)


def claim_keyed(limit: int, holder: str, *passes: int | str) -> Act:
    """Claims up to so many of the tasks that have a key; `passes` names tasks, and slots as `slot k 1`, that may be found locked."""
    return Act(
        f"claim keyed {limit}",
        lambda: slots.claim_keyed(QUEUE, HANDLERS, limit, f"{holder}:9", LEASE_MS),
        passes=passes,
        shown=lambda turn: _claimed(list(turn.claimed)),
    )


def rest(no: int) -> Act:
    """A failure that lets the task's key rest."""
    failed = replace(_failed(no), pause_ms=20_000)
    return Act(f"rest {no}", lambda: completion.retry(failed, 3_000))


def renew(*nos: int) -> Act:
    batch = [Renewal(ref(no), f"progress of {no}") for no in nos]
    return Act(f"renew {' '.join(map(str, nos))}", lambda: claims.renew(batch, 2 * LEASE_MS), passes=nos)


def finish(*nos: int) -> Act:
    batch = [_finished(no) for no in nos]
    return Act(f"finish {' '.join(map(str, nos))}", lambda: completion.finish(batch, RETENTION_MS))


def fail(no: int) -> Act:
    """As the worker does: what is left of the budget is read first, and decides."""

    def then(value: Any) -> Operation[Any] | None:
        return completion.retry(_failed(no), value.delay_ms) if isinstance(value, RetryIn) else None

    return Act(f"fail {no}", lambda: completion.budget(_failed(no), 0.5), chain=then)


def give_up(no: int) -> Act:
    failure = _failed(no, permanent=True)
    return Act(f"give up {no}", lambda: completion.give_up(failure, window_ms=WINDOW_MS, retention_ms=RETENTION_MS))


def ask(no: int) -> Act:
    question = Asked(ref(no), f"w{no}", "question", "Well?", ("retry", "answer"))
    return Act(f"ask {no}", lambda: completion.ask(question, window_ms=WINDOW_MS, retention_ms=RETENTION_MS))


def snooze(no: int) -> Act:
    return Act(f"snooze {no}", lambda: claims.snooze(ref(no), 7_000))


def hand_back(no: int) -> Act:
    return Act(f"hand back {no}", lambda: claims.hand_back([ref(no)]))


def step(no: int, body: str = '"kept"') -> Act:
    return Act(f"step {no}", lambda: steps.store_step(ref(no), "s", body))


def begin(no: int, fence: int = 1, *, job: str = JOB) -> Act:
    return Act(f"begin {no}.{fence}{_of(job)}", lambda: effects.begin(replace(ref(no, fence), job_id=job), CALL))


def retake(no: int, fence: int = 1, *, job: str = JOB) -> Act:
    return Act(f"retake {no}.{fence}{_of(job)}", lambda: effects.retake(replace(ref(no, fence), job_id=job), CALL))


def settle(no: int, to: Literal["confirmed", "refused", "unknown"], fence: int = 1, *, job: str = JOB, root: str = JOB) -> Act:
    """What the claim of that fence reports about its own intent."""
    effect = EffectRef(TENANT, root, f"t{no}", CALL.name, CALL.input_hash)
    outcome = f'"of {fence}{_of(job)}"' if to == "confirmed" else None
    return Act(f"settle {no}.{fence}{_of(job)} {to}", lambda: effects.settle(effect, Intent(job, no, fence), to, outcome))


def _of(job: str) -> str:
    return "" if job == JOB else " other"


def stop(no: int) -> Act:
    return Act(f"stop {no}", lambda: control.stop(ref(no)))


# -- what an owner does ---------------------------------------------------------------------------------------


def cancel(actor: str = OWNER) -> Act:
    return Act(
        "cancel",
        lambda: control.cancel(OWNERS, JOB, version=None, actor=actor, retention_ms=RETENTION_MS),
        ends_job=Control.DONE,
        client=True,
    )


def act(no: int, action: str, by: str = "", *, fence: int = 1, answer: str = '"yes"') -> Act:
    def start() -> Operation[Control]:
        return control.act(
            OWNERS,
            JOB,
            f"{no}.{fence}",
            action=action,
            answer=answer if action == "answer" else None,
            request_hash=f"{action}{by}",
            actor=OWNER,
            retention_ms=RETENTION_MS,
        )

    return Act(f"{action} {no}{by}", start, ends_job=Control.DONE if action == "dismiss" else None, client=True)


def replayed(n: int = 1) -> Act:
    """An operator's replay; `n` tells two of them apart."""

    def start() -> Operation[Control]:
        return replay.replay(
            Scope(TENANT, None),
            JOB,
            audit_id=f"019a0000-0000-7000-8000-0000000000a{n}",
            actor=f"op{n}",
            reason="The provider is back.",
            request_hash="retry",
            retention_ms=RETENTION_MS,
        )

    return Act(f"replay {n}", start, client=True)


def pause(n: int = 1) -> Act:
    """An operator pauses the queue; `n` tells two of them apart."""
    return _of_queue("pause", n)


def resume(n: int = 2) -> Act:
    return _of_queue("resume", n)


def _of_queue(name: Literal["pause", "resume"], n: int) -> Act:
    change = queues.pause if name == "pause" else queues.resume
    deed = {"audit_id": f"019a0000-0000-7000-8000-0000000000b{n}", "tenant": TENANT, "actor": f"op{n}", "reason": "The printer is down."}
    return Act(f"{name} {n}", lambda: change(QUEUE, **deed), client=True)


def admit(id: str = JOB, *, key: str | None = "k1", fingerprint: str = "f1", due: bool = False, name: str = "") -> Act:
    wanted = job(task(0), task(1, after=(0,)), id=id, key=key, fingerprint=fingerprint, not_before_ms=START_MS + 50_000 if due else None)
    return Act(f"admit {name or key}", lambda: admission.admit([wanted]), client=True)


def admit_two(first: str, second: str, *, all_or_none: bool = False) -> Act:
    """Two keys in one submission, in that order."""
    ids = {"k1": JOB, "k2": OTHER} if first == "k1" else {"k1": OTHER.replace("2", "3"), "k2": OTHER.replace("2", "4")}
    wanted = (
        sorted((job(task(0), id=ids[key], key=key) for key in (first, second)), key=lambda one: one.key or "")
        if all_or_none
        else [job(task(0), id=ids[key], key=key) for key in (first, second)]
    )
    run = admission.admit_all if all_or_none else admission.admit
    return Act(f"admit {first} {second}{' or none' if all_or_none else ''}", lambda: run(wanted), client=True)


def submit(policy: UniquePolicy, *, id: str = OTHER, key: str | None = None, unique: str = "u", replaces: str | None = JOB) -> Act:
    """A request with a unique key."""
    wanted = job(task(0), task(1, after=(0,)), id=id, key=key, unique=unique, policy=policy)
    return Act(
        f"submit {unique} {policy}{f' {key}' if key else ''}",
        lambda: admission.admit_alone(wanted),
        ends_job=Admitted(id, replayed=False, replaced=replaces) if policy == "replace" else None,
        client=True,
    )


def submit_many(*wanted: tuple[str, UniquePolicy], ids: Sequence[str], keys: Sequence[str | None]) -> Act:
    """Several unique keys in one submission, in that order."""
    named = zip(wanted, ids, keys, strict=True)
    jobs = [job(task(0), id=one, key=key, unique=unique, policy=policy) for (unique, policy), one, key in named]
    name = " ".join(f"{unique} {policy}" for unique, policy in wanted)
    return Act(f"submit many {name}", lambda: admission.admit_all(jobs), client=True)


def put(id: str = OTHER, *, key: str | None = "a", quota: int = 1, unique: str | None = None, policy: UniquePolicy = "existing") -> Act:
    """A request under a quota."""
    wanted = job(task(0), id=id, key=key, quota=quota, unique=unique, policy=policy)
    return Act(f"put {key} within {quota}{f' {unique} {policy}' if unique else ''}", lambda: admission.admit_alone(wanted), client=True)


def put_many(*ids: str, quota: int, keys: Sequence[str | None]) -> Act:
    """Several under a quota in one submission."""
    wanted = [job(task(0), id=one, key=key, quota=quota) for one, key in zip(ids, keys, strict=True)]
    return Act(f"put many {' '.join(map(str, keys))} within {quota}", lambda: admission.admit_all(wanted), client=True)


# -- what a sweep does ----------------------------------------------------------------------------------------


def wake(*nos: int) -> Act:
    return Act("wake", lambda: claims.wake(10), ticked=True, passes=nos, shown=lambda woken: (woken.count, woken.queues))


def _lost(no: int, *, revoked: bool = False) -> LostLease:
    return LostLease(TENANT, JOB, no, 1, revoked)


def retry_lost(no: int) -> Act:
    return Act(f"retry lost {no}", lambda: sweep.retry_lost(_lost(no), 3_000), ticked=True)


def give_up_lost(no: int) -> Act:
    return Act(
        f"give up lost {no}",
        lambda: sweep.give_up_lost(_lost(no), window_ms=WINDOW_MS, retention_ms=RETENTION_MS),
        ticked=True,
        passes=("job",),
    )


def stop_lost(no: int) -> Act:
    return Act(f"stop lost {no}", lambda: sweep.stop_lost(_lost(no, revoked=True)), ticked=True, passes=("job",))


def close_window(no: int) -> Act:
    over = OpenWindow(TENANT, JOB, f"{no}.1")
    return Act(
        f"close window {no}",
        lambda: sweep.close_window(over, retention_ms=RETENTION_MS),
        ticked=True,
        passes=("job",),
        ends_job=Swept.ABANDONED,
    )


# -- what retention does --------------------------------------------------------------------------------------


def purge(*jobs: str) -> Act:
    """Deletes what is due of these jobs."""
    ids = jobs or (JOB,)
    named = tuple(name for name, one in (("job", JOB), ("other", OTHER)) if one in ids)
    return Act(
        f"purge {' '.join(named)}", lambda: retention.purge(TENANT, ids, horizon_ms=HORIZON_MS), ticked=True, passes=named, shown=tuple
    )


def drop_expired() -> Act:
    return Act("drop expired", lambda: retention.drop_expired(9), ticked=True, passes=("key",))


def rerun_of(id: str, *, key: str = "again", root: str = JOB) -> Act:
    """A new job of the same request as one that has ended."""
    wanted = replace(job(task(0), id=id, key=key), rerun_of=JOB, effect_root=root)
    return Act(f"rerun {key}", lambda: rerun.admit_rerun(OWNERS, wanted), client=True)


def erase(*jobs: str) -> Act:
    """A step of the deletion of the person whose jobs these are."""
    audit_id = "019a0000-0000-7000-8000-0000000000f1"
    ids = jobs or (JOB,)
    return Act(f"erase {len(ids)}", lambda: forgetting.erase(TENANT, OWNER, ids, audit_id=audit_id, actor="op"), client=True)


# -- schedules ------------------------------------------------------------------------------------------------


def _due() -> DueSchedule:
    """What a scheduler has read at the start of the scene."""
    hour = 3_600_000
    return DueSchedule(SCHEDULE, 1, HOURLY, START_MS - 3 * hour, START_MS - hour, START_MS)


def fire(n: int, *, ticked: bool = False, quota: int | None = None) -> Act:
    """One of several schedulers; `n` tells them apart. ticked: it was frozen between its decision and its write."""
    row = _due()
    decided = firing(read(row.definition.rule), next_ms=row.next_ms, now_ms=row.now_ms, anchor_ms=row.made_ms, catch_up=2)
    ids = (f"{OTHER[:-2]}{n}{place}" for place in range(len(decided.due)))
    jobs = [job(task(0), id=one, key=f"schedule s {at}", quota=quota) for one, at in zip(ids, decided.due, strict=True)]
    assert len(jobs) == 2
    name = f"fire {n}{' late' if ticked else ''}{'' if quota is None else f' within {quota}'}"
    return Act(name, lambda: schedules.fire(row, decided, jobs), ticked=ticked, passes=("schedule",))


def fail_schedule(n: int) -> Act:
    """A scheduler whose kind's function has raised."""
    return Act(f"fail schedule {n}", lambda: schedules.fail(_due(), f"plan_failed_{n}", START_MS + 3_600_000))


def note_schedule(n: int) -> Act:
    """A scheduler that does not know the kind."""
    return Act(f"note schedule {n}", lambda: schedules.note(_due(), f"not_registered_{n}"))


def make(name: str, **change: Any) -> Act:
    """The owner's schedule, as it stands but for a change."""
    if "every" in change:
        change["rule"] = stored(Every(change.pop("every")))
    return Act(f"make {name}", lambda: schedules.make(SCHEDULE, replace(HOURLY, **change)), client=True)


def unschedule() -> Act:
    return Act("unschedule", lambda: schedules.remove(SCHEDULE), client=True)


def pause_schedule(actor: str = OWNER) -> Act:
    return Act("pause schedule", lambda: schedules.pause(SCHEDULE, actor), client=True)


def resume_schedule() -> Act:
    return Act("resume schedule", lambda: schedules.resume(SCHEDULE), client=True)
