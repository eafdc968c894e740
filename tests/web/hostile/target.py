"""What the server of the framing tests serves: the world's application, with limits that a test can wait for."""

from __future__ import annotations

import os

from outlast.http import bodies, events
from web.world import application

jobs = application("sqlite:///jobs.db")
vars(bodies)["SECONDS"] = float(os.environ.get("BODY_SECONDS", "15"))
vars(events)["LONGEST_WAIT"] = float(os.environ.get("LONGEST_WAIT", "25"))
