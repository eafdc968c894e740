"""Every sentence of the page, in one place. Nothing here says more than what is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from outlast.domain import json_schema
from outlast.domain.errors import Invalid
from outlast.domain.model import Action, JobView, Outcome, State, TaskState
from outlast.http.wire import LABELS

ACTIONS: Final[Mapping[Action, str]] = LABELS

# -- around every page ------------------------------------------------------------------------------------------

PRODUCT: Final = "Outlast"
SKIP: Final = "Skip to the content"
YOUR_WORK: Final = "Your work"
LOOK_AGAIN: Final = "Look again"
BACK_TO_WORK: Final = "Back to your work"
BACK_TO_JOB: Final = "Back to the job"
SIGN_OUT: Final = "Sign out"
SIGNED_IN: Final = "Signed in as"
AS_OPERATOR: Final = "operator"
DEVELOPMENT: Final = "Development identities: anybody is whoever they say."
AS_OF: Final = "As it stood at"
SUPPORT: Final = "For support:"
CHANGED: Final = "This changed while you were at it, and stays as you left it."
OFFLINE: Final = "There is no connection. What you see is as it stood at the time below; it is updated by itself as soon as possible."
GONE: Final = "This page is no longer updated: you may have been signed out, or the job is gone."

# -- a job ------------------------------------------------------------------------------------------------------

_HEADLINES: Final[Mapping[State, str]] = {
    "queued": "Waiting to start",
    "running": "In progress",
    "retrying": "Trying again",
    "needs_attention": "Needs you",
    "completed": "Completed",
    "cancelled": "Cancelled",
}
_OUTCOMES: Final[Mapping[Outcome, str]] = {
    "succeeded": "Completed",
    "succeeded_with_problems": "Completed, parts missing",
    "user": "Cancelled",
    "abandoned": "Given up",
    "superseded": "Replaced",
}
_LEADS: Final[Mapping[State, str]] = {
    "queued": "The request is stored and waits for a free worker. You can close this page: nothing is lost.",
    "running": "The work goes on by itself. You can close this page and come back from anywhere.",
    "retrying": "Something did not work and is tried again by itself. There is nothing for you to do.",
    "needs_attention": "There is something to decide. What depends on it waits; nothing that is stored is lost.",
    "completed": "Everything that was asked for has ended.",
    "cancelled": "It was cancelled. Nothing more of it is stored from here on.",
}
_ENDS: Final[Mapping[Outcome, str]] = {
    "succeeded": _LEADS["completed"],
    "succeeded_with_problems": "What was required is there. Optional parts are missing; the list of tasks says which.",
    "user": _LEADS["cancelled"],
    "abandoned": "It was given up: a question was dismissed, or nobody decided in time. Nothing more of it is stored.",
    "superseded": "A newer request took its place. Nothing more of this one is stored.",
}
STOPPING: Final = "A worker is still winding down. Whatever it does from here on is not stored."
STOPPING_CHIP: Final = "still stopping"
USABLE_GOES_ON: Final = "The first result can be opened now. The rest goes on by itself; you can close this page."
USABLE_STAYS: Final = "What could be opened before can still be opened."
USABLE_CHIP: Final = "can be opened"
NEEDS_OWNER: Final = "Needs its owner"
OPERATOR: Final = "You see this job as an operator. What was asked for, and its results, are for its owner alone."


def headline(job: JobView, *, owner: bool = True) -> str:
    """The state of a job in a few words."""
    if job.outcome is not None:
        return _OUTCOMES[job.outcome]
    if job.state == "needs_attention" and not owner:
        return NEEDS_OWNER
    return _HEADLINES[job.state]


def lead(job: JobView, success: str = "") -> str:
    """What the state means; `success` is the kind's own sentence, said of what completed only."""
    if job.outcome is None:
        return USABLE_GOES_ON if job.usable_at is not None and job.state == "running" else _LEADS[job.state]
    if job.outcome == "succeeded" and success:
        return success
    return _ENDS[job.outcome]


def tone(job: JobView) -> str:
    """Which look a state has: one of the classes of the style sheet."""
    return {"succeeded_with_problems": "partly"}.get(job.outcome or "", job.state)


def announcement(job: JobView, *, owner: bool = True) -> str:
    """The state for who does not see it change."""
    stopping = f", {STOPPING_CHIP}" if job.stopping else ""
    return f"{job.label}: {headline(job, owner=owner)}{stopping}. {ended(job.progress.done, job.progress.total)}."


def ended(done: int, total: int) -> str:
    """How far it is."""
    return f"{done} of {total} {'task' if total == 1 else 'tasks'} ended"


PROGRESS: Final = "Progress"
NOW: Final = "Now:"
ACCEPTED: Final = "Accepted"
ACCEPTED_AND_STORED: Final = "Accepted and stored"
FINISHED: Final = "Ended"
USABLE_SINCE: Final = "Can be opened since"

# -- its page: questions ----------------------------------------------------------------------------------------

DECIDE: Final = "What needs you"
DECIDE_OWNER: Final = "What needs its owner"
ABOUT_TASK: Final = "About the task"
UNTIL: Final = "If nobody decides until"
THEN_SKIPPED: Final = "this optional part is left out and the rest goes on."
THEN_GIVEN_UP: Final = "the job is given up."
MORE_QUESTIONS: Final = "There are more questions; they are shown when these are settled. In all:"
YOUR_ANSWER: Final = "Your answer"
ANSWER_HINT: Final = "Plain text, or JSON where the question asks for it."
ANSWER_TEXT: Final = "Plain text."
ANSWER_TEXT_OR_JSON: Final = "Plain text, or JSON of the form that the question asks for."
ANSWER_ONE_OF: Final = "One of:"
ANSWER_KINDS: Final[Mapping[object, str]] = {
    "integer": "A whole number, such as 42.",
    "number": "A number, such as 4.2.",
    "boolean": "true or false.",
    "null": "null.",
    "array": "JSON, a list such as [1, 2].",
}
ANSWER_JSON: Final = "JSON of the form that the question asks for."
ANSWER_OBJECT: Final = "JSON, an object with"
HAPPENED: Final = "It happened"
HAPPENED_NOT: Final = "It did not happen"
ABOUT_HAPPENED: Final = "It is not done again."
ABOUT_HAPPENED_NOT: Final = "It is done when the task runs again."
ANSWER_EMPTY: Final = "Write an answer first."
ANSWER_NOT_JSON: Final = "To send it as plain text, let it begin with a word."
ANSWER_KEPT: Final = "What you had written, to copy if you need it:"
CONSEQUENCES: Final[Mapping[Action, str]] = {
    "retry": "Runs this task again. What its steps have stored is used again.",
    "answer": "",
    "skip": "Leaves this optional part out. The rest goes on.",
    "dismiss": "Ends the whole job. What is stored stays; nothing more is done.",
}


def answer_hint(shape: Mapping[str, object] | None) -> str:
    """What an answer looks like, as far as a line can say it."""
    if shape is None:
        return ANSWER_HINT
    choices = shape.get("enum")
    if isinstance(choices, list) and choices:
        return f"{ANSWER_ONE_OF} {', '.join(one if isinstance(one, str) else json.dumps(one) for one in cast('list[object]', choices))}."
    if json_schema.takes_text(cast("json_schema.Schema", shape)):
        return ANSWER_TEXT if json_schema.takes_text(cast("json_schema.Schema", shape), alone=True) else ANSWER_TEXT_OR_JSON
    if isinstance(kind := shape.get("type"), str) and kind in ANSWER_KINDS:
        return ANSWER_KINDS[kind]
    named = shape.get("properties")
    if not isinstance(named, Mapping) or not named:
        return ANSWER_JSON
    required = shape.get("required")
    needed = cast("list[object]", required) if isinstance(required, list) else []
    members = ", ".join(name if name in needed else f"{name} ({OPTIONAL})" for name in cast("Mapping[str, object]", named))
    return f"{ANSWER_OBJECT} {members}."


def words_suffice(shape: Mapping[str, object] | None) -> bool:
    """Whether a question about a call of unknown outcome can be answered by a yes; else its outcome must be written down too."""
    try:
        json_schema.check({"happened": True}, cast("json_schema.Schema", shape or {}), what="answer")
    except Invalid:
        return False
    return True


# -- its page: results, tasks, facts -----------------------------------------------------------------------------

OPEN_HEADING: Final = "What you can open now"
NOTHING_TO_OPEN: Final = "Nothing yet. The first result appears here as soon as it is stored."
NOTHING_CAME: Final = "Nothing: it ended before a first result was stored."
OWNER_CAN_OPEN: Final = "A first result is there. Only its owner can open it."
OPEN: Final = "Open"
OPEN_RESULT: Final = "Open the result"
READ_RESULT: Final = "Read the result"
FOUND_AT: Final = "It is found at:"
TARGET: Final = "Where the result goes"
TARGET_REF: Final = "It is for"
TARGET_VERSION: Final = "Version this job last saw"
TARGET_STATES: Final = {
    "none": "The result is put there by itself, unless it is changed meanwhile. What you write there is never overwritten.",
    "attached": "The result was put there.",
    "parked": "It was changed meanwhile, so the result was kept aside and nothing was overwritten.",
}
TAKEN_OVER: Final = "You took it over:"
TAKE_OVER: Final = "I take over from here"
TAKE_OVER_DOES: Final = "Later results of this job are kept aside for you instead of being put there."
ATTACH: Final = "Put the result there"
ATTACH_VERSION: Final = "Version that the result may replace, for the task"
ATTACH_DOES: Final = "It is done only if it still has the version that you name."

TASKS: Final = "Tasks"
OPTIONAL: Final = "optional"
MAKES_USABLE: Final = "first result"
RESULT_STORED: Final = "result stored"
READ: Final = "Read"
NEXT_ATTEMPT: Final = "next try"
NOT_BEFORE: Final = "not before"
TASK_STATES: Final[Mapping[TaskState, str]] = {
    "blocked": "Waits for an earlier task",
    "queued": "Waits for a worker",
    "running": "In progress",
    "retrying": "Is tried again",
    "needs_attention": "Needs a decision",
    "completed": "Completed",
    "skipped": "Left out",
    "failed": "Failed",
    "cancelled": "Cancelled",
}
CODES: Final[Mapping[str, str]] = {
    "worker_lost": "The worker was lost; another one takes over.",
    "deadline_exceeded": "An attempt took too long and was ended.",
    "parent_failed": "What it builds on is missing.",
    "not_permitted": "The right to have this done has ended since it was asked for.",
    "permission_unknown": "Whether this may still be done could not be learnt.",
    "input_gone": "What it was to work on is no longer there.",
    "payload_incompatible": "This release cannot read what was asked for.",
    "stored_incompatible": "This release cannot read what an earlier one has stored.",
    "completion_dropped": "The task did not hand its result over.",
    "completion_awaited": "The task did not hand its result over.",
    "completion_missing": "The task did not hand its result over.",
    "session_invalid": "The application's database session cannot be used as it is set up.",
    "session_elsewhere": "The application's database session works on another database.",
    "transaction_ended": "The task ended a database transaction that was not its own to end.",
    "transaction_misused": "The task used its database session in a way that cannot work.",
    "inside_transaction": "The task did inside a database transaction what has to be done outside of it.",
    "result_invalid": "The result cannot be stored.",
    "error": "The task failed.",
    "outcome_unknown": "It is not known whether a call to the outside took place; the next attempt finds out.",
    "effect_unknown": "It is not known whether a call to the outside took place.",
}
"""What the codes that come from here mean; a kind's own codes are shown as they are."""


def attempt(number: int, most: int) -> str:
    """Which attempt it is; empty for the first of several, which needs no words."""
    return f"attempt {number} of {most}" if number > 1 else ""


FACTS: Final = "What is stored"
KIND: Final = "Kind"
STORED_RESULTS: Final = "Results stored"
NO_RESULTS: Final = "none yet"
SUCCESS: Final = "Success means"
CANNOT_UNDO: Final = "A cancel cannot undo"
RERUN_OF: Final = "Run again from"
EARLIER_JOB: Final = "an earlier job"
VERSION: Final = "Version"


def results_stored(stored: int, total: int) -> str:
    """How many tasks have their results stored."""
    return f"{stored} of {total} {'task' if total == 1 else 'tasks'}"


# -- its page: what can be done ----------------------------------------------------------------------------------

CONTROL: Final = "What you can do"
CANCEL: Final = "Cancel this job"
CANCEL_DOES: Final = (
    "Stops what has not ended. Results that are stored stay, and can still be opened. A cancelled job cannot be taken up again."
)
RERUN: Final = "Run it again"
RERUN_DOES: Final = "Makes a new job of the same request. This one stays as it is."
EFFECTS: Final = "Calls to the outside that may have happened:"
PAST: Final = "What happened so far, in detail"
PAST_NOTHING: Final = "No attempt has ended yet."
PAST_TASK, PAST_ATTEMPT, PAST_RESULT, PAST_BEGAN, PAST_ENDED = "Task", "Attempt", "How it ended", "Began", "Ended"
PAST_COMPLETED: Final = "completed"
STEPS: Final = "Stored steps of tasks that have not ended yet are used again by whoever goes on with them."


def steps_stored(stored: int) -> str:
    """How many steps a task has stored."""
    return f"{stored} {'step' if stored == 1 else 'steps'} stored"


# -- refusals ----------------------------------------------------------------------------------------------------

NOT_DONE: Final[Mapping[str, str]] = {
    "stale_version": "Not done: the job had changed",
    "target_changed": "Not done: it has another version by now",
    "target_failed": "Not done: the result could not be put there",
    "nothing_parked": "Not done: there is nothing to put there",
    "already_completed": "Not cancelled: the job had completed before",
    "attention_superseded": "Not done: the question had been settled before",
    "not_final": "Not run again: the job has not ended",
    "not_offered": "Not done: this is not offered here",
    "quota_exceeded": "Not run again: too much of this kind is unfinished",
    "invalid": "Not sent: please look at your answer",
}
WHY_NOT: Final[Mapping[str, str]] = {
    "stale_version": (
        "It moved on after you opened the page from which you sent this, so nothing was done. Below is how it stands now. "
        "If you still want it, do it from here."
    ),
    "already_completed": "There was nothing left to stop when the cancel arrived. Everything it made is stored.",
    "attention_superseded": (
        "Somebody decided it in another window, its time was over, or the job ended meanwhile. Your decision changed nothing. "
        "Below is how the job stands now."
    ),
    "target_changed": "It does not have the version that you named, so nothing was changed. Name the version that it has now.",
    "nothing_parked": "The result was put there already, or was never kept aside.",
    "not_final": "Only a job that is completed or cancelled can be run again. Below is how this one stands now.",
    "quota_exceeded": (
        "There are as many unfinished jobs of this kind as one owner may have at a time, so no new one was made. "
        "Run it again when one of them has ended, or cancel one that is no longer wanted."
    ),
    "not_offered": "The job does not offer this, or not any more. Below is what it offers now.",
    "invalid": "Nothing was sent. What you wrote is kept below, with what is wrong beside it.",
}
FOR_PAGES: Final[Mapping[str, str]] = {
    "unauthenticated": "Sign in at the application that this page belongs to, then open the page again.",
    "outcome_unknown": "Whether this was stored could not be learnt. Go back and do the same once more: it is not done twice.",
    "stale_form": "The page from which you sent this was too old, or cookies are blocked. Nothing was done. Reload the page and try again.",
    "unsupported_media_type": "This address takes what the page's own forms send.",
}
"""Where the words of a problem speak to programs, those for people."""
FORM_BROKEN: Final = "The form is not one of this page. Reload the page and try again."

# -- the list ----------------------------------------------------------------------------------------------------

SECTIONS: Final[Mapping[str, str]] = {"needs": "Needs you", "going": "Goes on", "done": "Ended"}
EMPTY_SECTIONS: Final[Mapping[str, str]] = {
    "needs": "Nothing needs you.",
    "going": "Nothing is under way.",
    "done": "Nothing has ended yet.",
}
NOTHING_HERE: Final = "There is no work of yours here yet."
NOTHING_HINT: Final = "What you ask for appears here as soon as it is accepted, and stays here while you are away."
NO_MORE: Final = "There is nothing more in this list."
OLDER: Final = "Show older ones"
NEWEST: Final = "Back to the newest"
EARLIER: Final = "older"

# -- the result, the catalogue, the sign-in ----------------------------------------------------------------------

RESULT: Final = "Result"
RESULT_OF: Final = "Result of"
RAW: Final = "As JSON, for programs"
RESULT_EMPTY: Final = "The task ended without anything to show."
CATALOGUE: Final = "Problems"
CATALOGUE_LEAD: Final = (
    "What the answers of the API mean by their member code. What is retryable may succeed later, sent once more as it was."
)
CODE, STATUS, MEANING, RETRYABLE = "Code", "Status", "Meaning", "Retryable"
YES, NO = "yes", "no"
SIGN_IN: Final = "Sign in"
SIGN_IN_LEAD: Final = "For development only. Name a tenant and a person; there is no password."
TENANT: Final = "Tenant"
SUBJECT: Final = "Person"
OPERATOR_OF: Final = "As an operator of the tenant"
NO_COLON: Final = "Leave the colon out."
NOT_OPERATOR: Final = "Use the box below instead of the ending :operator."
NEEDED: Final = "This is needed, in one line of up to 200 characters."
