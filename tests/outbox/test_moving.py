"""What the relay makes of the rows of an outbox, in each database."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from invariants import check, query
from outbox.conftest import SERVERS
from outbox.outboxes import ANN, Order, Table, inbound, on, shop
from outlast import Forbidden, Invalid, NotRegistered, Outlast, Plan, Principal, TargetRef, Unique
from outlast.client.outbox import Door
from outlast.domain.outbox import Mark
from outlast.observe.correlation import correlation_id
from outlast.observe.events import Event, OutboxRowPutOff
from outlast.observe.hub import subscribe
from outlast.relay import dialects
from outlast.relay.dialects import DIALECTS, script
from outlast.relay.inbound import Inbound, Report
from outlast.relay.source import Kept, OutboxMissing, Settled, Source, SourceForbidden, SourceUnavailable, Standing
from outlast.store.open import migrate
from servers.postgres import PostgresServer

on_servers = pytest.mark.parametrize("database", SERVERS, indirect=True)


def kind(jobs: Outlast, name: str) -> Any:
    return jobs.registry.kind(name)


def test_a_row_is_the_job_that_a_submit_would_have_made(table: Table, jobs: Outlast) -> None:
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    token = correlation_id.set("request-1")
    row = jobs.outbox_row(
        kind(jobs, "letter"),
        Order(5),
        owner=Principal("acme", "ann:ü", roles=["staff", "ops"]),
        id="letter-5",
        unique=Unique("u", "existing"),
        target=TargetRef("page/1", "v1"),
        not_before=later,
    )
    correlation_id.reset(token)
    table.insert(row)
    assert inbound(table, jobs).run_once() == Report(1, moved=1)
    assert table.count() == 0
    (job,) = query(jobs.url, "select * from {job}")
    assert (job["tenant"], job["owner"], job["kind"], job["correlation_id"]) == ("acme", "ann:ü", "letter", "request-1")
    assert (job["target_ref"], job["target_version"]) == ("page/1", "v1")
    (entry,) = query(jobs.url, "select * from {queue_entry}")
    assert round(later.timestamp() * 1000) in entry.values()
    (caller,) = query(jobs.url, "select caller, input from {job_input}")
    assert json.loads(caller["caller"]) == {"roles": ["ops", "staff"], "claims": {}}
    assert json.loads(caller["input"]) == {"number": 5}
    again = jobs.sync.submit(
        kind(jobs, "letter"),
        Order(5),
        owner=Principal("acme", "ann:ü", roles=["staff"]),
        key="letter-5",
        unique=Unique("u", "existing"),
        target=TargetRef("page/1", "v1"),
    )
    assert again.replayed
    assert again.id == job["id"]
    check(jobs.url)


def test_the_insert_that_the_ddl_shows_works_and_each_row_has_an_id_of_its_own(table: Table, jobs: Outlast) -> None:
    found = re.search(r"--     (insert .*);", script(DIALECTS[table.dialect], table.table))
    assert found is not None
    for _ in range(3):
        table.run(found[1].replace("'report'", "'order'").replace('{"month": "2026-11"}', '{"number": 7}'))
    table.make()  # applied again it changes nothing
    assert inbound(table, jobs).run_once() == Report(3, moved=3)
    assert len({job["id"] for job in query(jobs.url, "select id from {job}")}) == 3


def test_what_is_rolled_back_is_no_job(table: Table, jobs: Outlast) -> None:
    db = table.connect()
    on(db, DIALECTS[table.dialect].begin)
    table.ask(connection=db)
    on(db, "rollback")
    assert inbound(table, jobs).run_once() == Report(0)


def test_a_row_that_was_moved_and_not_deleted_is_the_same_job(table: Table, jobs: Outlast) -> None:
    table.ask(id="one")
    relay = inbound(table, jobs)
    (row,) = table.run(f"select * from {table.table}")
    assert relay.run_once() == Report(1, moved=1)
    table.ask(id="one")  # as if it had not been deleted
    assert relay.run_once() == Report(1, moved=1)
    assert len(query(jobs.url, "select id from {job}")) == 1
    assert row


@on_servers
def test_rows_that_commit_out_of_order_are_not_passed_over(table: Table, jobs: Outlast) -> None:
    """SQLite has one writer: rows are committed in their order."""
    first = table.connect()
    on(first, DIALECTS[table.dialect].begin)
    table.ask(id="lower", connection=first)
    table.ask(id="higher")
    relay = inbound(table, jobs)
    assert relay.run_once() == Report(1, moved=1)
    assert relay.run_once() == Report(0)
    on(first, "commit")
    assert relay.run_once() == Report(1, moved=1)
    assert {row["key"] for row in query(jobs.url, "select key from {submission}")} == {"lower", "higher"}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no JSON": ({"input": "{nope"}, "invalid"),
    "not of the kind": ({"input": '{"number": "one"}'}, "invalid"),
    "a key twice": ({"input": '{"number": 1, "number": 2}'}, "invalid"),
    "NaN": ({"input": '{"number": NaN}'}, "invalid"),
    "half a pair": ({"input": '{"number": 1, "x": "\\ud800"}'}, "invalid"),
    "NUL": ({"input": '{"number": 1, "x": "\\u0000"}'}, "invalid"),
    "too large": ({"input": '{"number": 1' + " " * 300_000 + "}"}, "input_too_large"),
    "a target that the kind has not": ({"target_ref": "a", "target_version": "b"}, "invalid"),
    "half a target": ({"kind": "letter", "target_ref": "a"}, "invalid_row"),
    "half a unique key": ({"unique_key": "a"}, "invalid_row"),
    "no policy": ({"unique_key": "a", "unique_policy": "maybe"}, "invalid_row"),
    "a blank tenant": ({"tenant": "  "}, "invalid_row"),
    "an owner with controls": ({"owner": "a\nb"}, "invalid_row"),
    "an id with blanks": ({"id": "a b"}, "invalid_row"),
    "roles that are none": ({"roles": '{"a": 1}'}, "invalid_row"),
    "claims that are none": ({"claims": "[]"}, "invalid_row"),
    "no time": ({"not_before": 2**62}, "invalid_row"),
    "version zero": ({"version": 0}, "invalid_row"),
    "a foreign correlation": ({"correlation_id": "a\tb"}, "invalid_row"),
    "no role": ({"kind": "closed"}, "forbidden"),
    "its function raises": ({"kind": "broken"}, "plan_failed"),
    "SQL in its kind": ({"kind": "'; drop table outlast_outbox; --"}, "not_registered"),
    "a task": ({"kind": "pack"}, "not_registered"),
    "an unknown version": ({"version": 9}, "not_registered"),
}


def test_bad_rows_stay_with_a_code_and_stop_nobody(table: Table, jobs: Outlast, caplog: pytest.LogCaptureFixture) -> None:
    for columns, _ in BAD.values():
        table.ask(**columns)
    table.ask(id="good")
    relay = inbound(table, jobs)
    later = sum(code == "not_registered" for _, code in BAD.values())
    assert relay.run_once() == Report(len(BAD) + 1, moved=1, put_off=later, parked=len(BAD) - later)
    assert table.codes() == [(code, code != "not_registered") for _, code in BAD.values()]
    assert [row["key"] for row in query(jobs.url, "select key from {submission}")] == ["good"]
    assert "secret" not in caplog.text
    standing = table.source().standing()
    assert (standing.waiting, standing.put_off, sum(standing.parked.values())) == (later, {"not_registered": later}, len(BAD) - later)
    assert standing.parked["input_too_large"] == 1


def test_a_key_of_another_request_and_a_unique_key_that_is_taken_are_parked(table: Table, jobs: Outlast) -> None:
    jobs.sync.submit(kind(jobs, "order"), Order(1), owner=ANN, key="taken", unique=Unique("u", "existing"))
    table.ask(id="taken", input='{"number": 2}')
    table.ask(id="second", unique_key="u", unique_policy="reject")
    table.ask(id="third")
    assert inbound(table, jobs).run_once() == Report(3, moved=1, parked=2)
    assert table.codes() == [("key_reused", True), ("unique_active", True)]


def test_what_may_be_admitted_another_time_is_tried_again(table: Table, jobs: Outlast, migrated: Path) -> None:
    table.ask("rare", id="first")
    table.ask("rare", id="second")
    table.ask("tomorrow", id="deployed")
    relay = inbound(table, jobs)
    assert relay.run_once() == Report(3, moved=1, put_off=2)
    assert sorted(table.codes()) == [("not_registered", False), ("quota_exceeded", False)]
    table.run(f"update {table.table} set due_at = due_at + 3600000")
    assert relay.run_once() == Report(0)  # not before its time
    (job,) = query(jobs.url, "select id from {job}")
    jobs.sync.cancel(job["id"], principal=ANN)
    newer = shop(jobs.url)
    newer.kind("tomorrow")(kind(newer, "order").build)
    table.run(f"update {table.table} set due_at = 0")
    assert inbound(table, newer).run_once() == Report(2, moved=2)
    assert table.count() == 0
    newer.sync.close()


def test_each_try_is_later_than_the_one_before_up_to_a_limit(lite: Table, jobs: Outlast) -> None:
    lite.ask("tomorrow")
    relay = inbound(lite, jobs)
    heard: list[Event] = []
    end = subscribe(heard.append)
    for tries in (0, 1, 2, 50):
        lite.run(f"update {lite.table} set due_at = null, tries = {tries}")
        assert relay.run_once() == Report(1, put_off=1)
    end()
    assert [event.seconds for event in heard if isinstance(event, OutboxRowPutOff)] == [1, 2, 4, 300]
    ((due,),) = lite.run(f"select due_at - created_at from {lite.table}")
    assert due >= 300_000


def test_parked_rows_are_tried_again_on_request(table: Table, jobs: Outlast) -> None:
    table.ask(input="{nope")
    table.ask("tomorrow")
    inbound(table, jobs).run_once()
    source = table.source()
    assert source.release("forbidden") == 0
    assert source.release("invalid") == 1
    assert table.codes() == [(None, False), ("not_registered", False)]
    assert source.release(None) == 1


def test_more_rows_than_a_batch_and_two_relays_at_once(table: Table, jobs: Outlast) -> None:
    wanted = {f"row-{n}" for n in range(60)}
    for one in sorted(wanted):
        table.ask(id=one)
    stop = threading.Event()
    faults: list[BaseException] = []

    def run() -> None:
        try:
            inbound(table, jobs, batch=7).run(stop, every=0.01)
        except BaseException as error:  # noqa: BLE001 - told below
            faults.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 15
    while table.count() and not faults and time.monotonic() < deadline:
        time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert not faults
    assert table.count() == 0
    assert {row["key"] for row in query(jobs.url, "select key from {submission}")} == wanted
    assert len(query(jobs.url, "select id from {job}")) == len(wanted)


def test_a_relay_that_comes_late_leaves_another_row_of_the_same_number_alone(table: Table) -> None:
    table.ask(id="new")
    ((seq, created_at),) = table.run(f"select seq, created_at from {table.table}")
    source = table.source()
    stale = Mark(seq, created_at - 1)
    source.settle(Settled([stale], [Kept(stale, "invalid", None)]))
    assert table.codes() == [(None, False)]
    source.settle(Settled())


@on_servers
def test_a_row_that_somebody_has_locked_is_waited_for_and_not_for_ever(
    table: Table, jobs: Outlast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's lock is the whole file's, and its driver's own limit holds."""
    shorter = replace(DIALECTS[table.dialect], lock_limit=str(DIALECTS[table.dialect].lock_limit).replace("5", "1"))
    monkeypatch.setattr(dialects, table.dialect.upper(), shorter)
    table.ask(id="held")
    db = table.connect()
    on(db, shorter.begin)
    on(db, f"select 1 from {table.table} for update")
    relay = inbound(table, jobs)
    with pytest.raises(SourceUnavailable):
        relay.run_once()
    on(db, "rollback")
    assert relay.run_once() == Report(1, moved=1)
    assert len(query(jobs.url, "select id from {job}")) == 1


def test_without_its_table_or_with_another_one_it_says_what_to_do(table: Table, jobs: Outlast) -> None:
    missing = table.source("no_such_outbox")
    with pytest.raises(OutboxMissing, match=f"outlast outbox sql --dialect {table.dialect}"):
        missing.check()
    table.run("drop table if exists half")
    table.run("create table half (seq bigint)")
    with pytest.raises(OutboxMissing):
        table.source("half").standing()


@on_servers
def test_a_connection_that_is_lost_is_opened_anew(table: Table, jobs: Outlast) -> None:
    """Nobody else ends a connection to a file."""
    relay = inbound(table, jobs)
    assert relay.run_once() == Report(0)
    table.ask()
    others = {
        "postgresql": "select pid from pg_stat_activity where datname = current_database() and application_name = 'outlast relay'",
        "mariadb": "select id from information_schema.processlist where id <> connection_id() and db = database()",
    }[table.dialect]
    end = {"postgresql": "select pg_terminate_backend({})", "mariadb": "kill {}"}[table.dialect]
    (found,) = table.run(others)
    table.run(end.format(*found))
    deadline = time.monotonic() + 15
    while table.run(others):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(SourceUnavailable):
        relay.run_once()
    assert relay.run_once() == Report(1, moved=1)


def test_texts_that_are_no_utf_8_and_values_of_other_types_park_their_row_alone(lite: Table, jobs: Outlast) -> None:
    lite.run(f"insert into {lite.table} (tenant, owner, kind, input) values ('acme', 'ann', 'order', cast(x'7bff7d' as text))")
    lite.run(f"insert into {lite.table} (tenant, owner, kind, input) values (cast(x'eda080' as text), 'ann', 'order', '{{}}')")
    lite.run(f"insert into {lite.table} (tenant, owner, kind, input, version) values ('acme', 'ann', 'order', '{{}}', 'two')")
    lite.run(f"insert into {lite.table} (tenant, owner, kind, input) values ('acme', ?, 'order', '{{}}')", ["a" * 1_000_000])
    lite.ask(tenant="a\0b")
    lite.ask(id="good")
    assert inbound(lite, jobs).run_once() == Report(6, moved=1, parked=5)
    assert [code for code, _ in lite.codes()] == ["undecodable", "undecodable", "invalid_row", "invalid_row", "invalid_row"]


def test_a_table_has_the_name_that_was_given_and_no_sql_in_it(lite: Table, jobs: Outlast) -> None:
    named = Table("sqlite", lite.url, lite.connect, "orders_outbox")
    named.make()
    named.ask()
    assert inbound(named, jobs).run_once() == Report(1, moved=1)
    named.close()
    reserved = lite.connect()
    reserved.executescript(script(DIALECTS["sqlite"], "order"))
    assert lite.source("order").read(most=1, limit=1) == []
    for name in ("a; drop table b", 'a"b', "a.b.c", "", "A", "é"):
        with pytest.raises(Invalid, match="named by"):
            Source(lite.url, table=name)


@pytest.mark.parametrize(
    "url",
    ["", "shop.db", "redis://a/b", "mariadb://host", "mariadb://host/a/b", "mariadb://host:x/a", "mysql://host/a?evil=1", "sqlite://a"],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        Source(url)


def test_no_password_is_shown() -> None:
    assert Source("mariadb://me:hidden@db:3307/shop?ssl_ca=/x").shown == "mariadb://db:3307/shop"
    assert Source("postgresql://me:hidden@db/shop").shown == "postgresql://db/shop"


@on_servers
def test_a_table_may_stand_in_a_schema_of_its_own(table: Table) -> None:
    """SQLite has none."""
    table.run("create schema elsewhere")
    for statement in filter(str.strip, script(DIALECTS[table.dialect], "elsewhere.asked").split(";\n")):
        table.run(statement)
    assert table.source("elsewhere.asked").standing() == Standing(0, None, {}, {})
    table.run("drop schema elsewhere" + (" cascade" if table.dialect == "postgresql" else ""))


def test_a_refusal_with_a_code_of_any_length_is_told_in_short(lite: Table, jobs: Outlast) -> None:
    def refuses(plan: Plan[Order], input: Order) -> None:
        raise Invalid("No.", code="ä" * 1_000)

    jobs.kind("choosy")(refuses)
    lite.ask("choosy")
    assert inbound(lite, jobs).run_once() == Report(1, parked=1)
    assert lite.codes() == [("invalid", True)]


def test_what_a_submit_refuses_is_no_row(jobs: Outlast) -> None:
    with pytest.raises(NotRegistered, match="task"):
        jobs.outbox_row(jobs.registry.tasks["pack"], Order(1), owner=ANN)  # type: ignore[arg-type]
    with pytest.raises(Forbidden):
        jobs.outbox_row(kind(jobs, "closed"), Order(1), owner=ANN)
    with pytest.raises(Invalid):
        jobs.outbox_row(kind(jobs, "order"), Order(1), owner=ANN, id="a b")
    with pytest.raises(Invalid):
        jobs.outbox_row(kind(jobs, "order"), Order(1), owner=ANN, not_before=datetime(2030, 1, 1))  # noqa: DTZ001 - naive
    with pytest.raises(Invalid):
        jobs.outbox_row(kind(jobs, "order"), Order(1), owner=ANN, target=TargetRef("a", "b"))
    row = jobs.outbox_row(
        kind(jobs, "closed"), Order(1), owner=Principal("acme", "ann", roles=["staff"], claims={"department": "x", "other": "y"})
    )
    assert (row["roles"], row["claims"]) == ('["staff"]', '{"department":"x"}')


def test_into_postgresql_with_all_that_may_happen_at_once(lite: Table, postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("outbox_store")
    migrate(url)
    jobs = shop(url)
    try:
        for columns, _ in BAD.values():
            lite.ask(**columns)
        lite.ask("rare", id="one")
        lite.ask("rare", id="two")
        lite.ask(id="three")
        report = inbound(lite, jobs).run_once()
        assert report.moved == 2
        assert lite.codes()[-1] == ("quota_exceeded", False)
        lite.run(f"delete from {lite.table}")
        with psycopg.connect(url) as held:  # a submit in a transaction that is still open
            held.execute(
                "insert into outlast.submission (tenant, owner, key, fingerprint, job_id)"
                " select tenant, owner, 'held', fingerprint, job_id from outlast.submission limit 1"
            )
            lite.ask(id="held")
            assert inbound(lite, jobs).run_once() == Report(1, put_off=1)
            assert lite.codes() == [("still_admitting", False)]
            held.rollback()
        check(url)
    finally:
        jobs.sync.close()
        postgres_server.drop_database("outbox_store")


def test_what_is_parked_says_where_the_fault_is_and_no_value(table: Table, jobs: Outlast) -> None:
    table.ask(id="a", input='{"number": "MARKER"}')
    table.ask(id="b", not_before=2**62)
    table.ask(id="c", input="{MARKER")
    table.ask("broken", id="d")
    source = table.source()
    assert Inbound(source, Door(jobs.desk.app, jobs.store)).run_once() == Report(4, parked=4)
    parked = source.parked(most=10)
    assert [(row.id, row.code, row.detail) for row in parked] == [
        ("a", "invalid", "input: /number"),
        ("b", "invalid_row", "not_before is no time: it is milliseconds since 1970, in UTC."),
        ("c", "invalid", "input: the whole of it"),
        ("d", "plan_failed", None),
    ]
    assert source.release("plan_failed") == 1
    assert len(source.parked(most=10)) == 3
    assert [row.id for row in source.parked(most=1)] == ["a"]


def test_who_may_not_delete_is_told_before_anything_is_moved(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("outbox_rights")
    table = Table("postgresql", url, lambda: psycopg.connect(url, autocommit=True))
    try:
        table.make()
        table.run("create role outbox_reader")
        table.run(f"grant select, update on {table.table} to outbox_reader")
        as_reader = Source(f"{url}{'&' if '?' in url else '?'}options=-crole%3Doutbox_reader", table=table.table)
        assert as_reader.standing() == Standing(0, None, {}, {})
        with pytest.raises(SourceForbidden, match="Grant select, update and delete"):
            as_reader.check()
        table.run(f"grant delete on {table.table} to outbox_reader")
        as_reader.check()
        as_reader.close()
    finally:
        table.run("drop owned by outbox_reader")
        table.run("drop role outbox_reader")
        table.close()
        postgres_server.drop_database("outbox_rights")


@pytest.mark.parametrize(("column", "type"), [("input", "jsonb"), ("id", "uuid")])
def test_a_table_of_another_form_is_told_at_once(postgres_server: PostgresServer, column: str, type: str) -> None:
    url = postgres_server.create_database("outbox_form")
    table = Table("postgresql", url, lambda: psycopg.connect(url, autocommit=True))
    try:
        table.make()
        table.run(f"alter table {table.table} alter {column} drop default, alter {column} type {type} using {column}::{type}")
        for ask in (table.source().check, table.source().standing):
            with pytest.raises(OutboxMissing, match="another form"):
                ask()
    finally:
        table.close()
        postgres_server.drop_database("outbox_form")


def test_the_relays_columns_take_no_text(lite: Table) -> None:
    """SQLite would keep it, and the row would never come up."""
    for column in ("due_at", "parked_at", "tries"):
        with pytest.raises(sqlite3.IntegrityError):
            lite.ask(**{column: "soon"})
