"""What schemathesis makes of the document, sent to a server: good requests and bad ones, and every answer compared with what is written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from outlast.http.routes import API
from web.served import Process
from web.world import World, people, world

__all__ = ["world"]

CONFIG = """
workers = 1
continue-on-failure = true
max-stream-events = 1
request-timeout = 20
warnings = false

[cache]
enabled = false

[generation]
max-examples = 20
deterministic = true
database = "none"

[auth.openapi.host]
bearer = "dev:acme:ann"

# Jobs that are there, one in each state, and tags that some of them have.
[dictionaries.ids]
values = {ids}
[dictionaries.tags]
values = ["*", '"1"', '"2"', '"1.queued"', '"3.needs_attention"']
[parameters]
"path.id" = {{ dictionary = "ids", probability = 0.8 }}
"header.If-Match" = {{ dictionary = "tags", probability = 0.9 }}
"header.If-None-Match" = {{ dictionary = "tags", probability = 0.9 }}

# What a document cannot say: a cursor comes from a page and cannot be made up.
[[operations]]
include-operation-id = "list_jobs"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "400"]

# Which kinds there are, and what they take.
[[operations]]
include-operation-id = "submit_job"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "403", "409", "422"]

# Which questions are open, and what they offer.
[[operations]]
include-operation-id = "act_on_job"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "409", "422"]

# Whether the key is one of another request.
[[operations]]
include-operation-id = "rerun_job"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "409", "422"]

# Which version a job has; and that a job which is cancelled already needs none.
[[operations]]
include-operation-id = "cancel_job"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "409", "412", "428"]
# In this phase headers are made of letters and digits whatever their pattern says, so that no entity tag comes of it.
[operations.phases.coverage.checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "404", "409", "412", "428"]

# Which job has a target, at which version it stands, and what is parked.
[[operations]]
include-operation-id = "take_over"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "409", "412", "428"]
[operations.phases.coverage.checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "404", "409", "412", "428"]

# A number with a fraction of zero is an integer for JSON Schema, and none for a reader of integers.
[[operations]]
include-operation-id = "attach_result"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "409", "422"]

[[operations]]
include-operation-id = ["get_job", "list_tasks", "get_result", "get_task_result"]
[operations.phases.coverage.checks.positive_data_acceptance]
expected-statuses = ["2xx", "304", "400", "404", "409"]
"""


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_document_is_what_the_api_does(world: World, tmp_path: Path) -> None:
    copied = world.copy(tmp_path / "jobs.db")
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG.format(ids=json.dumps(sorted(world.ids(people("acme")["owner"])))))
    serve = ["-m", "outlast", "serve", "web.hostile.target:jobs", "--store", copied.url, "--port", "0", "--dev-identities"]
    with Process(tmp_path, serve, LONGEST_WAIT="0.1") as server:
        found = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", "--no-color", "--checks", "all"),
                f"http://127.0.0.1:{server.port}/openapi.json",
            ],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stdout
        assert server.process.poll() is None
        assert "Traceback" not in server.log
        assert "ERROR" not in server.log
    # Where the document itself comes from it does not try.
    assert f"Tested: {len(API)}\n" in found.stdout, found.stdout
    generated = re.search(r"(\d+) generated", found.stdout)
    assert generated is not None
    assert int(generated[1]) >= 300, found.stdout
