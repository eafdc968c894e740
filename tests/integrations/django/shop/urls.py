"""The routes of the shop."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

from integrations.django.shop.jobs import Order, parcel
from integrations.django.shop.models import Purchase
from outlast import Principal
from outlast.integrations.django import jobs


def buy(request: HttpRequest, name: str) -> HttpResponse:
    Purchase.objects.create(name=name)
    handle = jobs.sync.submit(parcel, Order(name), owner=Principal("acme", "ann"), transaction="default")
    if request.GET.get("fail"):
        raise ValueError("after both were written")
    return JsonResponse({"id": handle.id})


async def buy_async(request: HttpRequest, name: str) -> HttpResponse:
    handle = await jobs.submit(parcel, Order(name), owner=Principal("acme", "ann"), transaction="default")
    return JsonResponse({"id": handle.id})


urlpatterns = [path("admin/", admin.site.urls), path("buy/<name>", buy), path("abuy/<name>", buy_async)]
