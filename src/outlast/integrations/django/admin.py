"""An entry in the admin's index that leads to the page. Django imports this where its admin is installed."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from outlast.integrations.django.configuration import configuration

_LABEL = "outlast"


def entry() -> dict[str, Any]:
    """As the admin lists an application, though it has no model."""
    url = f"{configuration().base_url.rstrip('/')}/"
    page = {
        "model": None,
        "name": "Jobs",
        "object_name": "Jobs",
        "perms": {"add": False, "change": False, "delete": False, "view": True},
        "admin_url": url,
        "add_url": None,
        "view_only": True,
    }
    return {"name": "Background jobs", "app_label": _LABEL, "app_url": url, "has_module_perms": True, "models": [page]}


def link(site: Any) -> None:
    """Lists the page on a site of the admin's; its own list stays as it is. For one of your own, besides the default one."""
    listed = site.get_app_list

    def get_app_list(request: Any, app_label: str | None = None) -> list[Any]:
        found = list(listed(request, app_label) if app_label else listed(request))
        return found if app_label not in (None, _LABEL) else sorted([*found, entry()], key=lambda app: str(app["name"]).lower())

    site.get_app_list = get_app_list


link(admin.site)
