"""Meanwhile: Celery's workers (`celery -A examples.migrating.celery.both worker`) hand over to Outlast what was asked of Celery."""

from __future__ import annotations

from examples.migrating.celery import after, before

from outlast import Invalid, KeyReused

app = before.app  # with all of its tasks, so that what has begun there ends there
app.tasks.unregister("shop.brochure")


@app.task(
    name="shop.brochure",
    autoretry_for=(Exception,),
    dont_autoretry_for=(Invalid, KeyReused),  # a repeat would be refused again, for ever
    retry_backoff=True,
    max_retries=None,
)
def brochure(order: int, pages: int) -> None:
    """The old name and arguments. Acknowledged after the commit; delivered twice, its key says that there is a job already."""
    after.place(order, pages, after.HOUSE)
