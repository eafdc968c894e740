"""What the integrations promise, checked as `api` is; not run. In part 2 each line with an ignore must be an error in both checkers."""
# mypy: disable-error-code=ignore-without-code

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import assert_type

from fastapi import Depends, FastAPI
from fastapi.responses import JSONResponse
from flask import Flask, Response
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from outlast import Context, Handle, Outlast, Principal
from outlast.http.app import Application
from outlast.integrations import flask as flasks
from outlast.integrations.fastapi import Submit, SyncSubmit, accepted, mount, submitter, sync_submitter

jobs = Outlast("sqlite:///shop.db", base_url="/jobs")
app = FastAPI()


@dataclass
class Report:
    month: str


@dataclass
class Other:
    year: int


@jobs.task
async def write(ctx: Context, report: Report) -> str:
    return report.month


async def principal() -> Principal | None:
    return None


async def session() -> AsyncSession:
    raise NotImplementedError


def sync_session() -> Session:
    raise NotImplementedError


def here() -> Principal | None:
    return None


# Part 1.

assert_type(mount(app, jobs, identify=principal), Application)
assert_type(mount(app, jobs, identify=Depends(principal), path="/work"), Application)
assert_type(submitter(jobs, identify=principal, session=session), Callable[..., Awaitable[Submit]])
assert_type(sync_submitter(jobs, identify=principal, session=Depends(sync_session)), Callable[..., Awaitable[SyncSubmit]])


async def create(submit: Submit, sync_submit: SyncSubmit) -> JSONResponse:
    assert_type(await submit(write, Report("2026-11"), key="k"), Handle)
    assert_type(sync_submit(write, Report("2026-11")), Handle)
    assert_type(submit.owner, Principal)
    return accepted(sync_submit(write, Report("2026-11")))


extension = flasks.FlaskJobs(jobs, identify=here)
extension.init_app(Flask("shop"))
flasks.FlaskJobs(jobs, Flask("shop"), identify=here, path="/work")


def answer(handle: Handle) -> Response:
    return flasks.accepted(handle)


# Part 2.


async def wrong(submit: Submit, sync_submit: SyncSubmit) -> None:
    await submit(write, Other(2026))  # type: ignore
    sync_submit(write, Other(2026))  # type: ignore
    await submit(write, Report("2026-11"), owner=Principal("a", "b"))  # type: ignore


mount(app, jobs)  # type: ignore
flasks.FlaskJobs(jobs, identify=lambda request: None)  # type: ignore
flasks.FlaskJobs(jobs, identify=principal)  # type: ignore
