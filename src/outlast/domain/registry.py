"""What one process has registered: tasks by name, kinds by name and version, and the handler keys that a worker may claim."""

from __future__ import annotations

from enum import Enum
from typing import Any

from outlast.domain.errors import Invalid, NotRegistered
from outlast.domain.evolution import spoken
from outlast.domain.kinds import AnyTask, ItemTask, Kind, Target, Task, handler_key, parse_handler


class Lack(Enum):
    """Why a process cannot run the tasks of a handler key."""

    KIND = "kind"
    OLDER = "older"  # the version has no upgrade here
    NEWER = "newer"
    TASK = "task"  # none of that name takes the kind's input


class Registry:
    """Filled at import by the decorators; read by client and worker."""

    def __init__(self) -> None:
        self.tasks: dict[str, AnyTask[Any]] = {}
        self.kinds: dict[str, Kind[Any]] = {}
        self.targets: dict[str, Target[Any]] = {}

    def add_target(self, target: Target[Any]) -> None:
        """Registers a target under a name of its own."""
        if target.name in self.targets:
            raise Invalid(f"The target {target.name!r} is registered already.")
        self.targets[target.name] = target

    def add_task(self, task: Task[Any, Any] | ItemTask[Any, Any, Any]) -> None:
        """Registers a task, which is a kind of its own name too unless it takes an item."""
        if task.name in self.tasks or task.name in self.kinds:
            raise Invalid(f"The name {task.name!r} is registered already; give one of the two another by name=.")
        self.tasks[task.name] = task
        if isinstance(task, Task):
            self.kinds[task.name] = task

    def add_kind(self, kind: Kind[Any]) -> None:
        """Registers a kind; one version of a name in one process."""
        if kind.target is not None and self.targets.get(kind.target.name) is not kind.target:
            raise Invalid(f"The target of the kind {kind.name!r} is not registered with this Outlast.")
        if kind.name in self.kinds:
            raise Invalid(f"The kind {kind.name!r} is registered already; kinds and tasks share their names.")
        self.kinds[kind.name] = kind

    def kind(self, name: str, version: int | None = None) -> Kind[Any]:
        """The kind of this name, if it reads this version where one is given; NotRegistered otherwise."""
        kind = self.kinds.get(name)
        if kind is None:
            raise NotRegistered("This process knows no kind of that name.")
        if version is not None and version != kind.version and version not in (readable := kind.upgrades.readable):
            raise NotRegistered(f"This process knows {spoken(readable)} of the kind {name!r}, not version {version}.")
        return kind

    def knows(self, kind: Kind[Any]) -> bool:
        """Whether this very kind was registered here."""
        return self.kinds.get(kind.name) is kind

    def check(self) -> None:
        """Invalid where a kind has upgrades with a gap: to be seen when a process starts, not when it meets an old job."""
        for kind in self.kinds.values():
            _ = kind.upgrades.readable

    def handlers(self) -> tuple[str, ...]:
        """Every handler key that this process can run: a kind, in each version that it reads, with each task that takes its input.

        A task counts whether or not the present plan has it: plans are fixed when a job is admitted. Invalid for a gap in the upgrades.
        """
        keys: list[str] = []
        for kind in self.kinds.values():
            versions = kind.upgrades.readable
            keys.extend(handler_key(kind, task, version) for task in self._tasks_of(kind) for version in versions)
        return tuple(sorted(keys))

    def _tasks_of(self, kind: Kind[Any]) -> list[AnyTask[Any]]:
        alone = self.tasks.get(kind.name)
        if alone is not None:  # a task by itself
            return [alone]
        return [task for task in self.tasks.values() if _takes(task, kind)]

    def resolve(self, key: str) -> tuple[Kind[Any], int, AnyTask[Any]]:
        """The kind, version and task of a handler key; NotRegistered if this process does not know them."""
        kind_name, version, task_name = parse_handler(key)
        return self.kind(kind_name, version), version, self._task(task_name)

    def maker(self, key: str) -> tuple[Kind[Any], AnyTask[Any]]:
        """As `resolve`, of whatever version: for a result that is there, which no version of an input says anything about."""
        kind_name, _, task_name = parse_handler(key)
        return self.kind(kind_name), self._task(task_name)

    def _task(self, name: str) -> AnyTask[Any]:
        task = self.tasks.get(name)
        if task is None:
            raise NotRegistered(f"This process knows no task {name!r}.")
        return task

    def lack(self, key: str) -> Lack | None:
        """What is missing here to run a handler key; None: nothing is."""
        kind_name, version, task_name = parse_handler(key)
        kind = self.kinds.get(kind_name)
        if kind is None:
            return Lack.KIND
        if version > kind.version:
            return Lack.NEWER
        if version not in kind.upgrades.readable:
            return Lack.OLDER
        return None if any(task.name == task_name for task in self._tasks_of(kind)) else Lack.TASK

    def queues(self) -> tuple[str, ...]:
        """The queues that the registered tasks name, and the default one."""
        return tuple(sorted({"default", *(str(t.options.get("queue", "default")) for t in self.tasks.values())}))


def _takes(task: AnyTask[Any], kind: Kind[Any]) -> bool:
    return isinstance(task, Task | ItemTask) and bool(task.input_type == kind.input_type)
