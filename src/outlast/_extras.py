"""Parts that need an extra: imported when they are first asked for, with words about what to install."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlast.client.desk import Desk
from outlast.domain.errors import Invalid

if TYPE_CHECKING:
    from outlast.http.app import Application
    from outlast.http.authentication import Identify


def web_application(desk: Desk, identify: Identify) -> Application:
    """The ASGI application; Invalid where the extra `web` is not installed."""
    try:
        from outlast.http.app import build  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("outlast"):
            raise
        raise Invalid(f"The HTTP side needs the package {error.name}: pip install 'outlast[web]'.") from None
    return build(desk, identify)
