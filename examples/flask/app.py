"""The shop: routes, tables and kinds. Settings, from the environment: SHOP_DB (a path), SHOP_PACE (seconds a task)."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from examples.shop import front
from sqlalchemy import create_engine, select, update
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker
from sqlalchemy.orm import Session as OrmSession
from werkzeug.wrappers import Response as Redirect

from flask import Flask, Response, abort, jsonify, redirect, request, session
from outlast import Completion, Outlast, Plan, Principal, SyncContext
from outlast.integrations.flask import FlaskJobs, accepted

DATABASE = Path(os.environ.get("SHOP_DB", "shop.db")).absolute()
PACE = float(os.environ.get("SHOP_PACE", "1"))

engine = create_engine(f"sqlite:///{DATABASE}")
Session = sessionmaker(engine, expire_on_commit=False)
jobs = Outlast(f"sqlite:///{DATABASE}", sync_session=Session, base_url="/jobs")  # one database for the shop's tables and Outlast's


class Base(DeclarativeBase):
    """The shop's tables."""


class OrderRow(Base):
    """An order."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    item: Mapped[str]
    state: Mapped[str] = mapped_column(default="received")


# The work.


@dataclass
class Order:
    """What the work on an order is told."""

    id: int
    item: str


@jobs.task
def write_invoice(ctx: SyncContext, order: Order) -> str:
    """The invoice, which its customer can read as soon as this has ended."""
    time.sleep(PACE)
    ctx.check()
    return f"Invoice {order.id}: {order.item}"


@jobs.task
def mail_invoice(ctx: SyncContext, order: Order) -> None:
    """Mailed once: a worker that takes over repeats the call with the same key."""
    invoice = ctx.output(write_invoice)
    time.sleep(PACE)
    ctx.effect("mail", lambda key: send_mail(key, invoice), idempotent=True, input=order.id)


@jobs.task
def confirm(ctx: SyncContext, order: Order) -> Completion[None]:
    """The order's row and the end of this task are committed together."""
    return ctx.commit(mark_confirmed, order.id)


@jobs.kind("order", label="Your order", promise=(2, 5), cancel_note="A mail that was sent stays sent.")
def order_kind(plan: Plan[Order], input: Order) -> None:  # noqa: ARG001 - every order has the same plan
    """Invoice, mail, confirmation."""
    invoice = plan.task(write_invoice, label="Invoice", usable=True)
    mail = plan.task(mail_invoice, label="E-mail", after=[invoice])
    plan.task(confirm, label="Confirmation", after=[mail])


def mark_confirmed(db: OrmSession, order: int) -> None:
    """Runs in the transaction that completes the task."""
    db.execute(update(OrderRow).where(OrderRow.id == order).values(state="confirmed"))


def send_mail(key: str, text: str) -> None:
    """Stands for a mail provider that knows a key again."""
    print(f"mail ({key}): {text}", flush=True)


# The web side.

app = Flask(__name__)
app.secret_key = secrets.token_hex()  # each start signs everybody out; set your own


def current_user() -> str:
    """The application's own way to know who calls."""
    user = session.get("user")
    if user not in front.PEOPLE:
        abort(401)
    return str(user)


def principal() -> Principal:
    """Who that is for Outlast."""
    return Principal("shop", current_user())


FlaskJobs(jobs, app, identify=principal)


@app.post("/orders")
def create() -> Response:
    """An order and the work on it, or neither."""
    with Session.begin() as db:
        row = OrderRow(customer=current_user(), item=str(request.get_json()["item"])[:80])
        db.add(row)
        db.flush()  # gives it its id
        handle = jobs.sync.submit(order_kind, Order(row.id, row.item), owner=principal(), key=f"order-{row.id}", transaction=db)
    return accepted(handle)


@app.get("/orders")
def orders() -> Response:
    """The caller's own orders, newest first."""
    with Session() as db:
        rows = db.scalars(select(OrderRow).where(OrderRow.customer == current_user()).order_by(OrderRow.id.desc()).limit(10))
        return jsonify([{"id": row.id, "item": row.item, "state": row.state} for row in rows])


@app.get("/")
def show_page() -> str:
    """The page."""
    return front.page(session.get("user"))


@app.post("/sign-in")
def sign_in() -> Redirect:
    """Anybody is whoever they say: this is an example."""
    name = request.args["name"]
    session["user"] = name if name in front.PEOPLE else None
    return redirect("/", 303)


@app.post("/sign-out")
def sign_out() -> Redirect:
    """Nobody again."""
    session.clear()
    return redirect("/", 303)


def make_tables() -> None:
    """The shop's own."""
    Base.metadata.create_all(engine)
