"""From the input to a plan: what can be refused is refused here, with the place in the input, before anything is stored."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from outlast.domain.errors import Invalid
from outlast.rehearsal.faults import exception_names
from outlast.rehearsal.model import Part


def check(parts: Sequence[Part]) -> None:
    """Invalid for what the schema alone cannot refuse."""
    places: dict[str, int] = {}
    for no, part in enumerate(parts):
        place = f"/tasks/{no}"
        if part.limit is not None and part.key is None:
            raise Invalid("A limit is of a concurrency key: give the task a key too.", pointers=(f"{place}/limit",))
        first = places.setdefault(part.label, no)
        if first != no:
            pointers = (f"/tasks/{first}/label", f"{place}/label")
            raise Invalid(f"Tasks {first} and {no} have the same label; labels are unique in a job.", pointers=pointers)
        if part.usable and part.optional:
            raise Invalid("A task is usable or optional, never both.", pointers=(f"{place}/usable", f"{place}/optional"))
        if part.raises is not None and part.raises not in exception_names():
            raise Invalid("The member 'raise' names a built-in exception, such as RuntimeError.", pointers=(f"{place}/raise",))
    if all(part.optional for part in parts):
        raise Invalid("A job needs at least one task that is not optional.", pointers=("/tasks",))


def in_order(parts: Sequence[Part]) -> list[int]:
    """The places of the tasks so that each comes after those it waits for, else in their own order; Invalid for a cycle."""
    place = {part.label: no for no, part in enumerate(parts)}
    waiting: list[set[int]] = []
    children: list[list[int]] = [[] for _ in parts]
    for no, part in enumerate(parts):
        parents: set[int] = set()
        for nth, label in enumerate(part.after):
            if label not in place:
                pointer = f"/tasks/{no}/after/{nth}"
                raise Invalid(f"Task {no} waits for a label that no task of this job has.", pointers=(pointer,))
            parents.add(place[label])
        for parent in parents:
            children[parent].append(no)
        waiting.append(parents)
    ready = [no for no, parents in enumerate(waiting) if not parents]
    ordered: list[int] = []
    while ready:
        no = heapq.heappop(ready)
        ordered.append(no)
        for child in children[no]:
            waiting[child].discard(no)
            if not waiting[child]:
                heapq.heappush(ready, child)
    if len(ordered) < len(parts):
        raise _cycle(waiting)
    return ordered


def _cycle(waiting: Sequence[set[int]]) -> Invalid:
    """Names one cycle: from any task that never became ready, parents lead into one."""
    at = next(no for no, parents in enumerate(waiting) if parents)
    path: list[int] = []
    while at not in path:
        path.append(at)
        at = min(waiting[at])
    ring = sorted(path[path.index(at) :])
    if len(ring) == 1:
        said = f"Task {ring[0]} waits for itself"
    else:
        said = f"Tasks {', '.join(map(str, ring[:-1]))} and {ring[-1]} wait for one another"
    return Invalid(f"{said}; remove one of these from 'after'.", pointers=tuple(f"/tasks/{no}/after" for no in ring))
