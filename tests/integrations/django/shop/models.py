"""A business row."""

from __future__ import annotations

from django.db import models


class Purchase(models.Model):
    name = models.CharField(max_length=50, unique=True)

    class Meta:
        app_label = "shop"

    def __str__(self) -> str:
        return self.name
