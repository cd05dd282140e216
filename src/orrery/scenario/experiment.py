"""Experiments for any window: which there are, and the answer of one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.experiment import Experiment, Row
from orrery.numerics.experiments import registry as numerics
from orrery.predictors import registry as predictors
from orrery.scenario.answer import to_json
from orrery.scenario.show import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentAnswer:
    """One experiment as it was run; the same seed and steps give the same rows again."""

    name: str
    question: str
    seed: int
    num_steps: int
    rows: tuple[Row, ...]

    def to_json(self) -> dict[str, Any]:
        """``{"experiment", "question", "seed", "num_steps", "rows"}``."""
        return {
            "experiment": self.name, "question": self.question, "seed": self.seed, "num_steps": self.num_steps,
            "rows": to_json(self.rows),
        }  # fmt: skip

    def table(self) -> Table:
        """The rows, for people."""
        note = f"Seed {self.seed}, {self.num_steps} steps a run."
        return Table(kind="experiments", title=f"{self.name}: {self.question}", rows=self.rows, notes=(note,))


def known_experiments() -> dict[str, Experiment]:
    """Every experiment of every floor, by name."""
    return dict(sorted((numerics.known_experiments() | predictors.known_experiments()).items()))


def list_experiments() -> Table:
    """Every experiment, a row each."""
    rows = [
        {"name": e.name, "question": e.question, "num_steps": e.num_steps, "claims": ", ".join(e.claims)}
        for e in known_experiments().values()
    ]
    return Table(kind="experiments", title="Experiments", rows=tuple(rows),
                 notes=("`orrery experiment NAME` runs one; most take seconds to two minutes.",))  # fmt: skip


def run_experiment(
    name: str, *, seed: int = 0, steps: int = 0, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> ExperimentAnswer:
    """The experiment called ``name``; ``steps`` of each run, 0 for its own choice."""
    if (found := (known := known_experiments()).get(name)) is None:
        raise UnknownName("experiment", name, known)
    rows = found(seed=seed, steps=steps, progress=on_progress)
    return ExperimentAnswer(
        name=name, question=found.question, seed=seed, num_steps=steps or found.num_steps, rows=rows
    )
