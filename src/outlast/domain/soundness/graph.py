"""The graph of a plan: its edges, and that each task waits for exactly what has not ended."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from outlast.domain.soundness.rows import EdgeRow, JobRows, TaskRow
from outlast.domain.soundness.rule import Fault, count, rule, word

_OVER = ("failed", "skipped")
_FIRM = ("blocked", "open", "needs_attention", "completed", "failed")  # those that a skip or a cancel did not take out of their wait


@rule("I1", "edge", "Every edge is between tasks of its job.")
def within(rows: JobRows) -> Iterator[Fault]:
    """Both ends are there."""
    for edge in rows.edges:
        if edge.parent not in rows.tasks or edge.child not in rows.tasks:
            yield Fault(f"an edge from {edge.parent} to {edge.child}", "tasks of this plan at both ends")


@rule("A5", "soft", "An edge is soft exactly if its child is required and its parent is not.")
def soft(rows: JobRows) -> Iterator[Fault]:
    """What any end of the parent satisfies."""
    for edge, parent, child in rows.edges_of_plan():
        expected = bool(child.required) and not parent.required
        if bool(edge.soft) != expected:
            yield Fault(f"the edge from {parent.no} is {'soft' if edge.soft else 'hard'}", "soft" if expected else "hard", child.no)


@rule("A5", "cycle", "No task waits for itself, over however many others.")
def cycle(rows: JobRows) -> Iterator[Fault]:
    """Takes away what waits for nothing, until nothing is left."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    waits: Counter[int] = Counter()
    for edge in rows.edges:
        children[edge.parent].append(edge.child)
        waits[edge.child] += 1
    free = [no for no in children if not waits[no]]
    while free:
        for child in children[free.pop()]:
            waits[child] -= 1
            if not waits[child]:
                free.append(child)
    left = sorted(no for no, number in waits.items() if number > 0)
    if left:
        yield Fault(f"{count(len(left), 'task')} of the plan waits for itself", "an order in which all of it can run", left[0])


def _satisfied(edge: EdgeRow, parent: TaskRow) -> bool:
    return parent.state == "completed" or (bool(edge.soft) and parent.state in _OVER)


def _waits(rows: JobRows) -> Counter[int]:
    """By task, how many of its edges are not satisfied."""
    left: Counter[int] = Counter()
    for edge, parent, child in rows.edges_of_plan():
        left[child.no] += not _satisfied(edge, parent)
    return left


@rule("D9", "deps", "A task counts as many edges as are not satisfied.")
def deps(rows: JobRows) -> Iterator[Fault]:
    """The stored number against the edges."""
    left = _waits(rows)
    for no, task in sorted(rows.tasks.items()):
        if task.state in _FIRM and task.deps_left != left[no]:
            yield Fault(f"deps_left is {task.deps_left}", f"{left[no]} by its edges", no)


@rule("D9", "blocked", "A task is blocked exactly while an edge of its is not satisfied.")
def blocked(rows: JobRows) -> Iterator[Fault]:
    """Neither for ever nor too short."""
    left = _waits(rows)
    for no, task in sorted(rows.tasks.items()):
        if task.state in _FIRM and (task.state == "blocked") != (left[no] > 0):
            expected = f"blocked, for {count(left[no], 'edge')} is not satisfied" if left[no] else "open, for it waits for nothing"
            yield Fault(f"it is {task.state}", expected, no)


@rule("D9", "order", "No task is claimed before what it waits for has ended.")
def order(rows: JobRows) -> Iterator[Fault]:
    """Also one that was cancelled later."""
    left = _waits(rows)
    for no, task in sorted(rows.tasks.items()):
        if left[no] and rows.last_fence(task) > 0:
            yield Fault("it was claimed before what it waits for has ended", "never claimed", no)


@rule("T3", "skipped", "What waits for a task that failed or was skipped, and may not go on without it, is skipped too.")
def skipped(rows: JobRows) -> Iterator[Fault]:
    """Down the graph, in the same transaction."""
    for edge, parent, child in rows.edges_of_plan():
        if not edge.soft and parent.state in _OVER and child.state not in ("skipped", "cancelled"):
            yield Fault(f"it is {word(child.state)}, and task {parent.no}, which it needs, is {parent.state}", "skipped", child.no)


@rule("T3", "reason", "What was skipped needs a task that failed or was skipped, or its owner's or the sweep's word.")
def reason(rows: JobRows) -> Iterator[Fault]:
    """Nothing is left out by itself."""
    needed = {child.no for edge, parent, child in rows.edges_of_plan() if not edge.soft and parent.state in _OVER}
    for no, task in sorted(rows.tasks.items()):
        if task.state == "skipped" and no not in needed and not any(q.action == "skip" for q in rows.questions.get(no, ())):
            yield Fault("it was skipped for no reason", "a parent that failed or was skipped, or a question settled so", no)


RULES = (within, soft, cycle, deps, blocked, order, skipped, reason)
