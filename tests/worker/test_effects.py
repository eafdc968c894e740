"""`ctx.effect` in both colours: what is called, how often, with which key, and what is known of it afterwards."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import pytest

from invariants import query
from outlast import (
    Ask,
    Confirmed,
    Context,
    Invalid,
    JobView,
    Outlast,
    Permanent,
    Plan,
    Principal,
    Refused,
    Retry,
    RetryPolicy,
    Snooze,
    SyncContext,
)
from outlast.worker.runtime import Options, Worker

WHO = Principal("acme", "ann")
TIMEOUT = 0.4
Start = Callable[..., Awaitable[Worker]]
Mode = Literal["idempotent", "reconcile", "neither"]


@dataclass
class Letter:
    to: str = "bob"


@dataclass
class Receipt:
    number: int


@dataclass
class Provider:
    """What the outside does at each call, in order: `ok` when nothing is written down any more. It honours keys."""

    script: list[str] = field(default_factory=list)
    finds: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    records: dict[str, Receipt] = field(default_factory=dict)
    entered: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)

    def send(self, key: str) -> tuple[Receipt, float]:
        """The answer, and how long it takes."""
        self.calls.append(key)
        self.entered.set()
        doing = self.script.pop(0) if self.script else "ok"
        if doing == "refuse":
            raise Refused("no_such_address", "There is nobody there.")
        if doing == "busy":
            raise Retry("provider_busy", after=0.01)
        if doing == "down":
            raise ConnectionError("it never got there")
        receipt = self.records.setdefault(key, Receipt(len(self.records) + 1))
        if doing == "lost":
            raise ConnectionError("the answer was lost")
        if doing == "exit":
            raise SystemExit(3)
        return receipt, 3 * TIMEOUT if doing == "slow" else 0.0

    def find(self, key: str) -> Confirmed[Receipt]:
        self.asked.append(key)
        if (self.finds.pop(0) if self.finds else "ok") == "down":
            raise ConnectionError("nobody answers")
        if key not in self.records:
            raise Refused
        return Confirmed(self.records[key])


def post(url: str, provider: Provider, mode: Mode, *, sync: bool, then: Callable[[int], None] | None = None) -> Outlast:
    """An application that mails one letter."""
    jobs = Outlast(url)
    options: dict[str, Any] = {"timeout": TIMEOUT}
    if mode == "idempotent":
        options["idempotent"] = True

    async def send(key: str) -> Receipt:
        receipt, seconds = provider.send(key)
        await asyncio.sleep(seconds)
        return receipt

    async def find(key: str) -> Confirmed[Receipt]:
        return provider.find(key)

    def send_sync(key: str) -> Receipt:
        receipt, seconds = provider.send(key)
        time.sleep(seconds)
        return receipt

    async def mail(ctx: Context, letter: Letter) -> Receipt:
        more = {**options, "reconcile": find} if mode == "reconcile" else options
        receipt = await ctx.effect("mail", send, input=letter, **more)
        if then is not None:
            then(ctx.fence)
        return cast("Receipt", receipt)

    def mail_sync(ctx: SyncContext, letter: Letter) -> Receipt:
        more = {**options, "reconcile": provider.find} if mode == "reconcile" else options
        receipt = ctx.effect("mail", send_sync, input=letter, **more)
        if then is not None:
            then(ctx.fence)
        return cast("Receipt", receipt)

    make = jobs.task(name="mail", max_attempts=4, retry=RetryPolicy(base=0))
    task: Any = make(mail_sync) if sync else make(mail)

    @jobs.kind("post")
    def plan(plan: Plan[Letter], letter: Letter) -> None:
        plan.task(task, label="Mail")

    return jobs


async def reached(jobs: Outlast, job: str, done: Callable[[JobView], bool] = lambda view: view.final) -> JobView:
    async with asyncio.timeout(15):
        while not done(view := await jobs.get(job, principal=WHO)):  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.03)
    return view


async def submit(jobs: Outlast) -> str:
    return (await jobs.submit(jobs.registry.kind("post"), Letter(), owner=WHO)).id


async def codes(jobs: Outlast, job: str) -> list[str | None]:
    return [attempt.code for attempt in (await jobs.recovery(job, principal=WHO)).attempts]


def states(url: str) -> list[str]:
    return [row["state"] for row in query(url, "select state from {effect} order by name")]


both = pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])


@both
async def test_an_outcome_is_typed_and_kept_for_the_next_attempt(url: str, start: Start, sync: bool) -> None:
    provider = Provider()

    def once(fence: int) -> None:
        if fence == 1:
            raise RuntimeError("after the effect")

    jobs = post(url, provider, "neither", sync=sync, then=once)
    await start(jobs)
    job = await submit(jobs)
    await reached(jobs, job)
    assert len(provider.calls) == 1
    assert await codes(jobs, job) == ["error", None]
    assert await jobs.result(job, principal=WHO) == {"number": 1}
    assert states(url) == ["confirmed"]
    assert (await jobs.recovery(job, principal=WHO)).effects == ()
    await jobs.close()


@both
@pytest.mark.parametrize("doing", ["lost", "down", "exit"])
async def test_g5_an_idempotent_call_is_repeated_with_the_same_key(url: str, start: Start, sync: bool, doing: str) -> None:
    provider = Provider([doing])
    jobs = post(url, provider, "idempotent", sync=sync)
    await start(jobs)
    job = await submit(jobs)
    await reached(jobs, job)
    first, second = provider.calls
    assert first == second
    assert len(provider.records) == 1
    assert await codes(jobs, job) == ["outcome_unknown", None]
    assert states(url) == ["confirmed"]
    await jobs.close()


@both
async def test_g4_a_lost_answer_is_reconciled_before_any_repeat(url: str, start: Start, sync: bool) -> None:
    provider = Provider(["lost"])
    jobs = post(url, provider, "reconcile", sync=sync)
    await start(jobs)
    job = await submit(jobs)
    await reached(jobs, job)
    assert provider.asked == provider.calls
    assert len(provider.calls) == 1
    assert await codes(jobs, job) == ["outcome_unknown", None]
    assert await jobs.result(job, principal=WHO) == {"number": 1}
    await jobs.close()


@both
async def test_g4_what_did_not_happen_is_begun_anew_by_the_attempt_that_found_out(url: str, start: Start, sync: bool) -> None:
    provider = Provider(["down"])
    jobs = post(url, provider, "reconcile", sync=sync)
    await start(jobs)
    job = await submit(jobs)
    await reached(jobs, job)
    assert (len(provider.calls), len(provider.asked), len(provider.records)) == (2, 1, 1)
    assert await codes(jobs, job) == ["outcome_unknown", None]
    await jobs.close()


@both
async def test_a_reconciliation_that_fails_is_tried_again_and_nothing_is_called_meanwhile(url: str, start: Start, sync: bool) -> None:
    provider = Provider(["lost"], finds=["down"])
    jobs = post(url, provider, "reconcile", sync=sync)
    await start(jobs)
    job = await submit(jobs)
    await reached(jobs, job)
    assert (len(provider.calls), len(provider.asked)) == (1, 2)
    assert await codes(jobs, job) == ["outcome_unknown", "outcome_unknown", None]
    await jobs.close()


ANSWERS_REFUSED: tuple[tuple[Any, str], ...] = (
    ("yes", "is text, not an object"),
    ({}, "/happened: missing"),
    ({"happened": "yes"}, "/happened"),
    ({"happened": True}, "/outcome: missing"),
    ({"happened": True, "outcome": "77"}, "/outcome: is text, not an object"),
    ({"happened": False, "outcome": {"number": 77}}, "/outcome: has no place here"),
    ({"happened": False, "sure": True}, "/sure"),
)


@both
@pytest.mark.parametrize("action", ["retry", "answer"])
async def test_with_neither_the_owner_is_asked(url: str, start: Start, sync: bool, action: Literal["retry", "answer"]) -> None:
    provider = Provider(["lost"])
    jobs = post(url, provider, "neither", sync=sync)
    await start(jobs)
    job = await submit(jobs)
    view = await reached(jobs, job, lambda view: view.attention is not None)
    assert view.attention is not None
    assert (view.attention.code, view.attention.actions) == ("effect_unknown", ("retry", "answer", "dismiss"))
    assert "'mail'" in view.attention.message
    assert await codes(jobs, job) == ["outcome_unknown", "effect_unknown"]
    (shown,) = (await jobs.recovery(job, principal=WHO)).effects
    assert (shown.label, shown.name, shown.state) == ("Mail", "mail", "unknown")
    if action == "answer":
        for given, said in ANSWERS_REFUSED:
            with pytest.raises(Invalid, match=said):
                await jobs.act(job, view.attention.id, action="answer", input=given, principal=WHO)
    told = {"happened": True, "outcome": {"number": 77}} if action == "answer" else None
    await jobs.act(job, view.attention.id, action=action, input=told, principal=WHO)
    await reached(jobs, job)
    assert len(provider.calls) == (2 if action == "retry" else 1)
    assert len(set(provider.calls)) == 1
    assert await jobs.result(job, principal=WHO) == {"number": 1 if action == "retry" else 77}
    await jobs.close()


@both
async def test_a_refusal_by_the_provider_is_known_and_permanent(url: str, start: Start, sync: bool) -> None:
    provider = Provider(["refuse"])
    jobs = post(url, provider, "neither", sync=sync)
    await start(jobs)
    job = await submit(jobs)
    view = await reached(jobs, job, lambda view: view.attention is not None)
    assert view.attention is not None
    assert (view.attention.code, view.attention.message) == ("no_such_address", "There is nobody there.")
    assert states(url) == ["refused"]
    await jobs.act(job, view.attention.id, action="retry", principal=WHO)
    await reached(jobs, job)
    assert len(set(provider.calls)) == 1
    assert len(provider.calls) == 2
    await jobs.close()


@both
async def test_a_busy_provider_is_asked_again_without_waiting_for_the_time_out(url: str, start: Start, sync: bool) -> None:
    provider = Provider(["busy", "busy"])
    jobs = post(url, provider, "neither", sync=sync)
    await start(jobs)
    job = await submit(jobs)
    await reached(jobs, job)
    assert await codes(jobs, job) == ["provider_busy", "provider_busy", None]
    assert len(provider.calls) == 3
    await jobs.close()


async def test_a_coroutine_ends_with_its_time_and_the_next_attempt_finds_out(url: str, start: Start) -> None:
    provider = Provider(["slow"])
    jobs = post(url, provider, "reconcile", sync=False)
    await start(jobs)
    job = await submit(jobs)
    await reached(jobs, job)
    assert len(provider.calls) == 1
    assert await codes(jobs, job) == ["outcome_unknown", None]
    await jobs.close()


async def test_a_plain_function_cannot_be_ended_and_its_late_result_counts(url: str, start: Start) -> None:
    provider = Provider(["slow"])
    jobs = post(url, provider, "neither", sync=True)
    await start(jobs)
    job = await submit(jobs)
    await reached(jobs, job)
    assert len(provider.calls) == 1
    assert await codes(jobs, job) == [None]
    await jobs.close()


async def test_e4_a_call_under_way_at_a_cancel_is_still_heard(url: str, start: Start) -> None:
    jobs = Outlast(url)
    began, go_on = threading.Event(), threading.Event()

    def send(key: str) -> str:
        began.set()
        go_on.wait(10)
        return key

    @jobs.task(name="post")
    def mail(ctx: SyncContext, letter: Letter) -> str:
        ctx.effect("first", send)
        return ctx.effect("second", send)

    worker = await start(jobs, Options(lease=1))
    job = await submit(jobs)
    await asyncio.to_thread(began.wait, 10)
    await jobs.cancel(job, principal=WHO)
    async with asyncio.timeout(10):
        while not any(hold.lost() for hold in worker._running.values()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    go_on.set()
    await reached(jobs, job, lambda view: not view.stopping)
    async with asyncio.timeout(10):
        while states(url) != ["confirmed"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert query(url, "select name from {effect}") == [{"name": "first"}], "no call starts after the worker learned of the cancel"
    await jobs.close()


def nowhere(key: str) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821
    raise AssertionError("must not run")


class Plain:
    """Cannot be stored."""


def plain(key: str) -> Plain:
    raise AssertionError("must not run")


async def coroutine(key: str) -> str:
    raise AssertionError("must not run")


def two(order: str, key: str) -> str:
    raise AssertionError("must not run")


def keyless() -> str:
    raise AssertionError("must not run")


def keyword_only(*, key: str) -> str:
    raise AssertionError("must not run")


def fine(key: str) -> str:
    return key


WRONG: dict[str, tuple[Any, dict[str, Any]]] = {
    "a blank name": (fine, {"name": " "}),
    "a long name": (fine, {"name": "x" * 201}),
    "a name with NUL": (fine, {"name": "a\x00b"}),
    "a name that is none": (fine, {"name": 7}),
    "an input that cannot be stored": (fine, {"input": Plain()}),
    "an input with NaN": (fine, {"input": [float("nan")]}),
    "an input that is too large": (fine, {"input": "x" * 2_000_000}),
    "no function": ("send", {}),
    "a call that is made already": (None, {}),
    "a coroutine function in a thread": (coroutine, {}),
    "a call that takes more": (two, {}),
    "a call that takes nothing": (keyless, {}),
    "a call that takes the key by name": (keyword_only, {}),
    "a reconciliation that takes more": (fine, {"reconcile": two}),
    "a reconciliation that is none": (fine, {"reconcile": "find"}),
    "a coroutine function to reconcile": (fine, {"reconcile": coroutine}),
    "both": (fine, {"reconcile": fine, "idempotent": True}),
    "a doubtful flag": (fine, {"idempotent": "yes"}),
    "no time at all": (fine, {"timeout": 0}),
    "negative time": (fine, {"timeout": -1}),
    "endless time": (fine, {"timeout": float("inf")}),
    "time that is none": (fine, {"timeout": float("nan")}),
    "a flag as time": (fine, {"timeout": True}),
    "time in words": (fine, {"timeout": "30"}),
    "an annotation that nobody knows": (nowhere, {}),
    "an annotation that cannot be read back": (plain, {}),
}


@pytest.mark.timeout(90)
async def test_what_cannot_be_is_refused_before_anything_is_written(url: str, start: Start) -> None:
    jobs = Outlast(url)

    @jobs.task(name="post", max_attempts=1)
    def mail(ctx: SyncContext, letter: Letter) -> str:
        call, options = WRONG[letter.to]
        return cast("Any", ctx.effect)(options.get("name", "mail"), call, **{k: v for k, v in options.items() if k != "name"})

    await start(jobs)
    for name in WRONG:
        job = (await jobs.submit(mail, Letter(name), owner=WHO)).id
        view = await reached(jobs, job, lambda view: view.final or view.attention is not None)
        assert view.attention is not None, name
        assert view.attention.code == "invalid", name
        assert not query(url, "select name from {effect}"), name
    await jobs.close()


async def test_an_effect_twice_in_one_attempt_is_a_mistake(url: str, start: Start) -> None:
    jobs, calls = Outlast(url), []

    @jobs.task(name="post", max_attempts=1)
    def mail(ctx: SyncContext, letter: Letter) -> str:
        for given in (None, {"a": 1, "b": 2}, {"b": 2, "a": 1}):
            ctx.effect("mail", calls.append, input=given)
        return "never"

    await start(jobs)
    view = await reached(jobs, await submit(jobs), lambda view: view.attention is not None)
    assert view.attention is not None
    assert view.attention.code == "invalid"
    assert len(set(calls)) == 2, "another input is another effect; the order of keys is none"
    await jobs.close()


async def test_a_lambdas_outcome_that_cannot_be_kept_leaves_the_outcome_unknown(url: str, start: Start) -> None:
    jobs = Outlast(url)

    @jobs.task(name="post")
    def mail(ctx: SyncContext, letter: Letter) -> None:
        cast("Any", ctx.effect)("mail", lambda key: Receipt(1))

    await start(jobs)
    view = await reached(jobs, await submit(jobs), lambda view: view.attention is not None)
    assert view.attention is not None
    assert view.attention.code == "result_invalid"
    assert "annotate the function" in view.attention.message
    assert states(url) == ["unknown"]
    await jobs.close()


async def test_a_coroutine_that_nobody_can_run_was_not_begun(url: str, start: Start) -> None:
    jobs = Outlast(url)

    @jobs.task(name="post")
    def mail(ctx: SyncContext, letter: Letter) -> None:
        cast("Any", ctx.effect)("mail", lambda key: coroutine(key))  # noqa: PLW0108 - that it is one must not be seen

    await start(jobs)
    view = await reached(jobs, await submit(jobs), lambda view: view.attention is not None)
    assert view.attention is not None
    assert view.attention.code == "invalid"
    assert states(url) == ["refused"]
    await jobs.close()


@both
async def test_a_reconciliation_of_another_kind_is_a_mistake_and_settles_nothing(url: str, start: Start, sync: bool) -> None:
    provider = Provider(["lost"])
    jobs = post(url, provider, "reconcile", sync=sync)
    provider.find = cast("Any", lambda key: None)  # type: ignore[method-assign]
    await start(jobs)
    view = await reached(jobs, await submit(jobs), lambda view: view.attention is not None)
    assert view.attention is not None
    assert view.attention.code == "invalid"
    assert states(url) == ["unknown"]
    await jobs.close()


async def test_a_handler_may_catch_what_its_call_raised(url: str, start: Start) -> None:
    jobs = Outlast(url)

    async def send(key: str) -> str:
        raise ConnectionError("lost")

    @jobs.task(name="post")
    async def mail(ctx: Context, letter: Letter) -> str:
        try:
            return await ctx.effect("mail", send, idempotent=True)
        except ConnectionError:
            return "went on without it"

    await start(jobs)
    job = await submit(jobs)
    await reached(jobs, job)
    assert await jobs.result(job, principal=WHO) == "went on without it"
    assert [e.state for e in (await jobs.recovery(job, principal=WHO)).effects] == ["unknown"]
    await jobs.close()


RAISED: dict[str, BaseException] = {
    "Permanent": Permanent("gone", "It is gone."),
    "Ask": Ask("well", "Well?"),
    "Snooze": Snooze(3600),
    "CancelledError": asyncio.CancelledError(),
    "Invalid": Invalid("Something else."),
    "a group": ExceptionGroup("of the call", [Refused("no", "No.")]),
}


@both
@pytest.mark.timeout(90)
async def test_whatever_else_a_call_raises_its_outcome_is_unknown(url: str, start: Start, sync: bool) -> None:
    jobs = Outlast(url)

    async def send(letter: Letter) -> str:
        raise RAISED[letter.to]

    def send_now(letter: Letter) -> str:
        raise RAISED[letter.to]

    make = jobs.task(name="post", max_attempts=1)
    if sync:

        @make
        def mail_now(ctx: SyncContext, letter: Letter) -> str:
            return ctx.effect("mail", lambda key: send_now(letter))

    else:

        @make
        async def mail(ctx: Context, letter: Letter) -> str:
            async with asyncio.TaskGroup() as group:  # which would pass over a cancellation
                made = group.create_task(ctx.effect("mail", lambda key: send(letter)))
            return made.result()

    post = cast("Any", jobs.registry.kind("post"))
    await start(jobs)
    asked = {name: (await jobs.submit(post, Letter(name), owner=WHO)).id for name in RAISED}
    for name, job in asked.items():
        view = await reached(jobs, job, lambda view: view.attention is not None)
        assert view.attention is not None
        assert view.attention.code == "outcome_unknown", name
    assert set(states(url)) == {"unknown"}
    await jobs.close()


async def test_a_retry_of_a_reconciliation_keeps_its_time(url: str, start: Start) -> None:
    jobs = Outlast(url)

    def find(key: str) -> Confirmed[None]:
        raise Retry("busy", after=3600)

    def send(key: str) -> None:
        raise ConnectionError("lost")

    @jobs.task(name="post", retry=RetryPolicy(base=0))
    def mail(ctx: SyncContext, letter: Letter) -> None:
        ctx.effect("mail", send, reconcile=find, timeout=0.1)

    await start(jobs)
    job = await submit(jobs)
    view = await reached(jobs, job, lambda view: view.state == "retrying")
    async with asyncio.timeout(10):
        while await codes(jobs, job) != ["outcome_unknown", "busy"]:  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.03)
    (task,) = await jobs.tasks(job, principal=WHO)
    assert task.next_attempt_at is not None
    assert (task.next_attempt_at - view.accepted_at).total_seconds() > 3500
    await jobs.close()


@both
async def test_the_words_of_a_task_group_are_heard(url: str, start: Start, sync: bool) -> None:
    jobs = Outlast(url)

    async def ask(letter: Letter) -> None:
        raise Permanent("gone", "It is gone.") if letter.to == "gone" else Ask("well", "Well?")

    if sync:

        @jobs.task(name="post")
        def mail_now(ctx: SyncContext, letter: Letter) -> None:
            asyncio.run(several(letter))

    else:

        @jobs.task(name="post")
        async def mail(ctx: Context, letter: Letter) -> None:
            await several(letter)

    async def several(letter: Letter) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask(letter))
            group.create_task(ask(Letter("bob")))

    await start(jobs)
    for to, code, attempts in (("bob", "well", ["well"]), ("gone", "gone", ["gone"])):
        job = (await jobs.submit(cast("Any", jobs.registry.kind("post")), Letter(to), owner=WHO)).id
        view = await reached(jobs, job, lambda view: view.attention is not None)
        assert view.attention is not None
        assert (view.attention.code, await codes(jobs, job)) == (code, attempts)
    await jobs.close()


@both
async def test_a_wait_that_outlasts_the_attempt_uses_none(url: str, start: Start, sync: bool) -> None:
    """The call's time is longer than the attempt's: what cannot be cancelled is waited for without holding the task."""
    provider, jobs = Provider(), Outlast(url)

    async def send(key: str) -> str:
        provider.send(key)
        raise ConnectionError("lost")

    def send_now(key: str) -> str:
        provider.send(key)
        raise ConnectionError("lost")

    def found(key: str) -> Confirmed[str]:
        provider.asked.append(key)
        return Confirmed("found")

    make = jobs.task(name="post", max_attempts=2, deadline=2, retry=RetryPolicy(base=0))
    if sync:

        @make
        def mail_now(ctx: SyncContext, letter: Letter) -> str:
            return ctx.effect("mail", send_now, reconcile=found, timeout=3)

    else:

        @make
        async def mail(ctx: Context, letter: Letter) -> str:
            return await ctx.effect("mail", send, reconcile=found, timeout=600)

    await start(jobs)
    job = await submit(jobs)
    await reached(jobs, job)
    assert await codes(jobs, job) == ["outcome_unknown", None]
    assert (len(provider.calls), len(provider.asked)) == (1, 1)
    (row,) = query(url, "select timeout_ms from {effect}")
    assert row["timeout_ms"] == 3000 if sync else 1 < row["timeout_ms"] <= 2000, "a coroutine ends with its attempt"
    await jobs.close()


async def test_rerun_of_what_was_cancelled_keeps_the_key_and_of_what_completed_does_not(url: str, start: Start) -> None:
    provider = Provider(["refuse"])
    jobs = post(url, provider, "neither", sync=False)
    await start(jobs)
    job = await submit(jobs)
    await reached(jobs, job, lambda view: view.attention is not None)
    await jobs.cancel(job, principal=WHO)
    again = (await jobs.rerun(job, principal=WHO)).id
    await reached(jobs, again)
    once_more = (await jobs.rerun(again, principal=WHO)).id
    await reached(jobs, once_more)
    first, second, third = provider.calls
    assert first == second
    assert third != second
    await jobs.close()
