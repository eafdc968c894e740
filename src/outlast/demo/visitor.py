"""Somebody at the HTTP API, with what the standard library has and nothing of Outlast's own code between."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec

from outlast.demo.checks import DemoError, expect

T = TypeVar("T")

PATIENCE: Final = 40.0
"""Seconds; longer than any answer takes, a long poll's included."""
_LONG_POLL: Final = 20
_MOST_LISTED: Final = 200
_OK: Final = 200
_NOT_MODIFIED: Final = 304
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Question:
    """What a job asks its owner."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the API shows it; here, what the demo looks at."""

    id: str
    state: str
    outcome: str | None
    version: int
    attention: Question | None
    accepted_at: datetime
    usable_at: datetime | None
    finished_at: datetime | None

    @property
    def final(self) -> bool:
        """Whether nothing will change any more."""
        return self.finished_at is not None


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a job; `no` is its place in the plan."""

    no: int
    label: str
    state: str


@dataclass(frozen=True, slots=True)
class Steps:
    """How many steps of a task are stored."""

    task: str
    stored: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that ended. `code` is None for the one that completed its task."""

    task: str
    attempt: int
    fence: int
    started_at: datetime | None
    ended_at: datetime | None
    code: str | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """What happened to a job, and what is safe."""

    job: Job
    steps: tuple[Steps, ...]
    attempts: tuple[Attempt, ...]

    @property
    def stored(self) -> int:
        """How many steps of all tasks are stored."""
        return sum(steps.stored for steps in self.steps)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its status, its headers by their names in lower case, and its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def read(self, form: type[T]) -> T:
        """The body in this form; DemoError if it is something else."""
        try:
            return msgspec.json.decode(self.body, type=form)
        except msgspec.MsgspecError as error:
            raise DemoError(f"the API answered {self.status} with something else than was promised: {error}") from error


@dataclass(frozen=True, slots=True)
class Shown:
    """A job as it was shown, and the entity tag under which it was."""

    job: Job
    tag: str


@dataclass(frozen=True, slots=True)
class _Jobs:
    items: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class _Tasks:
    items: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who is signed in. Every request has a connection of its own, so that nothing is remembered between two of them."""

    port: int
    tenant: str
    subject: str

    def send(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = _NOTHING) -> http.client.HTTPConnection:
        """A connection on which this request has been sent, and of whose answer nothing has been read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        sent = {"Authorization": f"Bearer dev:{self.tenant}:{self.subject}", "Connection": "close", **headers}
        try:
            connection.request(method, path, body, sent)
        except OSError as error:
            connection.close()
            raise DemoError(f"the API cannot be reached: {error}") from error
        return connection

    def send_order(self, order: bytes, key: str) -> http.client.HTTPConnection:
        """The request for a job, sent: the same order and key make the same request, whoever sends it."""
        return self.send("POST", "/v1/jobs", order, {"Content-Type": "application/json", "Idempotency-Key": key})

    def submit(self, order: bytes, key: str) -> Answer:
        """The answer to the request for a job."""
        return _answer(self.send_order(order, key))

    def get(self, path: str, headers: Mapping[str, str] = _NOTHING) -> Answer:
        """The answer to a GET, whatever it is."""
        return _answer(self.send("GET", path, headers=headers))

    def jobs(self) -> tuple[Job, ...]:
        """The visitor's own jobs, the newest first."""
        return self._found(f"/v1/jobs?limit={_MOST_LISTED}").read(_Jobs).items

    def job(self, job_id: str) -> Shown:
        """The job as it stands."""
        return _shown(self._found(f"/v1/jobs/{job_id}"))

    def wait(self, known: Shown) -> Shown:
        """The job as soon as it differs from what is known; after a while the same again."""
        answer = self.get(f"/v1/jobs/{known.job.id}?wait={_LONG_POLL}", {"If-None-Match": known.tag})
        return known if answer.status == _NOT_MODIFIED else _shown(_as_found(answer))

    def tasks(self, job_id: str) -> tuple[Task, ...]:
        """The job's tasks, in plan order."""
        return self._found(f"/v1/jobs/{job_id}/tasks").read(_Tasks).items

    def recovery(self, job_id: str) -> Recovery:
        """What happened to the job so far."""
        return self._found(f"/v1/jobs/{job_id}/recovery").read(Recovery)

    def result(self, job_id: str, form: type[T], task: Task | None = None) -> T:
        """The output of one task, or of the one that made the job usable."""
        return self._found(f"/v1/jobs/{job_id}/result{'' if task is None else f'/{task.no}'}").read(form)

    def _found(self, path: str) -> Answer:
        return _as_found(self.get(path))


def _answer(connection: http.client.HTTPConnection) -> Answer:
    try:
        response = connection.getresponse()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    except (OSError, http.client.HTTPException) as error:
        raise DemoError(f"the API broke off its answer: {error!r}") from error
    finally:
        connection.close()


def _as_found(answer: Answer) -> Answer:
    expect(answer.status == _OK, f"the API should have answered 200, and answered {answer.status}: {answer.body[:200]!r}")
    return answer


def _shown(answer: Answer) -> Shown:
    return Shown(answer.read(Job), answer.headers.get("etag", ""))
