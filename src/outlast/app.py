"""`Outlast`: what an application makes once, at import, to register its kinds and tasks and to submit and follow jobs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, Unpack, overload

from outlast._extras import web_application
from outlast.client import calls, outbox, views
from outlast.client._async import Client
from outlast.client._sync import SyncClient
from outlast.client.views import check_base_url
from outlast.domain.defaults import Settings
from outlast.domain.errors import Invalid
from outlast.domain.kinds import In, Item, ItemTask, Kind, Permission, Plan, Storable, Target, Task, TaskOptions
from outlast.domain.model import JobView, Principal, TargetRef, Unique
from outlast.domain.registry import Registry
from outlast.domain.values import MISSING, Hints, check_hint, hints, takes
from outlast.store.open import open_store, parse
from outlast.store.protocol import Store
from outlast.store.sessions.opening import check_factory
from outlast.store.sessions.transaction import Sessions
from outlast.worker.completion import Completion
from outlast.worker.context import Context, SyncContext

if TYPE_CHECKING:
    from starlette.requests import Request

    from outlast.http.app import Application

Out = TypeVar("Out", bound=Storable)
V = TypeVar("V")

_WITH_INPUT, _WITH_ITEM = 2, 3
_OF_TARGET = 4
_OF_PERMISSION = 2


class TaskDecorator(Protocol):
    """`@jobs.task` or `@jobs.task(max_attempts=5)`."""

    @overload
    def __call__(
        self,
        fn: Callable[[Context, In], Coroutine[Any, Any, Completion[Out]]] | Callable[[SyncContext, In], Completion[Out]],
        /,
    ) -> Task[In, Out]: ...
    @overload
    def __call__(self, fn: Callable[[Context, In], Coroutine[Any, Any, Out]] | Callable[[SyncContext, In], Out], /) -> Task[In, Out]: ...
    @overload
    def __call__(
        self,
        fn: Callable[[Context, In, Item], Coroutine[Any, Any, Completion[Out]]] | Callable[[SyncContext, In, Item], Completion[Out]],
        /,
    ) -> ItemTask[In, Item, Out]: ...
    @overload
    def __call__(
        self, fn: Callable[[Context, In, Item], Coroutine[Any, Any, Out]] | Callable[[SyncContext, In, Item], Out], /
    ) -> ItemTask[In, Item, Out]: ...
    @overload
    def __call__(self, *, name: str = ..., **options: Unpack[TaskOptions]) -> TaskDecorator: ...


class Outlast(Client):
    """Durable jobs on one store. Opens nothing before the first call; safe before fork. One per process, made at import.

    store: postgresql://... or sqlite:///path. session, sync_session: make the db of `ctx.commit`, on the store's database. base_url:
    where the HTTP API is mounted, a path or an address. Invalid for anything else.
    """

    registry_type: ClassVar[type[Registry]] = Registry
    """Of what registers: an integration may have its own."""

    def __init__(
        self,
        store: str,
        *,
        session: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
        sync_session: Callable[[], AbstractContextManager[Any]] | None = None,
        base_url: str = "",
        settings: Settings | None = None,
    ) -> None:
        parse(store)
        check_base_url(base_url)
        self._url = store
        self.registry = self.registry_type()
        self.settings = settings or Settings()
        check_factory(session, asynchronous=True)
        check_factory(sync_session, asynchronous=False)
        self.sessions = Sessions(session, sync_session)
        self._opened: Store | None = None
        super().__init__(calls.Application(self.registry, self.settings, base_url.rstrip("/")), self._open, self.sessions)
        self._sync = SyncClient(self._app, self._open, self.sessions)
        self.identify: Callable[[Request], Principal | Awaitable[Principal | None] | None] | None = None

    @property
    def url(self) -> str:
        """Where the store is."""
        return self._url

    def _open(self) -> Store:
        if self._opened is None:
            self._opened = open_store(self.url)
        return self._opened

    def use(self, url: str) -> None:
        """Another store, before the first call: a command's --store goes before the address in the code."""
        parse(url)
        if self._opened is not None:
            raise Invalid("The store is open already; name another one before the first call.")
        self._url = url

    def adopt(self, store: Store) -> None:
        """A store that is open already, in place of one of its own: a worker's in the same process, or one of a test."""
        self._opened = store

    @property
    def sync(self) -> SyncClient:
        """The same calls for blocking code."""
        return self._sync

    @property
    def task(self) -> TaskDecorator:
        """Registers a task. `async def` takes Context, `def` SyncContext; then the input; then, for plan.each, the item."""
        return _Decorator(self.registry)

    def asgi(self, *, identify: Callable[[Request], Principal | Awaitable[Principal | None] | None]) -> Application:
        """HTTP API, page and components as one ASGI application, at any prefix. identify: who calls; None is answered 401.

        Needs the extra `web`. Its method `stop` ends event streams and waits, for a server that drains.
        """
        if not callable(identify) or not takes(identify, 1):
            raise Invalid("asgi(identify=...) takes a function of the request that returns a Principal, or None for nobody.")
        self.identify = identify
        return web_application(self.desk, identify)

    def outbox_row(
        self,
        kind: Kind[In],
        input: In,
        *,
        owner: Principal,
        id: str | None = None,
        unique: Unique | None = None,
        target: TargetRef | None = None,
        not_before: datetime | None = None,
    ) -> dict[str, str | int | None]:
        """A row that asks for the job, by column, for an outbox in another database: insert it in your own transaction there.

        Nothing is written and no store is asked. `id` is the job's idempotency key, a new UUID unless given; one that was used before is
        that job. Raises what a submit would refuse without asking the store: Invalid, NotRegistered (tasks too), Forbidden.
        """
        return outbox.outbox_row(self._app, kind, input, owner=owner, id=id, unique=unique, target=target, not_before=not_before)

    def target(self, name: str) -> Callable[[Callable[[Any, str, str, V], Awaitable[str | None] | str | None]], Target[V]]:
        """Registers how a result reaches what its owner may be editing, of a function (db, ref, expected, value).

        It changes what `ref` names where its version is `expected`, on db, and returns the new version; or None, with nothing changed.
        It may run several times, and in the API process too, when the owner applies a parked result.
        """

        def register(fn: Callable[[Any, str, str, V], Awaitable[str | None] | str | None]) -> Target[V]:
            if not _has(fn, _OF_TARGET):
                raise Invalid(f"The function of a target takes db, ref, expected and value ({_where(fn)}).")
            target = Target[V](name, fn)
            self.registry.add_target(target)
            return target

        return register

    def kind(
        self,
        name: str,
        *,
        version: int = 1,
        target: Target[Any] | None = None,
        label: str | None = None,
        promise: float | tuple[float, float] | None = None,
        success: str = "",
        cancel_note: str = "",
        still_permitted: Callable[[Principal, JobView], bool | Awaitable[bool]] | None = None,
        keep_claims: Sequence[str] = (),
        roles: Sequence[str] = (),
        unique_scope: Literal["owner", "tenant"] = "owner",
        quota: int | None = None,
    ) -> Callable[[Callable[[Plan[In], In], None]], Kind[In]]:
        """Registers a kind of job; the function fills its plan and is pure: it runs at admission.

        label: what people see. promise: seconds to usable, or (to usable, to completed). success, cancel_note: sentences for people.
        roles: who may submit needs one of them, where any are named; others get Forbidden.
        still_permitted(owner, job): asked before each attempt, with the job as it stands; False ends the task as `not_permitted`.
        unique_scope: whether a unique key is the owner's own, or one for all owners of the tenant.
        quota: how many open jobs of the kind an owner may have; one more is refused with QuotaExceeded. None: any number.
        """
        if still_permitted is not None and not (callable(still_permitted) and takes(still_permitted, _OF_PERMISSION)):
            raise Invalid("still_permitted= takes a function of the owner and the job that returns True or False.")
        base_url = self._app.base_url

        def register(fn: Callable[[Plan[In], In], None]) -> Kind[In]:
            if inspect.iscoroutinefunction(fn) or not _has(fn, _WITH_INPUT):
                raise Invalid(f"The function of a kind is a plain def with two parameters, plan and input ({_where(fn)}).")
            said = hints(fn)
            kind = Kind[In](
                name,
                version=version,
                input_type=_annotation(fn, said, 1, "input"),
                build=fn,
                label=label,
                promise=promise,
                success=success,
                cancel_note=cancel_note,
                keep_claims=keep_claims,
                roles=roles,
                target=target,
                unique_scope=unique_scope,
                quota=quota,
                permission=None
                if still_permitted is None
                else Permission(still_permitted, lambda row: views.job(base_url, self.registry, row)),
            )
            self.registry.add_kind(kind)
            return kind

        return register


class _Decorator:
    """Makes tasks of functions."""

    def __init__(self, registry: Registry, name: str | None = None, options: TaskOptions | None = None) -> None:
        self._registry = registry
        self._name = name
        self._options: TaskOptions = options or {}

    def __call__(self, fn: Callable[..., Any] | None = None, /, *, name: str | None = None, **options: Unpack[TaskOptions]) -> Any:
        if fn is None:
            return _Decorator(self._registry, name or self._name, {**self._options, **options})
        return self._register(fn)

    def _register(self, fn: Callable[..., Any]) -> Task[Any, Any] | ItemTask[Any, Any, Any]:
        if not (_has(fn, _WITH_INPUT) or _has(fn, _WITH_ITEM)):
            raise Invalid(f"A task takes the context and the job's input, and for plan.each the item as third ({_where(fn)}).")
        said = hints(fn)
        name = self._name or str(getattr(fn, "__name__", ""))
        wanted = Context if inspect.iscoroutinefunction(fn) else SyncContext
        if _first(said) not in (MISSING, wanted):
            raise Invalid(f"The first parameter of {_where(fn)} must be a {wanted.__name__}: async def takes Context, def SyncContext.")
        input_type = _annotation(fn, said, 1, "input")
        check_hint(said.returns, what=f"result of {_where(fn)}")
        task: Task[Any, Any] | ItemTask[Any, Any, Any]
        if _count(fn) == _WITH_INPUT:
            task = Task(name, handler=fn, input_type=input_type, returns=said.returns, options=self._options)
        else:
            task = ItemTask(
                name,
                handler=fn,
                input_type=input_type,
                item_type=_annotation(fn, said, 2, "item"),
                returns=said.returns,
                options=self._options,
            )
        self._registry.add_task(task)
        return task


def _first(said: Hints) -> object:
    """The type of the context, where it can be told: a host may import it for type checkers only."""
    try:
        return said.parameter(0)
    except Invalid:
        return MISSING


def _annotation(fn: Callable[..., Any], said: Hints, place: int, what: str) -> object:
    hint = said.parameter(place)
    if hint is MISSING:
        raise Invalid(f"The {what} of {_where(fn)} needs a type: a dataclass, msgspec Struct, pydantic model or TypedDict.")
    check_hint(hint, what=f"{what} of {_where(fn)}")
    return hint


def _has(fn: Callable[..., Any], count: int) -> bool:
    """Whether it is a function of so many parameters by place, and of no others that have to be given."""
    return callable(fn) and _count(fn) == count and takes(fn, count)


def _count(fn: Callable[..., Any]) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds for p in inspect.signature(fn).parameters.values())


def _where(fn: Callable[..., Any]) -> str:
    return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', '?')}"
