"""Cuts the power after every change of a recording, several times, and looks at what is left."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from powerloss.aftermath import Aftermath, Fact
from powerloss.disk import Disk, Fate
from powerloss.history import Acknowledged, History

_MEMORY = Path("/dev/shm")
_SHOWN = 5


@dataclass(slots=True)
class Report:
    """What came of the cuts."""

    cuts: int = 0
    images: int = 0
    distinct: int = 0
    acknowledged: int = 0
    lost: int = 0
    """Images that lack something acknowledged."""
    unsound: int = 0
    """Images whose file or store is not whole."""
    kinds: Counter[str] = field(default_factory=Counter[str])
    """What was lost, by kind."""
    examples: list[str] = field(default_factory=list[str])

    @property
    def clean(self) -> bool:
        """Nothing was lost, all is whole, and there was something to lose."""
        return self.images > 0 and self.acknowledged > 0 and self.lost == self.unsound == 0


def cut(history: History, *, seed: int, images: int, stop_at: int | None = None) -> Report:
    """Cuts the power after every change, so often that there are at least so many images; `stop_at`: that many bad ones are enough.

    Of each cut one image has nothing that was not synced, one has all of it, and the others are drawn from the seed.
    """
    changes = 1 + sum(not isinstance(event, Acknowledged) for event in history.events)
    each = max(2, -(-images // changes))
    report = Report()
    folder = Path(tempfile.mkdtemp(prefix="outlast-images-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))
    try:
        aftermath = Aftermath(folder, history.name)
        disk = Disk(history.name, history.start)
        acknowledged: list[Fact] = []
        for place, event in enumerate(history.events):
            if isinstance(event, Acknowledged):
                acknowledged.append(event.fact)
            disk.apply(event)
            # An acknowledgement leaves the disk as it is, and what is on it has to suffice from here on.
            report.cuts += 1
            for n in range(1 if isinstance(event, Acknowledged) else each):
                fate: Fate = "dropped" if n == 0 else "kept" if n == 1 else "drawn"
                _judge(report, aftermath, disk.image(fate, Random(f"{seed} {place} {n}")), acknowledged, place)
            if stop_at is not None and report.lost + report.unsound >= stop_at:
                break
        report.acknowledged, report.distinct = len(acknowledged), aftermath.distinct
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report


def _judge(report: Report, aftermath: Aftermath, image: dict[str, bytes], acknowledged: list[Fact], place: int) -> None:
    report.images += 1
    found = aftermath.of(image)
    missing = [] if found.wrong else [fact for fact in acknowledged if found.lacks(fact)]
    report.unsound += bool(found.wrong)
    report.lost += bool(missing)
    report.kinds.update({fact[0] for fact in missing})
    if (found.wrong or missing) and len(report.examples) < _SHOWN:
        files = ", ".join(sorted(image))
        said = "; ".join(found.wrong) or f"lost: {', '.join(' '.join(part[:40] for part in fact) for fact in missing[:3])}"
        report.examples.append(f"after change {place}, of {files}: {said}")
