"""Bits removed one at a time: how sharp the loss becomes, and how often training fails.

Every operand of every product is rounded to an unscaled float whose exponent or mantissa has lost bits, over several
learning rates and seeds, as [lee-2024-fp8-and-back] does by masking BF16. A run counts as failed where its loss is no
number any more, or lies more than half-way from that of the exact run with the same seed and rate to that of a guess.
"""

import math

import numpy as np

from orrery.base.experiment import Experiment, Progress, Row
from orrery.numerics.experiments.compare import TOKENS, VOCABULARY, WIDTH, Runs, compare
from orrery.numerics.experiments.fitting import all_alike
from orrery.numerics.experiments.losses import sharpness_frac
from orrery.numerics.experiments.networks import Decoder
from orrery.numerics.learning import linear

FORMATS = ("fp32", "e8m7", "e8m3", "e8m2", "e8m1", "e5m7", "e4m7", "e3m7")
LEARNING_RATES = (5e-3, 2e-2)
NUM_SEEDS = 2
NETWORK = Decoder(vocabulary=VOCABULARY, tokens=TOKENS, width=WIDTH, num_blocks=1)
FAILED_FRAC = 0.5


def run(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
    """A row for every format: means over learning rates and seeds."""
    rules = {word: all_alike(linear("rounded-linear", **_everywhere(word))) for word in FORMATS}
    total = len(LEARNING_RATES) * len(rules) * NUM_SEEDS * steps
    by_rate: list[dict[str, Runs]] = []
    for i, rate in enumerate(LEARNING_RATES):

        def tell(done: int, part: int, before: int = i) -> None:
            progress(before * part + done, total)

        by_rate.append(
            compare(
                rules, seed=seed, num_seeds=NUM_SEEDS, steps=steps, progress=tell, learning_rate=rate, network=NETWORK
            )
        )
    return tuple(_row(word, by_rate) for word in rules)


def _everywhere(word: str) -> dict[str, str]:
    """One unscaled format for all operands."""
    name = "" if word == "fp32" else f"{word}/none"
    return {"inputs": name, "weights": name, "gradients": name}


def _row(word: str, by_rate: list[dict[str, Runs]]) -> Row:
    """Means over all runs of a format, and the share of them that failed."""
    pairs = [pair for runs in by_rate for pair in zip(runs[word].fits, runs["fp32"].fits, strict=True)]
    losses = np.array([run.held_out_loss for run, _ in pairs])
    exact = np.array([best.held_out_loss for _, best in pairs])
    limits = exact + FAILED_FRAC * np.maximum(0.0, math.log(VOCABULARY) - exact)
    return {
        "format": word,
        "loss": float(losses.mean()),
        "sharpness_frac": float(np.mean([sharpness_frac(run.logits, run.targets) for run, _ in pairs])),
        "failed_frac": float(np.mean(~(losses <= limits))),
    }


EXPERIMENT = Experiment(
    name="fp8-and-back",
    question="What happens to the loss, its sharpness and the share of failed runs as a float loses bits?",
    run=run,
    num_steps=100,
    claims=("lee-2024-fp8-and-back",),
)
