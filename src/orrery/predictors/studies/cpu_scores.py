"""Scores of processors that nobody has measured yet: attention by groups of features, a perceptron, a straight line.

Whole processors are held out; every predictor sees the same features of processors drawn around the others and learns
the logarithms of all suites' scores at once. The generator is ``processors.suites``: rooflines, contention and Amdahl's
law. [ncpp-perfcastdb]
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.experiment import Experiment, Progress, Row, counter
from orrery.predictors.processors.learned import learnt
from orrery.predictors.processors.machine import processors
from orrery.predictors.processors.scored import Table, scored_machines
from orrery.predictors.processors.suites import SUITES

PREDICTORS = ("grouped-attention", "score-perceptron", "score-line")
NUM_EACH = 40
NUM_HELD_EACH = 12
SPREAD = 0.2
NUM_SPLITS = 2
HELD_OUT_FRAC = 0.25


def run(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
    """A row for every predictor: mean error on held-out processors, over splits, and that of each suite."""
    tick = counter(progress, NUM_SPLITS * 2 * steps)
    errors: dict[str, list[NDArray[Any]]] = {name: [] for name in PREDICTORS}
    for split_seed in range(seed, seed + NUM_SPLITS):
        seen, held = split(split_seed)
        for name, found in errors.items():
            predict = learnt(name, seen, steps=steps, seed=split_seed, on_step=tick)
            found.append(np.mean(np.abs(np.exp(predict(held) - held.scores) - 1.0), axis=0))
    return tuple(_row(name, np.mean(found, axis=0)) for name, found in errors.items())


def split(seed: int) -> tuple[Table, Table]:
    """Machines of processors drawn around some, and machines of the others as they are; of those released, always."""
    rng = np.random.default_rng([seed, 21])
    known = [p for p in processors().values() if p.is_released]
    others = [p for p in processors().values() if not p.is_released]
    rng.shuffle(others)
    num_held = round(HELD_OUT_FRAC * len(processors())) - len(known)
    return (
        scored_machines(others[num_held:], num_each=NUM_EACH, seed=seed, spread=SPREAD),
        scored_machines(known + others[:num_held], num_each=NUM_HELD_EACH, seed=seed + 1),
    )


def _row(name: str, errors: NDArray[Any]) -> Row:
    return {
        "predictor": name,
        "error_frac": float(errors.mean()),
        **{f"{suite}_error_frac": float(e) for suite, e in zip(SUITES, errors, strict=True)},
    }


EXPERIMENT = Experiment(
    name="cpu-scores",
    question="How far off are scores of processors that were never measured, by kind of predictor?",
    run=run,
    num_steps=500,
    claims=("ncpp-perfcastdb",),
)
