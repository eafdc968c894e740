"""What the server of the framing tests serves: the world's application, with limits that a test can wait for."""

from __future__ import annotations

import os

from outlast.http import bodies, events
from web.world import application

jobs = application("sqlite:///jobs.db")
bodies.__dict__["SECONDS"] = float(os.environ.get("BODY_SECONDS", "15"))
events.__dict__["LONGEST_WAIT"] = float(os.environ.get("LONGEST_WAIT", "25"))
