"""The shop: routes, dependencies, tables and kinds. Settings, from the environment: SHOP_DB (a path), SHOP_PACE (seconds a task)."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from examples.shop import front
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from starlette.middleware.sessions import SessionMiddleware

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from outlast import Completion, Context, Outlast, Plan, Principal
from outlast.integrations.fastapi import Submit, accepted, mount, submitter

DATABASE = Path(os.environ.get("SHOP_DB", "shop.db")).absolute()
PACE = float(os.environ.get("SHOP_PACE", "1"))

engine = create_async_engine(f"sqlite+aiosqlite:///{DATABASE}")
Session = async_sessionmaker(engine, expire_on_commit=False)
jobs = Outlast(f"sqlite:///{DATABASE}", session=Session, base_url="/jobs")  # the shop's tables and Outlast's are in one database


class Base(DeclarativeBase):
    """The shop's tables."""


class OrderRow(Base):
    """An order."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    item: Mapped[str]
    state: Mapped[str] = mapped_column(default="received")


# The work: what was a function for BackgroundTasks.


@dataclass
class Order:
    """What the work on an order is told."""

    id: int
    item: str


@jobs.task
async def write_invoice(ctx: Context, order: Order) -> str:  # noqa: ARG001 - each task is given its context
    """The invoice, which its customer can read as soon as this has ended."""
    await asyncio.sleep(PACE)
    return f"Invoice {order.id}: {order.item}"


@jobs.task
async def mail_invoice(ctx: Context, order: Order) -> None:
    """Mailed once: a worker that takes over repeats the call with the same key."""
    invoice = await ctx.output(write_invoice)
    await asyncio.sleep(PACE)
    await ctx.effect("mail", lambda key: send_mail(key, invoice), idempotent=True, input=order.id)


@jobs.task
async def confirm(ctx: Context, order: Order) -> Completion[None]:
    """The order's row and the end of this task are committed together."""
    return ctx.commit(mark_confirmed, order.id)


@jobs.kind("order", label="Your order", promise=(2, 5), cancel_note="A mail that was sent stays sent.")
def order_kind(plan: Plan[Order], input: Order) -> None:  # noqa: ARG001 - every order has the same plan
    """Invoice, mail, confirmation."""
    invoice = plan.task(write_invoice, label="Invoice", usable=True)
    mail = plan.task(mail_invoice, label="E-mail", after=[invoice])
    plan.task(confirm, label="Confirmation", after=[mail])


async def mark_confirmed(db: AsyncSession, order: int) -> None:
    """Runs in the transaction that completes the task."""
    await db.execute(update(OrderRow).where(OrderRow.id == order).values(state="confirmed"))


async def send_mail(key: str, text: str) -> None:
    """Stands for a mail provider that knows a key again."""
    await asyncio.to_thread(print, f"mail ({key}): {text}", flush=True)


# The web side.

app = FastAPI(title="Shop")
app.add_middleware(SessionMiddleware, secret_key=secrets.token_hex())  # each start signs everybody out; set your own


async def current_user(request: Request) -> str:
    """The application's own way to know who calls."""
    user = request.session.get("user")
    if user not in front.PEOPLE:
        raise HTTPException(401)
    return str(user)


async def principal(user: Annotated[str, Depends(current_user)]) -> Principal:
    """Who that is for Outlast."""
    return Principal("shop", user)


async def session() -> AsyncIterator[AsyncSession]:
    """The session of a request."""
    async with Session() as db:
        yield db


mount(app, jobs, identify=principal)

User = Annotated[str, Depends(current_user)]
Db = Annotated[AsyncSession, Depends(session)]
SubmitHere = Annotated[Submit, Depends(submitter(jobs, identify=principal, session=session))]


@dataclass
class Wanted:
    """The body of an order."""

    item: str


@app.post("/orders", status_code=202)
async def create(wanted: Wanted, user: User, db: Db, submit: SubmitHere) -> JSONResponse:
    """An order and the work on it, or neither."""
    row = OrderRow(customer=user, item=wanted.item[:80])
    db.add(row)
    await db.flush()  # gives it its id
    handle = await submit(order_kind, Order(row.id, row.item), key=f"order-{row.id}")
    await db.commit()
    return accepted(handle)


@app.get("/orders")
async def orders(user: User, db: Db) -> list[dict[str, Any]]:
    """The caller's own orders, newest first."""
    rows = await db.scalars(select(OrderRow).where(OrderRow.customer == user).order_by(OrderRow.id.desc()).limit(10))
    return [{"id": row.id, "item": row.item, "state": row.state} for row in rows]


@app.get("/", response_class=HTMLResponse, include_in_schema=False)
async def show_page(request: Request) -> str:
    """The page."""
    return front.page(request.session.get("user"))


@app.post("/sign-in", include_in_schema=False)
async def sign_in(request: Request, name: str) -> RedirectResponse:
    """Anybody is whoever they say: this is an example."""
    request.session["user"] = name if name in front.PEOPLE else None
    return RedirectResponse("/", 303)


@app.post("/sign-out", include_in_schema=False)
async def sign_out(request: Request) -> RedirectResponse:
    """Nobody again."""
    request.session.clear()
    return RedirectResponse("/", 303)


async def make_tables() -> None:
    """The shop's own."""
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
