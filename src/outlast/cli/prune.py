"""`outlast prune`: deletes what is no longer kept, without a worker, or says what would be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import click

from outlast.cli.options import Whole, at_store, duration, json_option, opened, store_option
from outlast.cli.output import counted, local, moment_of, say, say_json
from outlast.client._sync import SyncClient
from outlast.domain.defaults import REPLAY_HORIZON
from outlast.domain.work import DueJob
from outlast.store.programs import retention
from outlast.worker.purger import KEYS, STRETCH, batches


@dataclass(slots=True)
class _Pruned:
    jobs: int = 0
    passed: int = 0
    keys: int = 0
    oldest_ms: int | None = None

    def met(self, jobs: list[DueJob]) -> None:
        ended = [job.finished_at_ms for job in jobs]
        self.oldest_ms = min(ended if self.oldest_ms is None else [self.oldest_ms, *ended], default=None)

    @property
    def oldest(self) -> datetime | None:
        return moment_of(self.oldest_ms)


@click.command()
@click.option("--before", type=duration, metavar="DURATION", help="Also what ended longer ago than this, whatever its date: 12h, 7d.")
@click.option("--limit", type=Whole(1), help="Delete at most so many jobs. Default: all.")
@click.option(
    "--horizon",
    type=duration,
    default=f"{REPLAY_HORIZON / 86_400:.0f}d",
    show_default=True,
    metavar="DURATION",
    help="How long the keys of these jobs go on answering: your application's replay_horizon.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would be deleted.")
@store_option
@json_option
def command(*, before: float | None, limit: int | None, horizon: float, dry_run: bool, store: str | None, as_json: bool) -> None:
    """Delete jobs that are no longer kept, and keys whose horizon is over, as every worker does beside its work. Safe to repeat."""
    older_ms = None if before is None else round(before * 1000)
    with opened(at_store(store)) as client:
        due = islice(_due(client, older_ms), limit)
        done = _counted(client, due) if dry_run else _deleted(client, due, older_ms=older_ms, horizon_ms=round(horizon * 1000))
    if as_json:
        say_json({"dry_run": dry_run, "jobs": done.jobs, "passed": done.passed, "oldest": done.oldest, "keys": done.keys})
        return
    verb = "would be deleted" if dry_run else "deleted"
    oldest = f"; the oldest ended {local(done.oldest)}" if done.oldest is not None else ""
    say(f"{counted(done.jobs, 'job')} {verb}{oldest}")
    say(f"{counted(done.keys, 'key')} whose horizon is over {verb}")
    if done.passed:
        say(f"passed by, as somebody had them just then: {counted(done.passed, 'job')}")


def _due(client: SyncClient, older_ms: int | None) -> Iterator[DueJob]:
    """Everything that is due, found a stretch at a time."""
    after: str | None = None
    while True:
        stretch = client.store.run_sync(retention.due(after, limit=STRETCH, older_ms=older_ms))
        yield from stretch.due
        after = stretch.last
        if after is None:
            return


def _counted(client: SyncClient, due: Iterator[DueJob]) -> _Pruned:
    done = _Pruned()
    while few := list(islice(due, STRETCH)):
        done.jobs += len(few)
        done.met(few)
    done.keys = client.store.run_sync(retention.expired())
    return done


def _deleted(client: SyncClient, due: Iterator[DueJob], *, older_ms: int | None, horizon_ms: int) -> _Pruned:
    done = _Pruned()
    while some := list(islice(due, STRETCH)):
        for few in batches(some):
            ids = [job.id for job in few]
            gone = client.store.run_sync(retention.purge(few[0].tenant, ids, horizon_ms=horizon_ms, older_ms=older_ms))
            done.jobs += len(gone)
            done.passed += len(few) - len(gone)
            done.met([job for job in few if job.id in gone])
    while dropped := client.store.run_sync(retention.drop_expired(KEYS)):
        done.keys += dropped
    return done
