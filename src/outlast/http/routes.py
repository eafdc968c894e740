"""Every route there is."""

from __future__ import annotations

from typing import Final

from outlast.http import actions, events, health, jobs, openapi, wire
from outlast.http.page.routes import PAGES
from outlast.http.table import EVENT_STREAM, Access, Answer, Parameter, Route

_KEY = Parameter(
    "Idempotency-Key",
    "header",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!#-~]{1,255}$"},
    "Made once for a request and repeated with it: 1 to 255 visible ASCII characters, bare or in quotes.",
    required=True,
)
_IF_MATCH = Parameter(
    "If-Match", "header", {"type": "string", "pattern": '^([*]|"[0-9]{1,18}([.][a-z_]+)?")$'}, 'The job\'s ETag, `"<version>"`, or `*`.'
)
_IF_NONE_MATCH = Parameter("If-None-Match", "header", {"type": "string", "pattern": '^([*]|(W/)?"[!#-~]*")$'}, "What the client has.")
_LAST_EVENT = Parameter("Last-Event-ID", "header", {"type": "string", "maxLength": 100}, "The id of the last event that was received.")
_JOB_HEADERS = ("ETag", "Retry-After")
_JOB = Answer("The job as it stands.", wire.Job, headers=_JOB_HEADERS)
_UNCHANGED = Answer("Nothing changed.", empty=True, headers=("ETag",))
_STREAM = Answer("Events named `job`: the id is the job's tag, the data the job.", wire.Job, media_type=EVENT_STREAM)
_STATES = ("active", "queued", "running", "retrying", "needs_attention", "completed", "cancelled")
_KIND = "^[^\\u0000-,/:-@\\[-^`{-\\u007f]{1,100}$"  # the letters of all scripts, said without what not every dialect of patterns knows
_QUERY = ("invalid_query",)
_ONE = ("not_found", "expired")

API: Final = (
    Route(
        "submit_job",
        "POST",
        "/v1/jobs",
        jobs.submit,
        Access.SIGNED_IN,
        "Ask for a job",
        {
            202: Answer(
                "Accepted and stored; or found again by its key, unfinished.",
                wire.Job,
                headers=("Location", "Idempotency-Replayed", *_JOB_HEADERS),
            ),
            200: Answer(
                "Found again by its key, and final; or no longer kept, and what is left of it.",
                wire.Job,
                or_body=wire.PurgedJob,
                headers=("Location", "Idempotency-Replayed", "ETag"),
            ),
        },
        (
            "malformed_json",
            "invalid_key",
            "forbidden",
            "still_admitting",
            "unique_active",
            "quota_exceeded",
            "request_timeout",
            "too_large",
            "unsupported_media_type",
            "invalid",
            "key_reused",
            "not_registered",
            "outcome_unknown",
        ),
        wire.Submit,
        (_KEY,),
    ),
    Route(
        "list_jobs",
        "GET",
        "/v1/jobs",
        jobs.list_jobs,
        Access.SIGNED_IN,
        "Your own jobs, newest first",
        {200: Answer("One page.", wire.JobList)},
        _QUERY,
        parameters=(
            Parameter("state", "query", {"type": "string", "enum": list(_STATES)}, "A state as shown, or `active`: not final."),
            Parameter("kind", "query", {"type": "string", "pattern": _KIND}, "The name of a kind: letters, digits and `_`, `.`, `-`."),
            Parameter("target", "query", {"type": "string", "minLength": 1, "maxLength": 500}, "The reference of a target."),
            Parameter("limit", "query", {"type": "integer", "minimum": 1, "maximum": 200}, "Jobs on a page; 50 if not given."),
            Parameter("cursor", "query", {"type": "string", "minLength": 1}, "The member `next` of the page before, with the same filter."),
        ),
    ),
    Route(
        "get_job",
        "GET",
        "/v1/jobs/{id}",
        jobs.get_job,
        Access.READ,
        "One job as it stands; with `wait` as soon as it changes",
        {200: _JOB, 304: _UNCHANGED},
        (*_ONE, *_QUERY, "too_many_waits"),
        parameters=(
            Parameter(
                "wait", "query", {"type": "integer", "minimum": 0, "maximum": 999_999_999}, "Seconds to wait for a change, 25 at most."
            ),
            _IF_NONE_MATCH,
        ),
    ),
    Route(
        "job_events",
        "GET",
        "/v1/jobs/{id}/events",
        events.job_events,
        Access.READ,
        "Follow one job until it is final",
        {200: _STREAM, 204: Answer("The job is final, and the client knows.", empty=True)},
        (*_ONE, "too_many_streams"),
        parameters=(_LAST_EVENT,),
    ),
    Route(
        "all_events",
        "GET",
        "/v1/events",
        events.all_events,
        Access.SIGNED_IN,
        "Follow all your jobs",
        {200: _STREAM},
        ("too_many_streams",),
        parameters=(_LAST_EVENT,),
    ),
    Route(
        "list_tasks",
        "GET",
        "/v1/jobs/{id}/tasks",
        jobs.list_tasks,
        Access.READ,
        "The tasks of a job, in plan order",
        {200: Answer("All tasks.", wire.TaskList, headers=("ETag",)), 304: _UNCHANGED},
        (*_ONE, *_QUERY),
        parameters=(_IF_NONE_MATCH,),
    ),
    Route(
        "get_result",
        "GET",
        "/v1/jobs/{id}/result",
        jobs.get_result,
        Access.OWNER,
        "The output of the task that made the job usable",
        {200: Answer("The output, as JSON of its own type.", headers=("ETag",)), 304: _UNCHANGED},
        (*_ONE, *_QUERY, "forbidden", "not_ready"),
        parameters=(_IF_NONE_MATCH,),
    ),
    Route(
        "get_task_result",
        "GET",
        "/v1/jobs/{id}/result/{no}",
        jobs.get_result,
        Access.OWNER,
        "The output of one task, by its number",
        {200: Answer("The output, as JSON of its own type.", headers=("ETag",)), 304: _UNCHANGED},
        (*_ONE, *_QUERY, "forbidden", "not_ready"),
        parameters=(_IF_NONE_MATCH,),
    ),
    Route(
        "get_recovery",
        "GET",
        "/v1/jobs/{id}/recovery",
        jobs.get_recovery,
        Access.OWNER,
        "What happened so far, what is stored, and what is next",
        {200: Answer("The past and what is next.", wire.RecoveryView)},
        (*_ONE, *_QUERY, "forbidden"),
    ),
    Route(
        "cancel_job",
        "POST",
        "/v1/jobs/{id}/cancel",
        actions.cancel,
        Access.CONTROL,
        "Stop a job; a repeat succeeds",
        {200: Answer("Cancelled; `stopping` while a worker winds down.", wire.Job, headers=_JOB_HEADERS)},
        ("bad_request", *_ONE, *_QUERY, "already_completed", "conflict", "precondition_required", "stale_version"),
        parameters=(_IF_MATCH,),
    ),
    Route(
        "act_on_job",
        "POST",
        "/v1/jobs/{id}/actions",
        actions.act,
        Access.DECIDE,
        "Decide a question that a job asks; the same request again succeeds",
        {
            202: Answer("Taken: the same job, in a new version.", wire.Job, headers=_JOB_HEADERS),
            200: Answer("Had been taken before.", wire.Job, headers=_JOB_HEADERS),
        },
        (
            "malformed_json",
            *_QUERY,
            "forbidden",
            *_ONE,
            "request_timeout",
            "attention_superseded",
            "conflict",
            "too_large",
            "unsupported_media_type",
            "invalid",
            "not_offered",
        ),
        wire.Act,
    ),
    Route(
        "take_over",
        "POST",
        "/v1/jobs/{id}/takeover",
        actions.takeover,
        Access.OWNER,
        "Take the job's target over: nothing reaches it by itself from here on",
        {200: _JOB},
        ("bad_request", *_ONE, *_QUERY, "forbidden", "no_target", "precondition_required", "stale_version"),
        parameters=(_IF_MATCH,),
    ),
    Route(
        "attach_result",
        "POST",
        "/v1/jobs/{id}/attach",
        actions.attach,
        Access.OWNER,
        "Apply a task's parked result to the target, where it stands at the version that is named",
        {200: _JOB},
        (
            "malformed_json",
            *_QUERY,
            "forbidden",
            *_ONE,
            "request_timeout",
            "nothing_parked",
            "target_changed",
            "target_failed",
            "too_large",
            "unsupported_media_type",
            "invalid",
            "not_registered",
        ),
        wire.Apply,
    ),
    Route(
        "rerun_job",
        "POST",
        "/v1/jobs/{id}/rerun",
        actions.rerun,
        Access.CONTROL,
        "Ask for a new job of the same request as one that is final",
        {
            202: Answer(
                "A new job, or the unfinished one that this key made before.",
                wire.Job,
                headers=("Location", "Idempotency-Replayed", *_JOB_HEADERS),
            ),
            200: Answer(
                "The job that this key made before, final by now; or no longer kept, and what is left of it.",
                wire.Job,
                or_body=wire.PurgedJob,
                headers=("Location", "Idempotency-Replayed", "ETag"),
            ),
        },
        (
            "invalid_key",
            *_QUERY,
            "forbidden",
            *_ONE,
            "not_final",
            "conflict",
            "still_admitting",
            "quota_exceeded",
            "key_reused",
            "invalid",
            "not_registered",
            "outcome_unknown",
        ),
        parameters=(_KEY,),
    ),
    Route(
        "healthz",
        "GET",
        "/healthz",
        health.healthz,
        Access.PUBLIC,
        "Whether this process lives",
        {200: Answer("It lives.", wire.Health)},
    ),
    Route(
        "readyz",
        "GET",
        "/readyz",
        health.readyz,
        Access.PUBLIC,
        "Whether this process can serve",
        {200: Answer("It can.", wire.Health), 503: Answer("It cannot; the code says why.", wire.Health)},
    ),
)


async def _document(call: openapi.Call) -> openapi.Response:
    return openapi.served(call, ROUTES)


ROUTES: Final = (
    *API,
    Route("openapi", "GET", "/openapi.json", _document, Access.PUBLIC, "This document", {200: Answer("The description of the API.")}),
    *PAGES,
)
