"""Which operations meet in which scene: every unordered pair, each operation with itself included."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from interleave import acts
from interleave.explorer import Act
from interleave.scenes import JOB, OTHER, ROOT
from outlast.domain.model import UniquePolicy


@dataclass(frozen=True, slots=True)
class Pair:
    """Two operations on one scene."""

    scene: str
    one: Act
    other: Act

    @property
    def name(self) -> str:
        return f"{self.scene}: {self.one.name} x {self.other.name}"


def _among(scene: str, sides: Sequence[Act]) -> Iterator[Pair]:
    for one, other in itertools.combinations_with_replacement(sides, 2):
        yield Pair(scene, one, other)


def _between(scene: str, some: Sequence[Act], others: Sequence[Act]) -> Iterator[Pair]:
    for one, other in itertools.product(some, others):
        yield Pair(scene, one, other)


# In the grand scene: tasks 0, 1 and 8 (optional) are held, 4 and 11 ready, 7 waits for its time, 5 (optional) and 6 ask.
_OF_ENTRY = (
    acts.claim(10, "v", 4, 11),
    acts.claim(1, "v", 4, 11),
    acts.renew(0),
    acts.renew(0, 1),
    acts.fail(0),
    acts.snooze(0),
    acts.hand_back(0),
    acts.step(0),
    acts.wake(0, 7),
    acts.retry_lost(0),
)
_OF_ATTEMPT = (
    acts.finish(0),
    acts.finish(1),
    acts.finish(0, 1),
    acts.give_up(0),
    acts.give_up(8),
    acts.ask(0),
    acts.ask(8),
    acts.give_up_lost(0),
    acts.give_up_lost(8),
)
_OF_OWNER = (
    acts.act(5, "retry"),
    acts.act(5, "answer"),
    acts.act(5, "skip"),
    acts.act(5, "dismiss"),
    acts.act(6, "retry"),
    acts.cancel(),
    acts.close_window(5),
    acts.close_window(6),
)

ENTRY_WITH_ENTRY = (
    *_among("grand", _OF_ENTRY),
    Pair("grand", acts.step(0), acts.step(0, '"else"')),
    Pair("grand", acts.claim(1, "u", 4, 11), acts.claim(1, "v", 4, 11)),
    *_among("queue", (acts.claim(2, "u", 0, 1, 2), acts.claim(1, "v", 0, 1, 2), acts.wake(3), acts.cancel())),
    *_between("queue", (acts.claim(2, "u", 0, 1, 2), acts.claim(1, "u", 0, 1, 2)), (acts.claim(2, "v", 0, 1, 2),)),
)
ENTRY_WITH_ATTEMPT = tuple(_between("grand", _OF_ENTRY, _OF_ATTEMPT))
ENTRY_WITH_OWNER = tuple(_between("grand", _OF_ENTRY, _OF_OWNER))
ATTEMPT_WITH_ATTEMPT = tuple(_among("grand", _OF_ATTEMPT))
ATTEMPT_WITH_OWNER = tuple(_between("grand", _OF_ATTEMPT, _OF_OWNER))
OWNER_WITH_OWNER = (
    *_among("grand", _OF_OWNER),
    Pair("grand", acts.act(5, "retry"), acts.act(5, "retry", " again")),
    Pair("grand", acts.cancel(), acts.cancel("bob")),
)

# Where the next step may end the job.
_LAST = (
    acts.finish(0),
    acts.fail(0),
    acts.give_up(0),
    acts.ask(0),
    acts.retry_lost(0),
    acts.give_up_lost(0),
    acts.act(1, "retry"),
    acts.act(1, "skip"),
    acts.act(1, "dismiss"),
    acts.close_window(1),
    acts.cancel(),
    acts.renew(0),
    acts.step(0),
)
LAST_OF_JOB = tuple(_among("last", _LAST))

# After a cancel: the holders stop, or the sweep ends what they left.
_STOPS = (acts.stop(0), acts.stop_lost(0))
_LATE = (
    acts.stop(1),
    acts.stop_lost(1),
    acts.finish(0),
    acts.fail(0),
    acts.give_up(0),
    acts.ask(0),
    acts.snooze(0),
    acts.hand_back(0),
    acts.renew(0, 1),
    acts.step(0),
    acts.claim(10, "v"),
    acts.wake(),
    acts.retry_lost(0),
    acts.give_up_lost(0),
    acts.act(5, "retry"),
    acts.act(5, "skip"),
    acts.close_window(5),
    acts.cancel(),
)
AFTER_CANCEL = (
    *_among("cancelled", _STOPS),
    *_between("cancelled", _STOPS, _LATE),
    *_among("cancelled_once", _STOPS),
    *_between("cancelled_once", _STOPS, (acts.cancel(), acts.renew(0), acts.claim(10, "v"))),
)

# In the effects scene: 0 is held, 1 has its own intent, 2 met that of an earlier claim, 3 asks.
# In reruns two jobs are about one effect, which in reruns_met the first of them has begun.
_OF_LEDGER = (
    acts.begin(0),
    acts.begin(1),
    acts.begin(2, 2),
    acts.retake(2, 2),
    acts.settle(1, "confirmed"),
    acts.settle(1, "refused"),
    acts.settle(1, "unknown"),
    acts.settle(2, "confirmed"),
    acts.settle(2, "refused"),
    acts.settle(2, "unknown"),
    acts.settle(2, "confirmed", 2),
)
_AROUND_IT = (
    acts.renew(0, 1),
    acts.finish(0),
    acts.fail(0),
    acts.give_up(0),
    acts.ask(0),
    acts.snooze(0),
    acts.hand_back(0),
    acts.step(0),
    acts.retry_lost(0),
    acts.retry_lost(1),
    acts.give_up_lost(0),
    acts.claim(10, "v"),
    acts.cancel(),
)
_ASKED = (
    acts.act(3, "retry", fence=2),
    acts.act(3, "answer", " yes", fence=2, answer='{"happened":true,"outcome":"of the owner"}'),
    acts.act(3, "answer", " no", fence=2, answer='{"happened":false}'),
    acts.act(3, "dismiss", fence=2),
    acts.cancel(),
    acts.settle(3, "confirmed"),
    acts.settle(3, "refused"),
    acts.settle(3, "unknown"),
)
_SHARED = tuple(act for job in (JOB, OTHER) for act in (acts.begin(0, job=job), acts.retake(0, job=job)))
_MET = (
    *_SHARED,
    acts.settle(0, "confirmed", root=ROOT),
    acts.settle(0, "refused", root=ROOT),
    acts.settle(0, "unknown", root=ROOT),
)
EFFECTS = (
    *_among("effects", _OF_LEDGER),
    *_between("effects", _OF_LEDGER, _AROUND_IT),
    *_among("effects", _ASKED),
    *_among("reruns", _SHARED),
    *_among("reruns_met", _MET),
)

# A job comes into being.
_SAME = acts.admit()
ADMISSION = (
    Pair("empty", _SAME, _SAME),
    Pair("empty", _SAME, acts.admit(OTHER, name="the same request")),
    Pair("empty", _SAME, acts.admit(OTHER, fingerprint="f2", name="another request")),
    Pair("empty", acts.admit(key=None, name="keyless"), acts.admit(key=None, name="keyless")),
    Pair("empty", acts.admit_two("k1", "k2"), acts.admit_two("k2", "k1")),
    Pair("empty", acts.admit_two("k1", "k2"), acts.admit_two("k1", "k2")),
    Pair("empty", acts.admit_two("k1", "k2", all_or_none=True), acts.admit_two("k2", "k1", all_or_none=True)),
    Pair("empty", acts.admit_two("k1", "k2", all_or_none=True), acts.admit(OTHER, fingerprint="f2", name="another request")),
    *_between("empty", (_SAME,), (acts.claim(10, "v", 0), acts.cancel(), acts.wake(), acts.act(0, "retry"))),
    Pair("empty", acts.admit(due=True, name="due later"), acts.wake(0)),
    *_between(
        "grand", (acts.admit(OTHER, name="again"), acts.admit(OTHER, fingerprint="f2", name="otherwise")), (*_OF_OWNER[3:], acts.finish(0))
    ),
)

# One active job for a unique key.
THIRD, FOURTH = (OTHER[:-1] + n for n in "34")
_POLICIES: tuple[UniquePolicy, ...] = ("existing", "reject", "replace")
_SUBMITS = tuple(acts.submit(policy, key="a") for policy in _POLICIES)
_OTHERS = tuple(acts.submit(policy, id=THIRD, key="b") for policy in _POLICIES)
_NEW = tuple(acts.submit(policy, id=THIRD, key="b", replaces=None) for policy in _POLICIES)
_ENDS_OF_ACTIVE = (acts.finish(0), acts.give_up(0), acts.ask(0), acts.give_up_lost(0), acts.cancel())
UNIQUE = (
    *_between("empty", (acts.submit("existing", key="a"), acts.submit("reject", key="a"), acts.submit("replace", key="a")), _NEW),
    *(Pair("empty", one, one) for one in _SUBMITS),
    *_between("empty", _SUBMITS, (acts.submit("existing", id=THIRD, key="a"), acts.submit("replace", id=THIRD, key="a", replaces=None))),
    *_between("active", _SUBMITS, _OTHERS),
    *(Pair("active", acts.submit(policy), acts.submit(policy)) for policy in _POLICIES),
    *_between(
        "active",
        _SUBMITS,
        (acts.claim(10, "v", 4), acts.finish(0), acts.renew(0), acts.step(0), acts.hand_back(0), acts.fail(0), acts.retry_lost(0)),
    ),
    *_between("active", _SUBMITS, (acts.cancel(), acts.act(5, "retry"), acts.act(5, "skip"), acts.act(5, "dismiss"), acts.close_window(5))),
    *_between("active_last", _SUBMITS, _ENDS_OF_ACTIVE),
    *_between("active_asks", _SUBMITS, (acts.act(0, "retry"), acts.act(0, "answer"), acts.act(0, "dismiss"), acts.close_window(0))),
    *_between("active", (acts.submit("existing", key="k1"),), (acts.submit("replace", key="a"), acts.cancel())),
    *_between(
        "actives",
        (
            acts.submit_many(("u", "replace"), ("v", "replace"), ids=(THIRD, FOURTH), keys=("a", "b")),
            acts.submit_many(("v", "existing"), ("u", "replace"), ids=(THIRD, FOURTH), keys=(None, None)),
        ),
        (
            acts.submit_many(("v", "replace"), ("u", "replace"), ids=(THIRD[:-1] + "5", THIRD[:-1] + "6"), keys=("b", "a")),
            acts.submit_many(("v", "replace"), ("u", "existing"), ids=(THIRD[:-1] + "5", THIRD[:-1] + "6"), keys=("d", "c")),
            acts.submit("replace", id=THIRD[:-1] + "7", unique="v", replaces=OTHER),
            acts.cancel(),
        ),
    ),
    *_between(
        "empty",
        (acts.submit_many(("u", "existing"), ("v", "reject"), ids=(JOB, OTHER), keys=("a", "b")),),
        (acts.submit_many(("v", "existing"), ("u", "replace"), ids=(THIRD, FOURTH), keys=("d", "c")),),
    ),
)

# An operator takes up again what needs attention: in the grand scene 6 offers a retry, and 5 with other actions.
REPLAY = (
    Pair("grand", acts.replayed(), acts.replayed(2)),
    Pair("grand", acts.replayed(), acts.replayed()),
    *_between("grand", (acts.replayed(),), _OF_OWNER),
    *_between(
        "grand", (acts.replayed(),), (acts.finish(0, 1), acts.give_up(0), acts.ask(8), acts.give_up_lost(0), acts.claim(10, "v", 4, 11))
    ),
    *_between("last", (acts.replayed(),), (acts.finish(0), acts.act(1, "skip"), acts.close_window(1), acts.cancel())),
    *_between("cancelled", (acts.replayed(),), (acts.stop(0), acts.cancel())),
    *_between("active_asks", (acts.replayed(),), _SUBMITS),
)

# Concurrency keys: claimers, with each other and with what frees or keeps a slot. A claim may take less than there is: it looked before.
_CLAIM_KEYED = acts.claim_keyed(10, "u", 1, 2, 4, "slot k 1")
_AROUND_SLOTS = (
    acts.finish(0),
    acts.finish(0, 3),
    acts.rest(3),
    acts.rest(0),
    acts.give_up(3),
    acts.snooze(0),
    acts.hand_back(0),
    acts.retry_lost(3),
    acts.cancel(),
    acts.renew(0, 3),
)
LIMITS = (
    *_among("keyed", (_CLAIM_KEYED, acts.claim_keyed(1, "v", 1, 2, "slot k 1"))),
    *_between("keyed", (_CLAIM_KEYED,), _AROUND_SLOTS),
    *_between("keyed", (acts.finish(0), acts.retry_lost(0)), (acts.finish(0, 3), acts.hand_back(0), acts.rest(0))),
    *_between("keyed_cancelled", (acts.claim_keyed(10, "u", "slot k 1"),), (acts.stop(0), acts.stop_lost(3))),
    *_among("keyed_new", (acts.claim_keyed(10, "u", 0, 1, "slot k 1", "slot k 2"),)),
)

# A queue is paused and resumed while its tasks are claimed: 0 to 2 are ready, 3 waits for its time.
_CLAIM = acts.claim(2, "u", 0, 1, 2)
QUEUES = (
    *_between("queue", (acts.pause(), acts.resume()), (_CLAIM,)),
    *_between("paused", (acts.pause(), acts.resume()), (_CLAIM,)),
    Pair("queue", acts.pause(1), acts.pause(3)),
    Pair("queue", acts.pause(1), acts.pause(1)),
    *(Pair(scene, acts.pause(), acts.resume()) for scene in ("queue", "paused")),
    Pair("paused", acts.resume(2), acts.resume(4)),
)

# Quotas. In counted one job is open, its task held; in counted_twice one that has ended is counted too; in uncounted the open one is not.
# A finish stands for all that ends a job: what the admission reads of it is the job's state alone.
_AT_QUOTA = (acts.put(quota=1), acts.put(THIRD, key="b", quota=1))
_ONE_LEFT = (acts.put(quota=2), acts.put(THIRD, key="b", quota=2))
QUOTAS = (
    Pair("empty", *_AT_QUOTA),
    Pair("empty", acts.put(), acts.put(THIRD)),
    Pair("empty", acts.put(key=None), acts.put(key=None)),
    *(Pair(scene, *_ONE_LEFT) for scene in ("counted", "counted_twice", "uncounted")),
    Pair("counted", *_AT_QUOTA),
    *(Pair(scene, acts.put(quota=1), acts.finish(0)) for scene in ("counted", "counted_twice", "uncounted")),
    Pair("counted", acts.put(quota=2), acts.finish(0)),
    Pair("counted", acts.put(unique="u", policy="replace"), acts.put(THIRD, key="b")),
    Pair("counted", acts.put(unique="u", policy="replace"), acts.finish(0)),
    Pair("counted", acts.put_many(OTHER, THIRD, quota=3, keys=("a", "b")), acts.put(FOURTH, key="d", quota=3)),
)

# What has ended is deleted when its time is over: in ended, and in reruns_ended two jobs that have effects in common; in buried the key
# of a job that was purged answers until the clock moves on.
_AGAIN = (acts.admit(OTHER, name="again"), acts.admit(OTHER, fingerprint="f2", name="otherwise"))
_LATER = tuple(replace(act, ticked=True) for act in (*_AGAIN, acts.admit(THIRD, name="again too")))
RETENTION = (
    *_between("ended", (acts.purge(),), (acts.purge(), acts.rerun_of(OTHER), acts.cancel(), acts.act(1, "retry"), *_AGAIN)),
    *_between("last", (acts.purge(),), (acts.finish(0), acts.cancel())),
    *_between("cancelled_once", (acts.purge(),), (acts.stop(0), acts.stop_lost(0))),
    *_between("reruns_ended", (acts.purge(),), (acts.purge(OTHER), acts.rerun_of(THIRD, root=ROOT))),
    *_between("reruns_left", (acts.purge(),), (acts.begin(0, job=OTHER), acts.settle(0, "confirmed", root=ROOT))),
    *_between("buried", (acts.drop_expired(),), (acts.drop_expired(), *_LATER[:2])),
    Pair("buried", _LATER[0], _LATER[2]),
)
FORGETTING = (
    *_between("ended", (acts.erase(),), (acts.purge(), acts.rerun_of(OTHER), _AGAIN[0])),
    Pair("reruns_ended", acts.erase(), acts.erase(OTHER)),
    *_between("last", (acts.erase(),), (acts.finish(0), acts.act(1, "retry"), acts.renew(0))),
    *_between("queue", (acts.erase(),), (acts.claim(2, "u", 0, 1, 2), acts.admit(OTHER, name="again"))),
)

# Schedules: whoever fires a due time, and what their owners do meanwhile.
_OF_SCHEDULE = (
    acts.make("of another input", input='{"n": 1}'),
    acts.make("of another rule", every=60),
    acts.unschedule(),
    acts.pause_schedule(),
    acts.resume_schedule(),
)
_LATE_FIRING = acts.fire(3, ticked=True)
SCHEDULES = (
    *_among("schedule", (acts.fire(1), acts.fail_schedule(1))),
    *_between("schedule", (acts.fire(1), acts.fail_schedule(1)), (acts.fire(2), acts.fail_schedule(2), _LATE_FIRING)),
    *_between("schedule", (acts.fire(1),), (acts.make("the same"), *_OF_SCHEDULE)),
    *_between("schedule", (_LATE_FIRING, acts.fail_schedule(1)), (_OF_SCHEDULE[1], acts.unschedule(), acts.pause_schedule())),
    *_among("schedule", _OF_SCHEDULE[1:4]),
    *_among("schedule_paused", _OF_SCHEDULE[1:]),
    Pair("schedule_paused", acts.fire(1), acts.resume_schedule()),
    *_between("schedule", (acts.note_schedule(1),), (acts.note_schedule(2), acts.fire(1), acts.fail_schedule(1), acts.unschedule())),
    *_between("schedule", (acts.fire(1, quota=2),), (acts.fire(2, quota=2), acts.put(quota=2), acts.unschedule())),
    *_among("empty", (acts.make("one"), acts.make("other", input='{"n": 1}'), acts.unschedule())),
)
