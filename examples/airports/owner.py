"""The owner of imports, at the HTTP API and at the page: sees what goes on and what is asked, answers, and stops."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any, Final

TIMEOUT: Final = 20
OK, ACCEPTED, NOT_FOUND, UNPROCESSABLE = 200, 202, 404, 422


@dataclass
class Owner:
    """Somebody of a tenant who is signed in at the API."""

    port: int
    tenant: str
    subject: str = "owner"

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Their jobs as they stand, the newest by id, each with its question where there is one."""
        return {job["id"]: job for job in self._found("/v1/jobs?limit=50")["items"]}

    def progress(self, job_id: str) -> str | None:
        """What the import says of itself at the moment."""
        text: str | None = self._found(f"/v1/jobs/{job_id}/tasks")["items"][0]["progress"]
        return text

    def lost(self, job_id: str) -> int:
        """How many attempts were lost with their workers."""
        return sum(attempt["code"] == "worker_lost" for attempt in self._found(f"/v1/jobs/{job_id}/recovery")["attempts"])

    def page(self, job_id: str) -> str:
        """The job's page."""
        return self._send("GET", f"/jobs/{job_id}", accept="text/html")[1].decode()

    def decide(self, job: dict[str, Any], action: str, **more: object) -> int:
        """The status of the answer to a decision about the job's question."""
        body = {"attention_id": job["attention"]["id"], "action": action, **more}
        return self._send("POST", f"/v1/jobs/{job['id']}/actions", body)[0]

    def cancel(self, job: dict[str, Any]) -> int:
        """The status of the answer to a cancel."""
        return self._send("POST", f"/v1/jobs/{job['id']}/cancel", match="*")[0]

    def status(self, job_id: str) -> int:
        """The status of the answer to who asks for a job."""
        return self._send("GET", f"/v1/jobs/{job_id}")[0]

    def _found(self, path: str) -> Any:  # noqa: ANN401 - JSON
        status, body = self._send("GET", path)
        if status != OK:
            raise ConnectionError(f"{path} was answered {status}")
        return json.loads(body)

    def _send(
        self, method: str, path: str, body: object = None, *, accept: str = "application/json", match: str | None = None
    ) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer dev:{self.tenant}:{self.subject}", "Accept": accept}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if match is not None:
            headers["If-Match"] = match
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()
