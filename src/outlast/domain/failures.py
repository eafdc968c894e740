"""How a handler ends without a value. Code and message are shown to the owner, the cause only to operators.

Exception
├── Failure
│   ├── Permanent       no retry can help
│   ├── Retry           transient; uses an attempt
│   ├── Refused         an outside call surely did not happen
│   └── Ask             the owner decides; uses no attempt
└── Snooze              run again later; uses no attempt
BaseException
└── Stopped             raised by ctx.check(); let it through
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, cast

from outlast.domain.errors import Invalid, OutlastError
from outlast.domain.payload import check_code
from outlast.domain.retry import MAX_SECONDS

StopReason = Literal["cancelled", "replaced", "deadline", "drained"]


class Failure(Exception):
    """A failure with a stable code. The code is lower-case words joined by underscores, at most 64 characters."""

    def __init__(self, code: str, message: str = "") -> None:
        if not check_code(code):
            raise Invalid("A failure code is lower-case letters, digits and underscores, at most 64, and starts with a letter.")
        super().__init__(code, message)
        self.code = code
        self.message = message


class Permanent(Failure):
    """No retry can help: a required task needs attention, an optional one fails."""


class Retry(Failure):
    """Transient, as any other exception is; uses an attempt. `after`: how long the next one waits at least, beside the backoff.

    It is seconds, or a provider's Retry-After as its text is: seconds or an HTTP date, by this machine's clock. What is larger than ten
    years counts as that, but no retry is later than its policy's window; what cannot be used (unreadable, negative, NaN, a date that has
    passed) counts as none given: the backoff decides, and no key rests.

    pause_key: the task's concurrency key rests as long, at most a day: no task of it starts before.
    """

    def __init__(self, code: str = "transient", message: str = "", *, after: float | str | None = None, pause_key: bool = False) -> None:
        super().__init__(code, message)
        self.after = after
        self.pause_key = pause_key


class Refused(Failure):
    """An outside call surely did not happen. Not caught by the handler it is permanent."""

    def __init__(self, code: str = "refused", message: str = "") -> None:
        super().__init__(code, message)


class Ask(Failure):
    """The owner decides; uses no attempt. `dismiss` is always offered; for an answer use `ctx.ask`."""

    def __init__(self, code: str, message: str, *, actions: Sequence[Literal["retry", "skip"]] = ("retry",)) -> None:
        super().__init__(code, message)
        if not isinstance(actions, Iterable) or any(a not in ("retry", "skip") for a in actions):
            raise Invalid("The actions of Ask are 'retry' and 'skip'; 'dismiss' is always offered, an answer is asked for by ctx.ask.")
        self.actions: tuple[str, ...] = tuple(actions)


class Snooze(Exception):
    """Run again after so many seconds; uses no attempt."""

    def __init__(self, after: float) -> None:
        if isinstance(after, bool) or not isinstance(after, int | float) or not 0 <= after <= MAX_SECONDS:
            raise Invalid(f"Snooze takes seconds, from 0 to {MAX_SECONDS} (ten years).")
        super().__init__(after)
        self.after = after


class Stopped(BaseException):
    """The attempt has no authority any more: let it through. No Exception, so that `except Exception` does not swallow it."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason: StopReason = reason


def gravest(error: BaseException, doubts: Sequence[BaseException]) -> BaseException:
    """What an attempt ended with, of all that a group holds (asyncio.TaskGroup raises one); any other exception is it itself.

    The gravest goes first: the authority is lost, no retry can help, the owner decides, a retry with its time, a call of unknown outcome
    (one of `doubts`, as a whole), anything else, and a snooze only where it is all there is.
    """
    return min(_leaves(error, doubts), key=lambda one: _gravity(one, doubts))


def _leaves(error: BaseException, doubts: Sequence[BaseException]) -> Iterator[BaseException]:
    if is_one_of(error, doubts) or not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
        yield from _leaves(inner, doubts)


def _gravity(error: BaseException, doubts: Sequence[BaseException]) -> tuple[int, float]:
    doubtful = is_one_of(error, doubts)
    permanent = isinstance(error, Permanent | Refused) or (isinstance(error, OutlastError) and not error.retryable)
    order = (isinstance(error, Stopped), permanent and not doubtful, isinstance(error, Ask) and not doubtful)
    if True in order:
        return order.index(True), 0
    if isinstance(error, Retry) and not doubtful:
        return len(order), -error.after if isinstance(error.after, int | float) and error.after > 0 else 0
    rest = (doubtful, isinstance(error, Failure), not isinstance(error, Snooze), True)
    return len(order) + 1 + rest.index(True), 0


def is_one_of(error: BaseException, others: Sequence[BaseException]) -> bool:
    """Whether it is one of these very exceptions, whatever they say of their equality."""
    return any(error is other for other in others)
