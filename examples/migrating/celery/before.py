"""Before: tasks of Celery, put together with a chain and a chord."""

from __future__ import annotations

from celery import Celery, chain, chord
from examples.migrating import outside

app = Celery("shop", broker="amqp://localhost", backend="redis://localhost")
app.conf.task_acks_late = True  # else a message is acknowledged before it is worked on, and lost with its worker
app.conf.beat_schedule = {"nightly": {"task": "shop.tidy", "schedule": 86_400.0}}


@app.task(name="shop.load", autoretry_for=(ConnectionError,), retry_backoff=True, max_retries=4, time_limit=120)
def load(order: int) -> str:
    return outside.load(order)


@app.task(name="shop.draw", queue="images")
def draw(order: int, page: int) -> str:
    return outside.draw(order, page)


@app.task(name="shop.assemble")
def assemble(pages: list[str]) -> str:
    return "; ".join(pages)


@app.task(name="shop.mail")
def mail(text: str, order: int, to: str) -> None:
    outside.send(to, text)  # a worker that dies after it, and before its acknowledgement, sends it again


@app.task(name="shop.fan_out")
def fan_out(to: str, order: int, pages: int) -> None:
    chord((draw.s(order, page) for page in range(1, pages + 1)), assemble.s() | mail.s(order, to)).delay()


@app.task(name="shop.brochure")
def brochure(order: int, pages: int) -> None:
    chain(load.s(order), fan_out.s(order, pages)).delay()


@app.task(name="shop.tidy")
def tidy() -> None:
    print("tidied")


def place(order: int, pages: int) -> str:
    """Asks for a brochure; called after the commit of the order. A process that dies between the two has lost it."""
    return str(brochure.delay(order, pages).id)
