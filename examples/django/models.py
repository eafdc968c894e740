"""What the shop keeps."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models


class Order(models.Model):
    """What somebody ordered, and the number of its invoice once there is one."""

    buyer: Any = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    what: Any = models.CharField(max_length=80)
    job: Any = models.CharField(max_length=36)
    invoice: Any = models.CharField(max_length=40, default="")

    def __str__(self) -> str:
        return str(self.what)
