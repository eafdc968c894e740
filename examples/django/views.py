"""The shop's pages."""

from __future__ import annotations

from examples.django.jobs import Ordered, fulfil
from examples.django.models import Order

from django.contrib.auth import get_user_model, login
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST
from outlast.integrations.django import jobs, principal_of


@require_GET
def sign_in(request: HttpRequest, name: str) -> HttpResponse:
    """Anybody as anybody: this is an example. `root` is a superuser, and so an operator of the jobs."""
    user, _ = get_user_model().objects.get_or_create(username=name, defaults={"is_superuser": name == "root", "is_staff": name == "root"})
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("/")


@login_required(login_url="/sign-in/ann")
@require_GET
def shop(request: HttpRequest) -> HttpResponse:
    """A form, and what was ordered."""
    orders = Order.objects.filter(buyer=request.user.pk).order_by("-pk")[:20]
    return render(request, "shop/orders.html", {"orders": orders, "jobs": "/jobs"})


@login_required(login_url="/sign-in/ann")
@require_POST
def order(request: HttpRequest) -> HttpResponse:
    """The order and its job, both or neither."""
    with transaction.atomic():
        placed = Order.objects.create(buyer=request.user, what=request.POST.get("what", "")[:80] or "something")
        handle = jobs.sync.submit(
            fulfil, Ordered(placed.pk), owner=principal_of(request.user), key=f"order-{placed.pk}", transaction="default"
        )
        placed.job = handle.id
        placed.save(update_fields=["job"])
    if "json" in request.headers.get("Accept", ""):
        return JsonResponse({"order": placed.pk, "id": handle.id, "url": handle.url}, status=202)
    return redirect("/")
