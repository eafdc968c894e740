"""The routes of the example; /jobs is not among them: asgi.py has it."""

from __future__ import annotations

from examples.django import views

from django.contrib import admin
from django.urls import path

urlpatterns = [
    path("", views.shop),
    path("orders", views.order),
    path("sign-in/<slug:name>", views.sign_in),
    path("admin/", admin.site.urls),
]
