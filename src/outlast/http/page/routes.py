"""The page's routes. They are for people, so no document describes them, and their refusals are pages too."""

from __future__ import annotations

from typing import Final

from outlast.http.page import assets, catalogue, decisions, portrait, results, sign_in, work
from outlast.http.table import Access, Route

PAGES: Final = (
    Route("page_work", "GET", "/", work.your_work, Access.SIGNED_IN, "Your work", page=True),
    Route("page_job", "GET", "/jobs/{id}", portrait.job, Access.READ, "A job", page=True),
    Route("page_result", "GET", "/jobs/{id}/result", results.result, Access.OWNER, "The output of a job", page=True),
    Route("page_task_result", "GET", "/jobs/{id}/result/{no}", results.result, Access.OWNER, "The output of one task", page=True),
    Route("page_cancel", "POST", "/jobs/{id}/cancel", decisions.cancel, Access.CONTROL, "Stop a job", page=True),
    Route("page_act", "POST", "/jobs/{id}/actions", decisions.act, Access.DECIDE, "Decide a question", page=True),
    Route("page_takeover", "POST", "/jobs/{id}/takeover", decisions.takeover, Access.OWNER, "Take a job's target over", page=True),
    Route("page_attach", "POST", "/jobs/{id}/attach", decisions.attach, Access.OWNER, "Apply a parked result", page=True),
    Route("page_rerun", "POST", "/jobs/{id}/rerun", decisions.rerun, Access.CONTROL, "Run a job again", page=True),
    Route("page_problems", "GET", "/problems", catalogue.problems, Access.PUBLIC, "What the codes of problems mean", page=True),
    Route("page_sign_in", "GET", "/sign-in", sign_in.sign_in, Access.PUBLIC, "Say who you are, in development", page=True),
    Route("page_signed_in", "POST", "/sign-in", sign_in.signed_in, Access.PUBLIC, "Be who you say, in development", page=True),
    Route("page_signed_out", "POST", "/sign-out", sign_in.signed_out, Access.PUBLIC, "Be nobody again, in development", page=True),
    Route("page_asset", "GET", "/static/{name}", assets.hashed, Access.PUBLIC, "A file by the name of its content", page=True),
    Route("component", "GET", "/component.js", assets.component, Access.PUBLIC, "The component", page=True),
    Route("component_types", "GET", "/component.d.ts", assets.declarations, Access.PUBLIC, "The component's types", page=True),
)
