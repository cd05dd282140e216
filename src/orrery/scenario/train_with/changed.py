"""A step as a technique leaves it: seconds by part, memory by rank, and tables about the technique."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.training.ranks import Rank
from orrery.training.step import Steps

S_PER_DAY = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Changed:
    """One layout's step and ranks; ``tables`` say what the technique does to them."""

    job: TrainingJob
    layout: TrainingLayout
    steps: Steps
    ranks: tuple[Rank, ...]
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    outage_lost_s: float | None = None  # full-speed training that a lost node costs, where nobody waits for its repair

    @property
    def step_s(self) -> float:
        """Seconds of the step."""
        return float(self.steps.time_s[0])

    @property
    def parts(self) -> dict[str, float]:
        """Seconds by part; they add up to the step."""
        return {name: float(value[0]) for name, value in self.steps.parts.items()}

    def with_parts(self, parts: Mapping[str, float]) -> "Changed":
        """The same with other seconds in these parts."""
        own = self.steps.parts | {name: np.array([seconds]) for name, seconds in parts.items()}
        return replace(self, steps=replace(self.steps, parts=own))

    def with_more(self, category: str, bytes_of_fullest: float) -> "Changed":
        """The same where ranks hold more of a category, in proportion to their weights."""
        most = max(r.parts["weights"] for r in self.ranks)
        ranks = tuple(
            replace(r, parts=r.parts | {category: r.parts[category] + bytes_of_fullest * r.parts["weights"] / most})
            for r in self.ranks
        )
        return replace(self, ranks=ranks)

    def saying(self, *tables: Table, notes: tuple[str, ...] = ()) -> "Changed":
        """The same with tables and notes on top."""
        return replace(self, tables=(*self.tables, *tables), notes=(*self.notes, *notes))


def days(scenario: Scenario, job: TrainingJob, step_s: float) -> dict[str, float]:
    """A column: days of so many tokens, where the scenario says how many."""
    if scenario.train_tokens is None:
        return {}
    return {"days": scenario.train_tokens / job.tokens_per_step * step_s / S_PER_DAY}


def refuse_beside(scenario: Scenario, name: str, others: tuple[str, ...], why: str) -> None:
    """Refuse two settings that do not compose."""
    for other in others:
        if getattr(scenario, other) is not None:
            raise ScenarioError(f"{other}: does not go with {name}: {why}; leave one of them out.")


def refuse_without(scenario: Scenario, of: str, names: tuple[str, ...]) -> None:
    """Refuse knobs of a setting that is not there."""
    if getattr(scenario, of) is None and (given := [n for n in names if getattr(scenario, n) is not None]):
        raise ScenarioError(f"{given[0]}: means nothing without {of}; write {of} beside it, or leave it out.")
