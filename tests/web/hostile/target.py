"""What the server of the framing tests serves: the world's application, with limits that a test can wait for."""

from __future__ import annotations

import os

from outlast.http import bodies, events
from outlast.http.development import identify
from web.world import application

jobs = application("sqlite:///jobs.db")
jobs.asgi(identify=identify)  # the same identities, without the rest of development: there it answers to names of this machine only
bodies.__dict__["SECONDS"] = float(os.environ.get("BODY_SECONDS", "15"))
events.__dict__["LONGEST_WAIT"] = float(os.environ.get("LONGEST_WAIT", "25"))
