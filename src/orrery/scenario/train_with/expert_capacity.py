"""Loads and capacity of experts: what is dropped or padded, and the step without it, dropping and padded."""

from dataclasses import replace
from math import ceil
from typing import Any

from orrery.execution.train.cut import choice_of
from orrery.execution.train.experts import PLACED, dispatcher_of, routed
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.placement import standing
from orrery.models.model import Experts
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.changed import Changed
from orrery.training.columns import columns_of
from orrery.training.step import step_of

NONE_DROPPED = (
    "expert_capacity_factor: no expert is asked for by more than its capacity, so nothing is dropped (--expert-loads "
    "says how tokens choose)"
)
ALL_HERE = "expert_loads: no effect on this deployment: ep is 1, so every rank has all experts"


def with_expert_capacity(scenario: Scenario, plain: Changed) -> Changed:
    """The same step; a table of it without a capacity, with tokens dropped, and with rows padded."""
    ratio = plain.job.expert_capacity_ratio
    if not ratio:
        return plain.saying(notes=(ALL_HERE,)) if plain.job.expert_loads and plain.layout.ep == 1 else plain
    ways = {"no limit": (0.0, False), "dropped": (ratio, False)}
    if dispatcher_of(plain.job) in PLACED:
        ways["padded"] = (ratio, True)
    rows = tuple(
        _row(plain, way, replace(plain.job, expert_capacity_ratio=limit, pads_experts=is_padded))
        for way, (limit, is_padded) in ways.items()
    )
    title = f"Experts that take at most {ratio:g} times the mean expert's tokens"
    notes = () if any(row["dropped_frac"] > 1e-9 for row in rows) else (NONE_DROPPED,)
    return plain.saying(Table(kind="expert capacity", title=title, rows=rows), notes=notes)


def _row(plain: Changed, way: str, job: TrainingJob) -> dict[str, Any]:
    experts: Experts = next(b.experts for b in job.model.blocks if b.experts)
    assignments = routed(job, experts, choice_of([plain.layout])).own_tokens[0] * experts.experts_per_token
    found = standing(job, experts, plain.layout.ep)
    capacity = ceil(job.expert_capacity_ratio * assignments / experts.num_experts)
    return {
        "way": way,
        "capacity_tokens": capacity or None,
        "dropped_frac": max(0.0, 1.0 - found.kept_frac),
        "computed_ratio": found.sent_ratio,
        "fullest_ratio": found.fullest_ratio,
        "step_s": float(step_of(job, columns_of([plain.layout])).time_s[0]),
    }
