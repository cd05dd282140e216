"""A layout of the user's beside the plans of a search: its rank, and what the best does otherwise."""

from dataclasses import dataclass, fields, replace
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.layout_name import read_name
from orrery.planner.training.nearby import nearest_sensible
from orrery.scenario.answer import to_json
from orrery.scenario.train import TrainAnswer
from orrery.scenario.train_job import TrainingQuestion, layout_of
from orrery.training.allowed import refusal
from orrery.training.columns import columns_of
from orrery.training.schedules.registry import SCHEDULES
from orrery.training.step import PARTS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Against:
    """Rank of one layout among all that were searched."""

    answer: TrainAnswer
    num_faster: int  # layouts of the search that fit and take less time
    need_bytes: float  # of its fullest device
    have_bytes: float

    @property
    def fits(self) -> bool:
        """Whether it runs at all."""
        return self.need_bytes <= self.have_bytes

    @property
    def rank(self) -> int:
        """1 = as fast as the best."""
        return self.num_faster + 1

    def differences(self, best: TrainAnswer) -> dict[str, tuple[Any, Any]]:
        """Fields of the layout that the best plan has otherwise: (its, the best's)."""
        mine, other = self.answer.layout, best.layout
        found = {f.name: (getattr(mine, f.name), getattr(other, f.name)) for f in fields(TrainingLayout)}
        return {name: pair for name, pair in found.items() if pair[0] != pair[1]}

    def seconds_lost(self, best: TrainAnswer) -> dict[str, float]:
        """By part, what the step takes longer than the best plan's; below zero where it is shorter."""
        return {name: self.answer.parts[name] - best.parts[name] for name in PARTS}

    def to_json(self, best: TrainAnswer | None) -> dict[str, Any]:
        """For scripts; SI units."""
        a = self.answer
        out: dict[str, Any] = {
            "layout": a.layout,
            "name": str(a.layout),
            "rank": self.rank,
            "num_faster": self.num_faster,
            "step_time_s": a.step_time_s,
            "mfu_frac": a.mfu_frac,
            "parts": a.parts,
            "fits": self.fits,
            "need_bytes": self.need_bytes,
            "have_bytes": self.have_bytes,
        }
        if best:
            out |= {
                "time_ratio": a.step_time_s / best.step_time_s,
                "seconds_lost": self.seconds_lost(best),
                "best_does": {name: pair[1] for name, pair in self.differences(best).items()},
            }
        return to_json(out)


def against_layout(question: TrainingQuestion, name: str) -> TrainingLayout:
    """The layout called ``name``; ScenarioError where it makes no sense for the job, with the nearest that does."""
    job = question.job
    given = read_name(name, tuple(SCHEDULES.techniques))
    layout, _ = layout_of(replace(question, given=given))
    if text := refusal(job, columns_of([layout])):
        near = nearest_sensible(job, layout)
        raise ScenarioError(f"against: {text}" + (f" The nearest layout that works: {near}." if near else ""))
    return layout
