"""Training with noise in place of rounding, and what is left when the weights are really rounded afterwards."""

import numpy as np

from orrery.base.experiment import Experiment, Progress, Row
from orrery.numerics.experiments.compare import HELD_OUT_TEXTS, NETWORK, WIDE, compare, small_text
from orrery.numerics.experiments.fitting import Fit, all_alike, answers, but_for
from orrery.numerics.learning import linear

NUM_SEEDS = 2
STORED = ("e4m3fn/32", "e3m2/32", "e2m1/32")
"""What weights are kept in after training."""


def run(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
    """A row for every way to train: the loss as trained, and with exact sums over rounded weights."""
    rules = {
        "exact": linear("exact-linear"),
        "noise of 6 bits": linear("gaussian-weights-linear", noise_bits=6.0),
        "noise of 4 bits": linear("gaussian-weights-linear", noise_bits=4.0),
        "noise of 3 bits": linear("gaussian-weights-linear", noise_bits=3.0),
    }
    found = compare(
        {name: but_for(rule, WIDE) for name, rule in rules.items()},
        seed=seed,
        num_seeds=NUM_SEEDS,
        steps=steps,
        progress=progress,
    )
    return tuple(
        {"trained": name, "loss": runs.mean_loss, "loss_exact": stored_loss("", runs.fits, seed)}
        | {f"loss_{word.split('/')[0]}": stored_loss(word, runs.fits, seed) for word in STORED}
        for name, runs in found.items()
    )


def stored_loss(word: str, fits: tuple[Fit, ...], seed: int) -> float:
    """The mean held-out loss with weights rounded to ``word``, all else exact."""
    rule_of = all_alike(linear("rounded-linear", inputs="", weights=word, gradients=""))
    losses: list[float] = []
    for i, run in enumerate(fits):
        task = small_text(seed * NUM_SEEDS + i)
        losses.append(task.loss(*answers(NETWORK, run.weights, task, rule_of, seed * NUM_SEEDS + i, HELD_OUT_TEXTS))[0])
    return float(np.mean(losses))


EXPERIMENT = Experiment(
    name="gaussian-weights",
    question="Do weights that learnt under noise survive being rounded?",
    run=run,
    num_steps=150,
    claims=("ahn-2025-gaussian-weight-sampling",),
)
