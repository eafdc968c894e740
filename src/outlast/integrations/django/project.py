"""The one `Outlast` of a Django project, on the database that its settings name."""

from __future__ import annotations

from outlast.app import Outlast
from outlast.domain.defaults import Settings
from outlast.integrations.django.addresses import store_url
from outlast.integrations.django.configuration import configuration
from outlast.integrations.django.running import TidyRegistry, register
from outlast.store.protocol import Store

_PLACEHOLDER = "sqlite:///is-asked-for-when-it-is-opened"


class Project(Outlast):
    """An `Outlast` whose store is a database of Django's settings.

    Where that is is asked for at each call: Django's tests put another database in its place after the modules were imported.
    """

    registry_type = TidyRegistry

    def __init__(self, *, settings: Settings | None = None) -> None:
        super().__init__(_PLACEHOLDER, base_url=configuration().base_url, settings=settings)
        self._named: str | None = None
        self._at: str | None = None
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

    def _open(self) -> Store:
        url = self.url
        if self._opened is not None and self._at not in (None, url):
            self._opened.close_sync()
            self._opened = None
        if self._opened is None:
            self._at = url
        return super()._open()


_project: Project | None = None


def project() -> Project:
    """The project's `Outlast`, made when it is first asked for."""
    global _project  # noqa: PLW0603 - one a process, as the settings are
    if _project is None:
        _project = Project()
    return _project
