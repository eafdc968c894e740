"""`outlast jobs cancel`, `retry` and `rerun`: what is decided about a job from outside."""

from __future__ import annotations

from collections.abc import Sequence

import click

from outlast.cli.exits import Exit, Refused
from outlast.cli.fault import planning
from outlast.cli.options import TARGET, application, as_option, at_store, json_option, opened, operator_of, store_option
from outlast.cli.output import note, safe, say, say_json
from outlast.cli.submit import came_before
from outlast.cli.views import job_json, state_of
from outlast.client._sync import SyncClient
from outlast.domain.access import OPERATOR, scope_of
from outlast.domain.errors import Forbidden, NotFound
from outlast.domain.ids import is_job_id
from outlast.domain.model import JobView, Principal
from outlast.domain.work import AttentionRow
from outlast.store.programs import status


def job_id(text: str) -> str:
    """An id as it is stored."""
    return text.strip().lower()


job_argument = click.argument("job_id", metavar="ID", type=job_id)


def acting_on(client: SyncClient, job_id: str, acting: Principal | None) -> Principal:
    """Who acts: the one that --as names, else an operator of the job's tenant, at the store."""
    if acting is not None:
        return acting
    found = client.store.run_sync(status.job_owner(job_id)) if is_job_id(job_id) else None
    if found is None:
        raise NotFound("There is no such job in this store. `outlast jobs list` shows those that there are.")
    return operator_of(found[0])


@click.command()
@job_argument
@as_option
@store_option
@json_option
def cancel(job_id: str, *, acting: Principal | None, store: str | None, as_json: bool) -> None:
    """Cancel a job: after this nothing of it is written any more. Again is no error."""
    with opened(at_store(store)) as client:
        view = client.cancel(job_id, principal=acting_on(client, job_id, acting))
    tell(view, as_json=as_json)
    if view.stopping and not as_json:
        note("a worker still has a task of it and is told to stop; what that task writes is refused")


@click.command()
@job_argument
@as_option
@store_option
@json_option
def retry(job_id: str, *, acting: Principal | None, store: str | None, as_json: bool) -> None:
    """Try again every task of a job that needs attention and offers a retry.

    An operator's retry leaves out calls of unknown outcome: whether one may happen twice is for the owner to say.
    """
    with opened(at_store(store)) as client:
        principal = acting_on(client, job_id, acting)
        view = client.get(job_id, principal=principal)
        questions = _questions(client, view, principal)
        retried = [q for q in questions if "retry" in q.actions and _retried(client, job_id, q, principal)]
        view = client.get(job_id, principal=principal)
    others = [q for q in questions if q not in retried]
    if as_json:
        say_json({"retried": [q.id for q in retried], "not_offered": [q.id for q in others], "job": job_json(view, None)})
    else:
        tell(view, as_json=False)
    end_with_left(others, job_id, principal)


def _retried(client: SyncClient, job_id: str, question: AttentionRow, principal: Principal) -> bool:
    """Whether it is tried again; not where that is for the owner alone to say."""
    try:
        client.act(job_id, question.id, action="retry", principal=principal)
    except Forbidden:
        return False
    return True


def end_with_left(left: Sequence[AttentionRow], job_id: str, principal: Principal) -> None:
    """Names the questions that a retry does not settle, and who can; with one of them the command ends with 1."""
    for question in left:
        what = f"{safe(question.label)}: {safe(question.code)}"
        if "retry" in question.actions:
            note(f"{what} is left to the owner, who alone chooses what may happen twice")
        elif OPERATOR in principal.roles:
            note(f"{what} offers no retry, but {', '.join(question.actions)}; its owner decides")
        else:
            note(f"{what} offers no retry, but {', '.join(question.actions)}; outlast jobs show {job_id} has the commands")
    if left:
        raise click.exceptions.Exit(int(Exit.ATTENTION))


def _questions(client: SyncClient, view: JobView, principal: Principal) -> tuple[AttentionRow, ...]:
    """The open questions of a job that needs attention."""
    questions = open_questions(client, view, principal)
    if not questions:
        advice = " To run it once more as a new job: outlast jobs rerun." if view.final else " Its workers go on with it by themselves."
        raise Refused(f"Nothing of this job waits for a decision: it is {state_of(view)}.{advice}", Exit.CONFLICT, code="not_offered")
    return questions


def open_questions(client: SyncClient, view: JobView, principal: Principal) -> tuple[AttentionRow, ...]:
    """What the job asks now."""
    found = client.store.run_sync(status.recovery(scope_of(principal, "retry"), view.id))
    return found[1].questions if found else ()


@click.command()
@job_argument
@click.option(
    "--target", envvar=TARGET, show_envvar=True, metavar="TARGET", help="module:attribute of the application that knows the kind."
)
@click.option("--key", help="Idempotency key: the same key again gives the same new job.")
@as_option
@store_option
@json_option
def rerun(job_id: str, *, target: str | None, key: str | None, acting: Principal | None, store: str | None, as_json: bool) -> None:
    """Submit the same request once more, as a new job that names the old one. The old one must be final."""
    if target is None:
        raise click.UsageError(
            f"A rerun plans the job anew, so it needs the application: --target module:attribute, or the environment variable {TARGET}."
        )
    app = application(target, store)
    with opened(app) as client, planning("the job's kind"):
        handle = client.rerun(job_id, principal=acting_on(client, job_id, acting), key=key)
    if as_json:
        say_json({"id": handle.id, "state": handle.state, "replayed": handle.replayed, "expired": handle.expired, "rerun_of": job_id})
        return
    say(handle.id)
    say(f"{handle.state}{came_before(handle)}")


def tell(view: JobView, *, as_json: bool) -> None:
    """The job as it stands after the decision."""
    if as_json:
        say_json(job_json(view, None))
    else:
        say(f"{view.id} {state_of(view)}")
