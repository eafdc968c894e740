"""Before: functions in a queue of RQ, one depending on another."""

from __future__ import annotations

from examples.migrating import outside
from redis import Redis
from rq import Queue, Retry, get_current_job
from rq.job import Job

RETRY = Retry(max=4, interval=[1, 2, 4, 8])  # intervals need workers with --with-scheduler


def load(order: int) -> str:
    return outside.load(order)


def draw(order: int, page: int) -> str:
    job = get_current_job()
    assert job is not None
    job.meta["page"] = page  # what the person who waits is shown, if you build it
    job.save_meta()
    return outside.draw(order, page)


def mail() -> None:
    job = get_current_job()
    assert job is not None
    results = {dependency.id: str(dependency.return_value()) for dependency in job.fetch_dependencies()}
    to, *pages = [results[dependency] for dependency in job.meta["parts"]]
    outside.send(to, "; ".join(pages))  # a worker that dies after it leaves a job that is called failed, or is repeated


def place(connection: Redis, order: int, pages: int) -> str:
    """Asks for a brochure; called after the commit of the order. A process that dies between the two has lost it, or half of it."""
    quick, images = Queue(connection=connection), Queue("images", connection=connection)
    loaded = quick.enqueue(load, order, job_timeout=120, retry=RETRY)
    drawn: list[Job] = [images.enqueue(draw, order, page, depends_on=loaded) for page in range(1, pages + 1)]
    parts = [loaded, *drawn]
    return str(quick.enqueue(mail, depends_on=parts, meta={"parts": [part.id for part in parts]}).id)
