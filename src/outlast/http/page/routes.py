"""The page's routes. They are for people, so no document describes them, and their refusals are pages too."""

from __future__ import annotations

from typing import Final

from outlast.http.page import assets, catalogue, decisions, portrait, results, sign_in, work
from outlast.http.table import Access, Endpoint, Route


def _page(name: str, method: str, path: str, endpoint: Endpoint, access: Access, summary: str) -> Route:
    return Route(name, method, path, endpoint, access, summary, page=True)


PAGES: Final = (
    _page("page_work", "GET", "/", work.your_work, Access.SIGNED_IN, "Your work"),
    _page("page_job", "GET", "/jobs/{id}", portrait.job, Access.READ, "A job"),
    _page("page_result", "GET", "/jobs/{id}/result", results.result, Access.OWNER, "The output of a job"),
    _page("page_task_result", "GET", "/jobs/{id}/result/{no}", results.result, Access.OWNER, "The output of one task"),
    _page("page_cancel", "POST", "/jobs/{id}/cancel", decisions.cancel, Access.CONTROL, "Stop a job"),
    _page("page_act", "POST", "/jobs/{id}/actions", decisions.act, Access.DECIDE, "Decide a question"),
    _page("page_rerun", "POST", "/jobs/{id}/rerun", decisions.rerun, Access.CONTROL, "Run a job again"),
    _page("page_problems", "GET", "/problems", catalogue.problems, Access.PUBLIC, "What the codes of problems mean"),
    _page("page_sign_in", "GET", "/sign-in", sign_in.sign_in, Access.PUBLIC, "Say who you are, in development"),
    _page("page_signed_in", "POST", "/sign-in", sign_in.signed_in, Access.PUBLIC, "Be who you say, in development"),
    _page("page_signed_out", "POST", "/sign-out", sign_in.signed_out, Access.PUBLIC, "Be nobody again, in development"),
    _page("page_asset", "GET", "/static/{name}", assets.hashed, Access.PUBLIC, "A file by the name of its content"),
    _page("component", "GET", "/component.js", assets.component, Access.PUBLIC, "The component"),
    _page("component_types", "GET", "/component.d.ts", assets.declarations, Access.PUBLIC, "The component's types"),
)
