"""The rehearsal's `attach`: a document of the provider that somebody edits meanwhile is never overwritten, and nothing is lost."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from crash.stage import OWNER, Stage
from crash.test_b11_effects import Provider, provider
from outlast import Conflict, TargetRef
from outlast.rehearsal import app

__all__ = ["provider"]


def put(provider: Provider, text: str, version: str | None) -> dict[str, Any]:
    body = json.dumps({"text": text, "version": version}).encode()
    request = urllib.request.Request(f"{provider.address}/documents/d1", body, method="PUT")  # noqa: S310 - of the provider that the test started
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
        return found


def submit(stage: Stage, version: str, **part: object) -> str:
    body: Any = {"tasks": [{"label": "A", "attach": "from the job", **part}]}
    return stage.jobs.submit(app.registry.kind("rehearsal"), body, owner=OWNER, target=TargetRef("d1", version)).id


@pytest.mark.parametrize("sync", [False, True])
def test_an_edit_meanwhile_is_kept_and_the_text_is_the_owners_to_apply(stage: Stage, provider: Provider, sync: bool) -> None:
    version = put(provider, "first", None)["version"]
    plain = submit(stage, version, sync=sync)
    stage.worker()
    stage.reached([plain])
    assert stage.job(plain).attach == "attached"
    assert provider.ask("/documents/d1") == {"ref": "d1", "version": "2", "text": "from the job"}

    edited = submit(stage, "2", sync=sync, seconds=0.5)
    put(provider, "mine", "2")
    stage.reached([edited])
    assert stage.job(edited).attach == "parked"
    assert provider.ask("/documents/d1")["text"] == "mine"
    with pytest.raises(Conflict):
        stage.jobs.attach(edited, 0, principal=OWNER, target_version="2")
    assert stage.jobs.attach(edited, 0, principal=OWNER, target_version="3").attach == "attached"
    assert provider.ask("/documents/d1") == {"ref": "d1", "version": "4", "text": "from the job"}


def test_a_worker_killed_before_it_attaches_is_replaced(stage: Stage, provider: Provider) -> None:
    version = put(provider, "first", None)["version"]
    job = submit(stage, version, seconds=1.5)
    first = stage.worker()
    stage.started(job)
    first.kill()
    stage.worker()
    stage.reached([job])
    assert stage.job(job).attach == "attached"
    assert provider.ask("/documents/d1") == {"ref": "d1", "version": "2", "text": "from the job"}
