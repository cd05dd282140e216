"""Integer training with and without the lowest code, -2^(b-1), where scales are computed in 16 bits or exactly."""

import numpy as np

from orrery.base.experiment import Experiment, Progress, Row
from orrery.numerics.experiments.compare import WIDE, compare
from orrery.numerics.experiments.fitting import but_for
from orrery.numerics.learning import linear
from orrery.numerics.learning.techniques.integer_linear import IntegerCast, IntegerKnobs

NUM_SEEDS = 2
SHAPE = (1024, 1024)


def run(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
    """A row for every variant: how far the mean of a normal tensor shifts, and the loss."""
    variants = [
        IntegerKnobs(bits=bits, is_symmetric=is_symmetric, arithmetic=arithmetic)
        for bits in (8, 4)
        for arithmetic in ("bf16", "fp32")
        for is_symmetric in (True, False)
    ]
    rules = {_name(knobs): but_for(linear("integer-linear", **_fields(knobs)), WIDE) for knobs in variants}
    found = compare(rules, seed=seed, num_seeds=NUM_SEEDS, steps=steps, progress=progress)
    return tuple(
        {
            "bits": knobs.bits,
            "arithmetic": knobs.arithmetic,
            "is_symmetric": knobs.is_symmetric,
            "bias_ratio": bias_ratio(knobs, seed),
            "loss": found[_name(knobs)].mean_loss,
        }
        for knobs in variants
    )


def bias_ratio(knobs: IntegerKnobs, seed: int) -> float:
    """The mean error of a standard normal tensor over the root mean square error: 0 where both ends are alike."""
    rng = np.random.default_rng([seed, 9])
    x = rng.standard_normal(SHAPE, dtype=np.float32)
    error = IntegerCast(knobs=knobs)(x, rng).astype(np.float64) - x
    return float(error.mean() / np.sqrt(np.mean(error**2)))


def _fields(knobs: IntegerKnobs) -> dict[str, int | bool | str]:
    return {"bits": knobs.bits, "is_symmetric": knobs.is_symmetric, "arithmetic": knobs.arithmetic}


def _name(knobs: IntegerKnobs) -> str:
    return " ".join(str(value) for value in _fields(knobs).values())


EXPERIMENT = Experiment(
    name="symmetric-clipping",
    question="Does the extra negative code of integers bias training?",
    run=run,
    num_steps=100,
    claims=("chen-2025-int-vs-fp",),
)
