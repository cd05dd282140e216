"""Training with noise in place of rounding, and what is left when the weights are really rounded afterwards."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from orrery.base.experiment import Experiment, Row, Run, numbers
from orrery.numerics.experiments.compare import HELD_OUT_TEXTS, NETWORK, TOKENS, WIDE, compare, drawn
from orrery.numerics.experiments.fitting import Fit, all_alike, answers, but_for
from orrery.numerics.experiments.tasks import Lessons, own_text
from orrery.numerics.learning import linear

NUM_SEEDS = 2
STORED = ("e4m3fn/32", "e3m2/32", "e2m1/32")
"""Formats of the weights after training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated bits of the noise that stands in for rounding."""

    noise_bits: str = "6,4,3"


def run(request: Run) -> tuple[Row, ...]:
    """A row for every way to train: the loss as trained, and with exact sums over rounded weights."""
    seed, widths = request.seed, numbers("noise_bits", request.sizes.noise_bits, least=1, most=16)
    rules = {"exact": linear("exact-linear")} | {
        f"noise of {bits:g} bits": linear("gaussian-weights-linear", noise_bits=bits) for bits in widths
    }
    own = own_text(request.data, TOKENS) if request.data else None
    lessons_of: Callable[[int], Lessons] = (lambda _: own) if own else drawn
    network = replace(NETWORK, vocabulary=own.num_inputs) if own else NETWORK
    found = compare(
        {name: but_for(rule, WIDE) for name, rule in rules.items()},
        seed=seed,
        num_seeds=NUM_SEEDS,
        steps=request.steps,
        progress=request.progress,
        network=network,
        lessons_of=lessons_of,
    )
    seeds = [seed * NUM_SEEDS + i for i in range(NUM_SEEDS)]

    def stored_loss(word: str, fits: tuple[Fit, ...]) -> float:
        """The mean held-out loss with weights rounded to ``word``, all else exact."""
        rule_of = all_alike(linear("rounded-linear", inputs="", weights=word, gradients=""))
        losses: list[float] = []
        for at, one in zip(seeds, fits, strict=True):
            task = lessons_of(at).judged
            losses.append(task.loss(*answers(network, one.weights, task, rule_of, at, HELD_OUT_TEXTS))[0])
        return float(np.mean(losses))

    return tuple(
        {"trained": name, "loss": runs.mean_loss, "loss_exact": stored_loss("", runs.fits)}
        | {f"loss_{word.split('/')[0]}": stored_loss(word, runs.fits) for word in STORED}
        for name, runs in found.items()
    )


EXPERIMENT = Experiment(
    name="gaussian-weights",
    question="Do weights that learnt under noise survive being rounded?",
    run=run,
    num_steps=150,
    sizes=Sizes,
    reads=("data",),
    keys=("trained",),
    claims=("ahn-2025-gaussian-weight-sampling",),
)
