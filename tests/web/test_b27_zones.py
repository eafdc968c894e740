"""Times mean the same whatever zone the process and the database are in (B27)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from outlast import Cron, Invalid, Principal
from outlast.store.programs import claims
from web.shop import Note, make
from web.site import Site

ANN = Principal("acme", "ann")
ZONES = ("America/New_York", "Europe/London", "Asia/Kolkata")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d[^\"]*")
IST = timezone(timedelta(hours=5, minutes=30))


@pytest.fixture
def tz(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The zone of this process, given back afterwards."""
    with monkeypatch.context() as patched:
        yield patched
    time.tzset()


def settle(url: str, zone: str, tz: pytest.MonkeyPatch) -> None:
    """This process in a zone, and the database too."""
    tz.setenv("TZ", zone)
    time.tzset()
    if url.startswith("postgresql"):
        name = urlsplit(url).path.strip("/")
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f"alter database {name} set timezone to '{zone}'".encode())


async def test_b27_times_are_the_same_in_every_zone(url: str, tz: pytest.MonkeyPatch) -> None:
    for n, zone in enumerate(ZONES):
        settle(url, zone, tz)
        site = Site(make(url))
        try:
            await delayed(site, n)
            await scheduled(site, n)
            await refused(site, n)
        finally:
            site.app.stop()
            await site.jobs.close()


async def delayed(site: Site, n: int) -> None:
    """Half a minute is half a minute, and what is shown is in UTC and says so."""
    due = (datetime.now(UTC) + timedelta(seconds=30)).replace(microsecond=0)
    sent = {"kind": "note", "input": {"text": "x"}, "not_before": due.astimezone(IST).isoformat()}
    answer = await site.call("POST", "/v1/jobs", json_body=sent, headers={"Idempotency-Key": f"k{n}"})
    assert answer.status == 202
    job = (await site.call("GET", f"/v1/jobs/{answer.json['id']}")).body.decode()
    tasks = await site.call("GET", f"/v1/jobs/{answer.json['id']}/tasks")

    first = tasks.json["items"][0]
    assert abs((datetime.fromisoformat(first["next_attempt_at"]) - due).total_seconds()) < 1
    moments = MOMENT.findall(job + tasks.body.decode())
    assert len(moments) >= 2
    for moment in moments:
        assert moment.endswith("Z")
        assert abs(datetime.fromisoformat(moment) - datetime.now(UTC)) < timedelta(minutes=1)
    woken = await site.jobs.store.run(claims.wake(10))
    assert woken.count == 0
    assert woken.next_in_ms is not None
    assert woken.next_in_ms <= 30_000


async def scheduled(site: Site, n: int) -> None:
    """By the clock of its own zone."""
    daily = Cron("30 2 * * *", zone="Europe/Helsinki")
    view = await site.jobs.schedule(site.jobs.registry.kind("note"), Note(text="x"), name=f"s{n}", when=daily, owner=ANN)
    assert view.next_at is not None
    assert view.next_at.utcoffset() == timedelta()
    assert round(view.next_at.timestamp() * 1000) == daily.next_after(time.time_ns() // 1_000_000)


async def refused(site: Site, n: int) -> None:
    """A time without a zone could mean anything."""
    naive: Any = datetime(2030, 1, 1, 2, 30)  # noqa: DTZ001 - what is refused
    note = site.jobs.registry.kind("note")
    with pytest.raises(Invalid, match="time zone"):
        await site.jobs.submit(note, Note(text="x"), owner=ANN, not_before=naive)
    with pytest.raises(Invalid, match="time zone"):
        site.jobs.sync.submit(note, Note(text="x"), owner=ANN, not_before=naive)
    sent = {"kind": "note", "input": {"text": "x"}, "not_before": naive.isoformat()}
    answer = await site.call("POST", "/v1/jobs", json_body=sent, headers={"Idempotency-Key": f"n{n}"})
    assert (answer.status, answer.code) == (422, "invalid")
