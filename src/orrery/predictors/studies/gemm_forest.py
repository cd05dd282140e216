"""A forest that learns time and power of products, against roofs, rules and lines, on samples and on unseen shapes.

The samples are the 16,128 settings that [liu-2024-gemm-ada] timed on a GeForce RTX 4070, drawn from the GEMM and energy
rules with the noise of its published readings. They hold 36 shapes only: a forest that is asked for samples of shapes
that it knows is asked for less than it seems.
"""

from orrery.base.experiment import Experiment, Progress, Row
from orrery.predictors.products.compare import compared
from orrery.predictors.products.samples import drawn_samples

DEVICE, FORMAT = "rtx-4070", "fp32"


def run(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
    """A row for every predictor and way to hold out; ``steps`` trees a forest."""
    return compared(drawn_samples(DEVICE, FORMAT, seed), trees=steps, seed=seed, progress=progress)


EXPERIMENT = Experiment(
    name="gemm-forest",
    question="How well does a forest predict time and power of products, and of shapes that it has not seen?",
    run=run,
    num_steps=100,
    claims=("liu-2024-gemm-ada",),
)
