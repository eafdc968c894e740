"""The one `Outlast` of a Django project, on the database that its settings name."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import ImproperlyConfigured

from outlast.app import Outlast
from outlast.client._sync import SyncClient
from outlast.client.calls import Application
from outlast.domain.defaults import Settings
from outlast.integrations.django.addresses import store_url
from outlast.integrations.django.configuration import configuration
from outlast.integrations.django.guards import ask, refuse_inside
from outlast.integrations.django.running import TidyRegistry, register
from outlast.store.protocol import Store
from outlast.store.sessions.transaction import Sessions
from outlast.store.sqlite.store import SqliteStore

_PLACEHOLDER = "sqlite:///is-asked-for-when-it-is-opened"


class _Sync(SyncClient):
    """Closes what is open, and asks for no store to do so: a test that may not touch the database may close."""

    def __init__(self, app: Application, store: Callable[[], Store], sessions: Sessions, opened: Callable[[], Store | None]) -> None:
        super().__init__(app, store, sessions)
        self._opened = opened

    def close(self) -> None:
        """See `SyncClient`."""
        if (opened := self._opened()) is not None:
            opened.close_sync()


class Project(Outlast):
    """An `Outlast` whose store is a database of Django's settings.

    Where that is is asked for at each call: Django's tests put another database in its place after the modules were imported.
    """

    registry_type = TidyRegistry

    def __init__(self, *, settings: Settings | None = None) -> None:
        super().__init__(_PLACEHOLDER, base_url=_base_url(), settings=settings)
        self._named: str | None = None
        self._own = True  # the alias's database, for which Django's guards and transactions speak
        self._at: str | None = None
        self._sync = _Sync(self._app, self._open, self.sessions, lambda: self._opened)
        register(self.registry)

    @property
    def alias(self) -> str:
        """Of DATABASES; what `transaction=` takes."""
        return configuration().database

    @property
    def url(self) -> str:
        """Where the store is now."""
        return self._named or store_url(self.alias)

    def use(self, url: str) -> None:
        """See `Outlast`."""
        super().use(url)
        self._named = url
        try:
            self._own = url == store_url(self.alias)
        except ImproperlyConfigured:
            self._own = False

    async def close(self) -> None:
        """See `Outlast`. It opens nothing."""
        if self._opened is not None:
            await self._opened.close()

    def _open(self) -> Store:
        if self._own:
            ask(self.alias)
        url = self.url
        if self._opened is not None and self._at not in (None, url):
            self._opened.close_sync()
            self._opened = None
        if self._opened is None:
            self._at = url
        return self._watched(super()._open())

    def adopt(self, store: Store) -> None:
        """See `Outlast`."""
        super().adopt(self._watched(store))

    def _watched(self, store: Store) -> Store:
        """A file has one writer at a time, which may be the very thread that asks."""
        if isinstance(store, SqliteStore) and self._own:
            store.before_write = self._refuse_inside
        return store

    def _refuse_inside(self) -> None:
        refuse_inside(self.alias)


def _base_url() -> str:
    """What the settings say. What is wrong in them is for `manage.py check` to say, which runs once all `jobs.py` are imported."""
    try:
        return configuration().base_url
    except ImproperlyConfigured:
        return ""  # no call is answered with it: each asks the settings


_project: Project | None = None


def project() -> Project:
    """The project's `Outlast`, made when it is first asked for."""
    global _project  # noqa: PLW0603 - one a process, as the settings are
    if _project is None:
        _project = Project()
    return _project
