"""`outlast jobs answer`, `skip`, `dismiss`, `takeover` and `attach`: what only the owner of a job decides."""

from __future__ import annotations

import asyncio
import json

import click

from outlast.app import Outlast
from outlast.cli.decide import acting_on, job_argument, tell
from outlast.cli.exits import Exit, Refused
from outlast.cli.options import TARGET, Whole, application, at_store, json_option, opened, owner_option, store_option
from outlast.cli.views import state_of
from outlast.client._sync import SyncClient
from outlast.domain import json_schema
from outlast.domain.access import scope_of
from outlast.domain.errors import Invalid
from outlast.domain.model import MAX_NAME, Action, JobView, Principal
from outlast.domain.payload import JSON, check_text, parse
from outlast.store.programs import status

attention_option = click.option("--attention", metavar="ID", help="Which question, as `jobs show` names it. Default: the present one.")


@click.command()
@job_argument
@click.option("--input", "text", required=True, metavar="JSON|TEXT", help="The answer: text where the question asks for text, else JSON.")
@attention_option
@owner_option
@store_option
@json_option
def answer(job_id: str, *, text: str, attention: str | None, acting: Principal | None, store: str | None, as_json: bool) -> None:
    """As the owner, answer a question of a job. The same answer again, with --attention, is no error."""
    app = at_store(store)
    with opened(app) as client:
        owner = _owner(client, job_id, acting)
        question = _question(client, job_id, attention, owner)
        shape: str | None = client.store.run_sync(status.answer_schema(scope_of(owner, "decide"), job_id, question))
        given = answer_of(text, shape, limit=app.settings.max_input)
        view = client.act(job_id, question, action="answer", principal=owner, input=given)
    tell(view, as_json=as_json)


@click.command()
@job_argument
@attention_option
@owner_option
@store_option
@json_option
def skip(job_id: str, *, attention: str | None, acting: Principal | None, store: str | None, as_json: bool) -> None:
    """As the owner, leave out the optional work that a question is about; the rest goes on."""
    tell(_decided(job_id, "skip", attention, acting, store), as_json=as_json)


@click.command()
@job_argument
@attention_option
@owner_option
@store_option
@json_option
def dismiss(job_id: str, *, attention: str | None, acting: Principal | None, store: str | None, as_json: bool) -> None:
    """As the owner, give up a job that has a question: it ends, and what is stored stays."""
    tell(_decided(job_id, "dismiss", attention, acting, store), as_json=as_json)


@click.command()
@job_argument
@owner_option
@store_option
@json_option
def takeover(job_id: str, *, acting: Principal | None, store: str | None, as_json: bool) -> None:
    """As the owner, take the job's target over: later results are parked instead of put there. Again is no error."""
    with opened(at_store(store)) as client:
        view = client.takeover(job_id, principal=_owner(client, job_id, acting))
    tell(view, as_json=as_json)


@click.command()
@job_argument
@click.option(
    "--target", envvar=TARGET, show_envvar=True, metavar="TARGET", help="module:attribute of the application that knows the kind."
)
@click.option("--task", "no", type=Whole(min=0), required=True, metavar="NO", help="Whose parked result, as `jobs show` numbers it.")
@click.option("--target-version", required=True, metavar="V", help="The version of the target that the result may replace.")
@owner_option
@store_option
@json_option
def attach(
    job_id: str, *, target: str | None, no: int, target_version: str, acting: Principal | None, store: str | None, as_json: bool
) -> None:
    """As the owner, put a parked result into the job's target, if it is at the version that is named."""
    if target is None:
        raise click.UsageError(
            "The application puts the result there, so it has to be named: --target module:attribute, "
            f"or the environment variable {TARGET}."
        )
    app = application(target, store)
    with opened(app) as client:
        owner = _owner(client, job_id, acting)
    tell(asyncio.run(_attached(app, job_id, no, owner, target_version)), as_json=as_json)


def answer_of(text: str, shape: str | None, *, limit: int) -> JSON:
    """What was written: the text itself where the question takes nothing but text, else JSON, or the text where it is none."""
    if shape is not None and json_schema.takes_text(json.loads(shape), alone=True):
        return text
    try:
        return parse(text, limit=limit, what="answer")
    except Invalid:
        return text


def _owner(client: SyncClient, job_id: str, acting: Principal | None) -> Principal:
    """The one that --as names. An operator, at the store too, may not decide this: refused if there is such a job."""
    if acting is None:
        acting_on(client, job_id, None)
        raise Refused("The owner of the job decides this: name them with --as TENANT:SUBJECT.", Exit.FORBIDDEN, code="forbidden")
    return acting


def _question(client: SyncClient, job_id: str, attention: str | None, owner: Principal) -> str:
    """The question that --attention names, else the job's present one."""
    client.recovery(job_id, principal=owner)  # who may not decide learns nothing from whether there is a question
    if attention is not None:
        return check_text(attention, what="attention id", limit=MAX_NAME)
    view = client.get(job_id, principal=owner)
    if view.attention is None:
        raise Refused(f"Nothing of this job waits for a decision: it is {state_of(view)}.", Exit.CONFLICT, code="not_offered")
    return view.attention.id


def _decided(job_id: str, action: Action, attention: str | None, acting: Principal | None, store: str | None) -> JobView:
    with opened(at_store(store)) as client:
        owner = _owner(client, job_id, acting)
        return client.act(job_id, _question(client, job_id, attention, owner), action=action, principal=owner)


async def _attached(app: Outlast, job_id: str, no: int, owner: Principal, target_version: str) -> JobView:
    """The job afterwards. In a loop, for the function of a target may be async; a plain one runs in a thread of its own."""
    try:
        return await app.attach(job_id, no, principal=owner, target_version=target_version)
    finally:
        await app.close()
