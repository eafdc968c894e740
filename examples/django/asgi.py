"""Django, with the page and the API of the jobs below /jobs."""

from __future__ import annotations

import os

from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "examples.django.settings")
_django = ASGIStaticFilesHandler(get_asgi_application())  # the admin's style; in production that is your web server's task

from outlast.integrations.django import Mounted  # noqa: E402 - it needs the settings

application = Mounted(_django)
