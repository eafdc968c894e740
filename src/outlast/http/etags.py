"""Entity tags: a job's is strong, `"<version>.<state>"`; an action's precondition names the version (RFC 9110, 8.8.3 and 13.1)."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from outlast.domain.model import JobView
from outlast.http.problems import Problem

_TAG: Final = re.compile(r'(W/)?"([!\x23-\x7e\x80-\xff]*)"')
_LIST: Final = re.compile(r'\s*(?:W/)?"[!\x23-\x7e\x80-\xff]*"\s*(?:,\s*(?:W/)?"[!\x23-\x7e\x80-\xff]*"\s*)*')
_VERSION: Final = re.compile(r"([0-9]{1,18})(?:\.[a-z_]+)?")
NO_VERSION: Final = -1
"""A version that no job has: what a tag of something else comes to."""


def tag_of(job: JobView) -> str:
    """A job's tag without quotes, which is also the id of its events."""
    return f"{job.version}.{job.state}"


def strong(job: JobView) -> str:
    """A job's ETag."""
    return f'"{tag_of(job)}"'


def of_bytes(body: bytes, *, weak: bool) -> str:
    """The ETag of a body that has no version of its own."""
    digest = hashlib.sha256(body).hexdigest()[:24]
    return f'W/"{digest}"' if weak else f'"{digest}"'


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether what the client has is still what stands here (weak comparison)."""
    if if_none_match is None:
        return False
    if if_none_match.strip() == "*":
        return True
    mine = etag.removeprefix("W/")
    return any(f'"{opaque}"' == mine for _, opaque in _tags(if_none_match, "If-None-Match"))


def wanted_version(if_match: str, present: int) -> int | None:
    """The version that a precondition names; None for `*`, the present one if it is among several, else one that does not match."""
    if if_match.strip() == "*":
        return None
    versions: list[int] = []
    for weak, opaque in _tags(if_match, "If-Match"):
        found = _VERSION.fullmatch(opaque)
        versions.append(NO_VERSION if weak or found is None else int(found[1]))
    return present if present in versions else versions[0]


def _tags(header: str, name: str) -> list[tuple[bool, str]]:
    if _LIST.fullmatch(header) is None:
        raise Problem("bad_request", f'The {name} header holds no entity tags: write them in quotes, for example "3", or *.')
    return [(bool(weak), opaque) for weak, opaque in _TAG.findall(header)]
