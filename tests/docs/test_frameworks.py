"""What docs/fastapi.md and docs/flask.md show is run."""

from __future__ import annotations

import re
import sqlite3
import sys
import types
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from outlast.store.open import migrate

ROOT = Path(__file__).resolve().parents[2]
ANN = {"Authorization": "Bearer ann"}


@pytest.fixture(params=["fastapi", "flask"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example of a document as a module, on a database of its own."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / f"{request.param}.md").read_text("utf-8")
    module: Any = types.ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", module)
    exec(compile(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], "shop.py", "exec"), vars(module))  # noqa: S102 - the document's own
    migrate(module.jobs.url)
    with closing(sqlite3.connect("shop.db")) as db:
        db.execute(re.findall(r'sqlite3 shop.db "(create table .*)"', text)[0])
    return module


def rows() -> int:
    with closing(sqlite3.connect("shop.db")) as db:
        found: int = db.execute("select count(*) from report").fetchone()[0]
        return found


def test_the_example_does_what_it_says(shop: Any) -> None:
    if hasattr(shop, "mount"):
        with TestClient(shop.app) as client:
            answer = client.post("/reports", json={"month": "2026-11"}, headers=ANN)
            assert (answer.status_code, answer.headers["location"]) == (202, answer.json()["url"])
            assert client.get(answer.headers["location"], headers=ANN).json()["state"] == "queued"
            assert client.get("/jobs/", headers=ANN).status_code == 200
            assert client.get("/jobs/").status_code == 401
            assert client.post("/reports", json={"month": "2026-11"}, headers=ANN).json() == answer.json()
    else:
        flask = shop.app.test_client()
        with flask.session_transaction() as session:
            session["user"] = "ann"
        answer = flask.post("/reports", json={"month": "2026-11"})
        assert (answer.status_code, answer.headers["location"]) == (202, answer.json["url"])
        assert flask.get(answer.headers["location"]).json["state"] == "queued"
        assert flask.post("/reports", json={"month": "2026-11"}).json == answer.json
        assert shop.app.test_client().get("/jobs/").status_code == 401
        assert shop.app.test_client().post("/reports", json={"month": "2026-11"}).status_code == 401
        shop.extension.close()
        shop.Session.kw["bind"].dispose()
    assert rows() == 1


@pytest.mark.parametrize("document", ["fastapi", "flask"])
def test_what_it_names_is_there(document: str) -> None:
    text = (ROOT / "docs" / f"{document}.md").read_text("utf-8")
    for target in re.findall(r"\]\(([^)#:]+)[#)]", text):
        assert (ROOT / "docs" / target).exists(), target
    assert re.search(rf"^example-{document}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert f"make example-{document}" in text
