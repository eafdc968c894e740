"""An outbox of each kind for tests, and an application whose jobs its rows ask for."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pymysql

from outlast import Context, Outlast, Plan, Principal, SyncContext, Target
from outlast.client.outbox import Door
from outlast.relay.dialects import DIALECTS, TABLE, script
from outlast.relay.inbound import Inbound
from outlast.relay.source import Source

ANN = Principal("acme", "ann")


class Table:
    """The outbox of one test, as an application sees it: written on connections of its own."""

    def __init__(self, dialect: str, url: str, connect: Callable[[], Any], table: str = TABLE) -> None:
        self.dialect = dialect
        self.url = url
        self.table = table
        self.parameter = DIALECTS[dialect].parameter
        self._connect = connect
        self._connection: Any = None
        self._opened: list[Any] = []

    def make(self) -> None:
        """Creates the table, by what `outlast outbox sql` prints."""
        for statement in filter(str.strip, script(DIALECTS[self.dialect], self.table).split(";\n")):
            self.run(statement)

    def drop(self) -> None:
        self.run(f"drop table if exists {self.table}")

    def connect(self) -> Any:
        """A connection in autocommit, closed with the test."""
        self._opened.append(self._connect())
        return self._opened[-1]

    def source(self, table: str | None = None) -> Source:
        """The outbox as the relay sees it, closed with the test."""
        self._opened.append(Source(self.url, table=table or self.table))
        source: Source = self._opened[-1]
        return source

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of one statement, if it has any."""
        if self._connection is None:
            self._connection = self._connect()
        return on(self._connection, sql, values)

    def insert(self, row: Mapping[str, Any], connection: Any = None) -> None:
        sql = f"insert into {self.table} ({', '.join(row)}) values ({', '.join([self.parameter] * len(row))})"
        if connection is None:
            self.run(sql, list(row.values()))
        else:
            on(connection, sql, list(row.values()))

    def ask(self, kind: str = "order", input: Any = '{"number": 1}', connection: Any = None, **columns: Any) -> None:
        """A row, written as by hand."""
        self.insert({"tenant": "acme", "owner": "ann", "kind": kind, "input": input, **columns}, connection)

    def codes(self) -> list[tuple[str | None, bool]]:
        """What stands there, in order: its code, and whether it is parked."""
        return [(code, parked is not None) for code, parked in self.run(f"select code, parked_at from {self.table} order by seq")]

    def count(self) -> int:
        return int(self.run(f"select count(*) from {self.table}")[0][0])

    def close(self) -> None:
        for one in (self._connection, *self._opened):
            if one is not None:
                with suppress(pymysql.Error):  # it is closed already
                    one.close()
        self._connection = None
        self._opened.clear()


def on(connection: Any, sql: str, values: Sequence[Any] = ()) -> list[Any]:
    """The rows of one statement on this connection."""
    cursor = connection.cursor()
    cursor.execute(sql, list(values))
    return list(cursor.fetchall()) if cursor.description else []


@dataclass
class Order:
    number: int


def shop(url: str) -> Outlast:
    """An application with a few kinds."""
    jobs = Outlast(url)

    @jobs.task
    async def pack(ctx: Context, order: Order) -> int:
        return order.number

    @jobs.task
    def mail(ctx: SyncContext, order: Order) -> None:
        """Nothing."""

    @jobs.target("page")
    def page(db: sqlite3.Connection, ref: str, expected: str, value: int) -> str | None:
        return None

    def one(plan: Plan[Order], input: Order) -> None:
        plan.task(pack, label="Pack", usable=True)

    def raises(plan: Plan[Order], input: Order) -> None:
        raise RuntimeError("the secret lies in /etc/secret")

    aim: Target[int] = page
    jobs.kind("order")(one)
    jobs.kind("letter", target=aim)(one)
    jobs.kind("rare", quota=1)(one)
    jobs.kind("closed", roles=["staff"], keep_claims=["department"])(one)
    jobs.kind("broken")(raises)
    return jobs


def inbound(table: Table, jobs: Outlast, **options: Any) -> Inbound:
    """The relay from the table into the application's store."""
    return Inbound(table.source(), Door(jobs.desk.app, jobs.store), **options)
