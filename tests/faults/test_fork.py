"""A process forks after its store was used: the children open connections of their own and leave the parent's alone."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from contract.backends import Backend, PostgresBackend
from contract.harness import ANN, Harness
from outlast.domain.work import Admitted
from outlast.store.programs import admission, status
from outlast.store.sqlite.connection import Connection

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

CHILDREN = 4
EACH = 20
PATIENCE = 10.0


class Children:
    """Forked processes that do some work and end; what is not gone in time is killed."""

    def __init__(self) -> None:
        self._pids: list[int] = []

    def fork(self, work: Callable[[], None]) -> None:
        pid = os.fork()
        if pid:
            self._pids.append(pid)
            return
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, this process must end here
            traceback.print_exc()
        finally:
            os._exit(code)

    def codes(self) -> list[int]:
        """Their exit codes."""
        until = time.monotonic() + PATIENCE
        codes = []
        while self._pids:
            pid, status_ = os.waitpid(self._pids[0], os.WNOHANG)
            if pid:
                self._pids.pop(0)
                codes.append(os.waitstatus_to_exitcode(status_))
            elif time.monotonic() > until:
                os.kill(self._pids[0], signal.SIGKILL)
            else:
                time.sleep(0.005)
        return codes


@pytest.fixture
def children() -> Iterator[Children]:
    found = Children()
    yield found
    found.codes()


def submits(backend: Backend, jobs: list[Any]) -> Callable[[], None]:
    """Submits each of them by itself and reads it."""

    def work() -> None:
        store = backend.store
        for job in jobs:
            assert store.run_sync(admission.admit([job])) == [Admitted(job.job_id, replayed=False)]
            row = store.run_sync(status.job(ANN, job.job_id))
            assert row is not None
            assert row.state == "queued"

    return work


def test_b34_children_and_parent_go_on_beside_each_other(backend: Backend, h: Harness, children: Children) -> None:
    h.admit()
    for _ in range(CHILDREN):
        children.fork(submits(backend, [h.admission(key=f"k{h._jobs}") for _ in range(EACH)]))
    submits(backend, [h.admission() for _ in range(EACH)])()
    assert children.codes() == [0] * CHILDREN
    assert len(h.rows("job")) == 1 + (CHILDREN + 1) * EACH
    h.view(h.admit())


def test_b34_a_child_that_closes_its_store_leaves_the_parents_open(backend: Backend, h: Harness, children: Children) -> None:
    job = h.admit()
    mine = h.admission()

    def work() -> None:
        backend.store.close_sync()
        submits(backend, [mine])()
        backend.store.close_sync()

    children.fork(work)
    assert children.codes() == [0]
    assert h.view(job).state == "queued"
    assert h.view(mine.job_id).state == "queued"


@pytest.mark.parametrize("backend", ["postgres-async", "postgres-sync"], indirect=True)
def test_b34_a_child_has_connections_of_its_own(h: Harness, backend: PostgresBackend, children: Children) -> None:
    h.admit()
    mine = {row["pid"] for row in h.sql("select pid from pg_stat_activity where application_name = 'outlast'")}
    read, write = os.pipe()

    def work() -> None:
        backend.store.run_sync(status.clock())
        with backend.store._sync_pool().connection() as connection:
            os.write(write, str(connection.info.backend_pid).encode())

    children.fork(work)
    assert children.codes() == [0]
    theirs = int(os.read(read, 20))
    os.close(read)
    os.close(write)
    assert mine
    assert theirs not in mine


def test_b34_a_fork_beside_a_thread_that_submits(backend: Backend, h: Harness, children: Children) -> None:
    """Whatever the other thread is in the middle of at that instant."""
    h.admit()
    stop = threading.Event()
    done: list[str] = []

    def busy() -> None:
        while not stop.is_set():
            job = h.admission()
            backend.store.run_sync(admission.admit([job]))
            done.append(job.job_id)

    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(busy)
        for n in range(10):
            jobs = [h.admission(key=f"c{n}.{k}") for k in range(3)]
            children.fork(submits(backend, jobs))
            time.sleep(0.01)
        stop.set()
        thread.result()
    assert children.codes() == [0] * 10
    assert len(h.rows("job")) == 1 + 30 + len(done)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_b34_a_fork_in_the_middle_of_a_transaction(
    backend: Backend, h: Harness, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite keeps what locks a process holds in memory, which a fork copies: the child must not believe that it holds them."""
    h.admit()
    inside, go = threading.Event(), threading.Event()
    original = Connection.execute

    def held(self: Connection, sql: str, params: Any = ()) -> Any:
        if sql == "commit" and not inside.is_set():
            inside.set()
            go.wait(PATIENCE)
        return original(self, sql, params)

    monkeypatch.setattr(Connection, "execute", held)
    jobs = [h.admission() for _ in range(3)]

    def work() -> None:
        go.set()
        submits(backend, jobs)()

    with ThreadPoolExecutor(1) as pool:
        mine = h.admission()
        thread = pool.submit(backend.store.run_sync, admission.admit([mine]))
        assert inside.wait(PATIENCE)
        threading.Timer(0.2, go.set).start()
        children.fork(work)
        assert thread.result() == [Admitted(mine.job_id, replayed=False)]
    assert children.codes() == [0]
    assert len(h.rows("job")) == 5
