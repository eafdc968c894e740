"""All rules that are functions: of a job's rows, and of an effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from outlast.domain.soundness import attempts, effects, entries, graph, job, questions, slots, tasks
from outlast.domain.soundness.rows import EffectRow, JobRows
from outlast.domain.soundness.rule import Checked, Finding

JOB_RULES: Final[tuple[Checked[JobRows], ...]] = (
    *job.RULES,
    *tasks.RULES,
    *entries.RULES,
    *slots.RULES,
    *graph.RULES,
    *attempts.RULES,
    *questions.RULES,
)
EFFECT_RULES: Final[tuple[Checked[EffectRow], ...]] = effects.RULES


def of_job(rows: JobRows) -> Iterator[Finding]:
    """What does not hold of one job."""
    for rule in JOB_RULES:
        for fault in rule.check(rows):
            yield Finding(rule, rows.job.tenant, rows.job.id, fault.no, fault.found, fault.expected)


def of_effect(row: EffectRow) -> Iterator[Finding]:
    """What does not hold of one effect."""
    for rule in EFFECT_RULES:
        for fault in rule.check(row):
            yield Finding(rule, row.tenant, row.job_id, fault.no, fault.found, fault.expected)
