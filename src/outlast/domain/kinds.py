"""What an application registers: tasks, and kinds of job with their plans. Values of the public API, without any I/O."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload
from uuid import UUID

from outlast.domain import defaults
from outlast.domain.errors import Invalid
from outlast.domain.evolution import F, Upgrades
from outlast.domain.limits import Limit
from outlast.domain.model import JobView, Principal
from outlast.domain.payload import check_names, check_text
from outlast.domain.retry import MAX_SECONDS, RetryPolicy
from outlast.domain.values import MISSING, decode, encode


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


class _Struct(Protocol):
    __struct_fields__: ClassVar[tuple[str, ...]]


class _Pydantic(Protocol):
    def model_dump_json(self) -> str: ...


Model: TypeAlias = _Dataclass | _Struct | _Pydantic | Mapping[str, object]
"""An input: dataclass, msgspec Struct, pydantic model or TypedDict."""
Storable: TypeAlias = (
    Model | Sequence[object] | AbstractSet[object] | Mapping[Any, object] | float | Decimal | date | time | timedelta | UUID | Enum | None
)
"""What a handler, a step or a save may return."""

In = TypeVar("In", bound=Model)
Item = TypeVar("Item", bound=Storable)
Out_co = TypeVar("Out_co", covariant=True)
V_contra = TypeVar("V_contra", contravariant=True)

MAX_NAME = 100
MAX_INT32 = 2**31 - 1
MAX_QUOTA = 100_000
"""Jobs: more cannot be counted quickly enough while others wait for the same quota."""
_SHORTEST_DEADLINE = 0.001
_DIGITS = len(str(MAX_INT32))


class TaskOptions(TypedDict, total=False):
    """Of the task decorator; `plan.task` and `plan.each` override them for one place in a plan.

    queue "default"; priority 0, lower first; max_attempts 5 (crashes count, snoozes and hand-backs do not); retry; deadline of
    one attempt in seconds, 600; limit, how many of its concurrency key run at once, none.
    """

    queue: str
    priority: int
    max_attempts: int
    retry: RetryPolicy
    deadline: float
    limit: Limit


def check_name(name: str, *, what: str) -> str:
    """A name of a kind, task or queue: letters, digits and `_ . -`, since it stands in routes, metrics and handler keys."""
    check_text(name, what=what, limit=MAX_NAME)
    if not all(c.isalnum() or c in "_.-" for c in name):
        raise Invalid(f"The {what} may have letters, digits and _ . - only.")
    return name


def check_options(options: TaskOptions) -> TaskOptions:
    """The options as they are; Invalid for what no task can have."""
    known = TaskOptions.__optional_keys__
    unknown = sorted(set(options) - known)
    if unknown:
        raise Invalid(f"Unknown task option {unknown[0]!r}; known are {', '.join(sorted(known))}.")
    if "queue" in options:
        check_name(options["queue"], what="queue name")
    priority = options.get("priority", 0)
    if isinstance(priority, bool) or not isinstance(priority, int) or not -MAX_INT32 <= priority <= MAX_INT32:
        raise Invalid(f"The option priority must be a whole number from -{MAX_INT32} to {MAX_INT32}; lower runs first.")
    attempts = options.get("max_attempts", 1)
    if isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= MAX_INT32:
        raise Invalid(f"The option max_attempts must be a whole number from 1 to {MAX_INT32}.")
    deadline = options.get("deadline", 1.0)
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or not _SHORTEST_DEADLINE <= deadline <= MAX_SECONDS:
        raise Invalid("The option deadline must be seconds, above 0 and finite.")
    if not isinstance(options.get("retry", RetryPolicy()), RetryPolicy):
        raise Invalid("The option retry must be a RetryPolicy.")
    if "limit" in options and not isinstance(options["limit"], Limit):
        raise Invalid('The option limit must be a Limit: a key and its slots, for example Limit("mail-provider", 2).')
    return options


class AnyTask(Generic[Out_co]):
    """What `ctx.output` and `jobs.result` read: Task or ItemTask."""

    name: str
    handler: Callable[..., Any]
    returns: object
    options: TaskOptions
    item_type: object = MISSING  # of an ItemTask


class Target(Generic[V_contra]):
    """How a result reaches what the user may be editing. Made by `jobs.target`.

    fn(db, ref, expected, value) changes what `ref` names where its version is `expected`: the new version, or None, nothing changed.
    """

    def __init__(self, name: str, fn: Callable[[Any, str, str, V_contra], Any]) -> None:
        self.name = check_name(name, what="name of a target")
        self.fn = fn


@dataclass(frozen=True, slots=True)
class Permission:
    """Asked before each attempt: whether the owner may still have this done. `view` makes of a stored job what `ask` is shown."""

    ask: Callable[[Principal, JobView], object]
    view: Callable[[Any], JobView]


class Kind(Generic[In]):
    """A registered type of job. A task is a kind of its own name, with a plan of one."""

    def __init__(
        self,
        name: str,
        *,
        version: int,
        input_type: object,
        build: Callable[[Plan[In], In], None],
        label: str | None = None,
        promise: float | tuple[float, float] | None = None,
        success: str = "",
        cancel_note: str = "",
        keep_claims: Sequence[str] = (),
        roles: Sequence[str] = (),
        target: Target[Any] | None = None,
        unique_scope: Literal["owner", "tenant"] = "owner",
        permission: Permission | None = None,
        quota: int | None = None,
    ) -> None:
        self.name = check_name(name, what="kind name")
        if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= MAX_INT32:
            raise Invalid(f"The version of a kind must be a whole number from 1 to {MAX_INT32}.")
        self.version = version
        self.upgrades = Upgrades(name, version)
        self.input_type = input_type
        self.build = build
        self.label = check_text(label if label is not None else name, what="label", limit=defaults.MAX_LABEL)
        self.promise = _checked_promise(promise)
        for said in (success, cancel_note):
            if not isinstance(said, str):
                raise Invalid("success= and cancel_note= take sentences for people, or nothing.")
        self.success = success
        self.cancel_note = cancel_note
        self.keep_claims = check_names(keep_claims, what="claim", limit=MAX_NAME)
        if target is not None and not isinstance(target, Target):
            raise Invalid("target= takes what @jobs.target made.")
        self.target = target
        self.roles = frozenset(check_names(roles, what="role", limit=MAX_NAME))
        if unique_scope not in ("owner", "tenant"):
            raise Invalid("unique_scope is 'owner' or 'tenant': whose active jobs a unique key is compared with.")
        self.unique_scope: Literal["owner", "tenant"] = unique_scope
        self.permission = permission
        if quota is not None and (isinstance(quota, bool) or not isinstance(quota, int) or not 1 <= quota <= MAX_QUOTA):
            raise Invalid(f"The quota of a kind is a whole number from 1 to {MAX_QUOTA}, or None: how many open jobs an owner may have.")
        self.quota = quota

    def upgrade(self, *, from_version: int) -> Callable[[F], F]:
        """Registers a function from the input of `from_version`, as a dict of JSON values, to that of the next version.

        It is pure, and runs wherever an input of that version is met: at a submit, a rerun, and before each attempt of an old job.
        Invalid: not below `version`, or a second one for a version.
        """

        def register(fn: F) -> F:
            self.upgrades.add(from_version, fn)
            return fn

        return register

    def read(self, text: str, version: int, *, limit: int = sys.maxsize) -> tuple[str, In]:
        """The input of a readable version: as JSON text of the present one, and as what a handler gets. Invalid if it does not fit."""
        if version == self.version:
            return text, cast("In", decode(text, self.input_type, forbid_unknown=True, what="input"))
        present = self.upgrades.apply(text, version, limit=limit)
        what = f"input, brought up from version {version},"
        try:
            return present, cast("In", decode(present, self.input_type, forbid_unknown=True, what=what))
        except Invalid as error:
            raise Invalid(error.message, pointers=("",)) from None  # its places are not those of what was sent

    def active_scope(self, owner: str) -> str:
        """In which jobs of the tenant a unique key is looked for: those of this kind, or of this kind and owner."""
        return self.name if self.unique_scope == "tenant" else f"{self.name}/{owner}"

    def plan(self, value: In) -> tuple[TaskSpec, ...]:
        """The tasks of a job with this input, validated; Invalid when the plan cannot be admitted."""
        plan = Plan[In](self)
        self.build(plan, value)
        return freeze(plan)


def _checked_promise(promise: float | tuple[float, float] | None) -> float | tuple[float, float] | None:
    given: object = promise
    seconds = given if isinstance(given, tuple) and len(given) == 2 else () if given is None else (given,)  # noqa: PLR2004 - a pair
    if any(isinstance(one, bool) or not isinstance(one, int | float) or not 0 < one < math.inf for one in seconds):
        raise Invalid("promise= is seconds to usable, above 0, or a pair of them: to usable, and to completed.")
    return promise


def handler_key(kind: Kind[Any], task: AnyTask[Any], version: int | None = None) -> str:
    """What an entry names, and a worker must know to claim it: kind, schema version (the present one, unless given) and task."""
    return f"{kind.name}@{kind.version if version is None else version}:{task.name}"


def parse_handler(key: str) -> tuple[str, int, str]:
    """Kind, version and task of a handler key. Version 0, which no kind has, where somebody wrote into the store what is none."""
    kind, _, rest = key.partition("@")
    version, _, task = rest.partition(":")
    return kind, int(version) if version.isascii() and version.isdecimal() and len(version) <= _DIGITS else 0, task


class Task(Kind[In], AnyTask[Out_co]):
    """A boundary worth recovering: leased, fenced, retried and stored by itself. Made by `jobs.task`."""

    def __init__(self, name: str, *, handler: Callable[..., Any], input_type: object, returns: object, options: TaskOptions) -> None:
        self.handler = handler
        self.returns = returns
        self.options = check_options(options)
        super().__init__(name, version=1, input_type=input_type, build=self._alone)

    def _alone(self, plan: Plan[In], _input: In) -> None:
        plan.task(self, label=self.name)


class ItemTask(AnyTask[Out_co], Generic[In, Item, Out_co]):
    """A task whose handler takes an item as third parameter; for `plan.each` only."""

    def __init__(
        self,
        name: str,
        *,
        handler: Callable[..., Any],
        input_type: object,
        item_type: object,
        returns: object,
        options: TaskOptions,
    ) -> None:
        self.name = check_name(name, what="task name")
        self.handler = handler
        self.input_type = input_type
        self.item_type = item_type
        self.returns = returns
        self.options = check_options(options)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedTask:
    """A task's place in a plan; goes into `after=`."""

    label: str
    plan: object = field(repr=False)


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task as it is admitted. `parents` are (place, soft) of those it waits for; soft: any end of the parent satisfies."""

    no: int
    label: str
    handler: str
    queue: str
    priority: int
    required: bool
    usable: bool
    max_attempts: int
    base_ms: int
    cap_ms: int
    window_ms: int
    deadline_ms: int
    item: str | None
    parents: tuple[tuple[int, bool], ...]
    slot_key: str | None = None
    slot_limit: int | None = None


@dataclass(slots=True, eq=False)
class _Draft:
    place: PlannedTask
    task: AnyTask[Any]
    options: TaskOptions
    after: tuple[PlannedTask, ...]
    usable: bool
    optional: bool
    item: str | None


class Plan(Generic[In]):
    """Filled by a kind's function at admission, then fixed. Invalid, nothing stored: a label twice, no required task, too many tasks."""

    def __init__(self, kind: Kind[In]) -> None:
        self.kind = kind
        self.drafts: list[_Draft] = []

    @overload
    def task(
        self,
        task: Task[In, Any],
        *,
        label: str,
        after: Sequence[PlannedTask] = (),
        usable: bool = False,
        **options: Unpack[TaskOptions],
    ) -> PlannedTask: ...
    @overload
    def task(
        self,
        task: Task[In, Any],
        *,
        label: str,
        after: Sequence[PlannedTask] = (),
        optional: bool,
        **options: Unpack[TaskOptions],
    ) -> PlannedTask: ...
    def task(
        self,
        task: Task[In, Any],
        *,
        label: str,
        after: Sequence[PlannedTask] = (),
        usable: bool = False,
        optional: bool = False,
        **options: Unpack[TaskOptions],
    ) -> PlannedTask:
        """Waits for all of `after`.

        usable: its result can be opened before the job ends. optional: its failure takes nothing away. Never both.
        """
        if not isinstance(task, Task):
            raise Invalid("plan.task takes what @jobs.task made; a task with an item goes into plan.each.")
        return self._add(
            task,
            task.input_type,
            label=label,
            after=after,
            usable=usable,
            optional=optional,
            item=None,
            options=options,
        )

    def each(
        self,
        task: ItemTask[In, Item, Any],
        items: Iterable[Item],
        *,
        label: Callable[[Item], str],
        after: Sequence[PlannedTask] = (),
        optional: bool = False,
        **options: Unpack[TaskOptions],
    ) -> list[PlannedTask]:
        """One task per item, in order; the item is stored with its task."""
        if not isinstance(task, ItemTask):
            raise Invalid("plan.each takes a task whose handler has an item as third parameter.")
        places: list[PlannedTask] = []
        for item in items:
            body = encode(item, limit=defaults.MAX_INPUT, what="item", hint=task.item_type)
            places.append(
                self._add(
                    task,
                    task.input_type,
                    label=label(item),
                    after=after,
                    usable=False,
                    optional=optional,
                    item=body,
                    options=options,
                )
            )
        return places

    def _add(
        self,
        task: AnyTask[Any],
        input_type: object,
        *,
        label: str,
        after: Sequence[PlannedTask],
        usable: bool,
        optional: bool,
        item: str | None,
        options: TaskOptions,
    ) -> PlannedTask:
        if input_type != self.kind.input_type:
            raise Invalid(f"The task {task.name!r} takes another input than the kind {self.kind.name!r}.")
        if usable and optional:
            raise Invalid(f"Task {len(self.drafts)} of the plan cannot be usable and optional at once.")
        check_text(label, what="label", limit=defaults.MAX_LABEL)
        if len(self.drafts) >= defaults.MAX_TASKS:
            raise Invalid(f"A plan has at most {defaults.MAX_TASKS} tasks; split the work into several jobs.")
        if isinstance(after, PlannedTask):
            raise Invalid("after= takes a list of planned tasks.")
        for parent in after:
            if not isinstance(parent, PlannedTask) or parent.plan is not self:
                raise Invalid("after= takes what plan.task and plan.each of this same plan returned.")
        place = PlannedTask(label, self)
        self.drafts.append(_Draft(place, task, check_options(options), tuple(dict.fromkeys(after)), usable, optional, item))
        return place


def freeze(plan: Plan[Any]) -> tuple[TaskSpec, ...]:
    """The validated tasks of a filled plan, in plan order.

    A plan built by `task` and `each` cannot have a cycle: `after` takes only what is there already.
    """
    if not plan.drafts:
        raise Invalid(f"The plan of the kind {plan.kind.name!r} has no task.")
    labels: dict[str, int] = {}
    for no, draft in enumerate(plan.drafts):
        first = labels.setdefault(draft.place.label, no)
        if first != no:
            raise Invalid(f"Tasks {first} and {no} of the plan have the same label; labels are unique in a job.")
    if all(draft.optional for draft in plan.drafts):
        raise Invalid("A plan needs at least one required task.")
    if sum(len(draft.after) for draft in plan.drafts) > defaults.MAX_EDGES:
        raise Invalid(f"A plan has at most {defaults.MAX_EDGES} edges; let tasks wait for one that gathers, instead of each for all.")
    number = {draft.place: no for no, draft in enumerate(plan.drafts)}
    optional = {draft.place: draft.optional for draft in plan.drafts}
    specs: list[TaskSpec] = []
    for no, draft in enumerate(plan.drafts):
        options: TaskOptions = {**draft.task.options, **draft.options}
        retry = options.get("retry", RetryPolicy())
        limit = options.get("limit")
        specs.append(
            TaskSpec(
                no=no,
                label=draft.place.label,
                handler=handler_key(plan.kind, draft.task),
                queue=options.get("queue", defaults.QUEUE),
                priority=options.get("priority", defaults.PRIORITY),
                required=not draft.optional,
                usable=draft.usable,
                max_attempts=options.get("max_attempts", defaults.MAX_ATTEMPTS),
                base_ms=retry.base_ms,
                cap_ms=retry.cap_ms,
                window_ms=retry.window_ms,
                deadline_ms=max(1, round(options.get("deadline", defaults.DEADLINE) * 1000)),
                item=draft.item,
                parents=tuple((number[p], not draft.optional and optional[p]) for p in draft.after),
                slot_key=None if limit is None else limit.key,
                slot_limit=None if limit is None else limit.slots,
            )
        )
    return tuple(specs)
