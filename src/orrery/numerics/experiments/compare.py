"""The same small decoder learning the same text under several rules, over several seeds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from orrery.base.experiment import Progress, counter
from orrery.numerics.experiments.fitting import Fit, Plan, fit
from orrery.numerics.experiments.networks import Decoder
from orrery.numerics.experiments.steps import RuleOf
from orrery.numerics.experiments.tasks import Lessons, text

VOCABULARY, TOKENS, WIDTH, POINTS = 8, 16, 32, 16
HELD_OUT_TEXTS = 64
NETWORK = Decoder(vocabulary=VOCABULARY, tokens=TOKENS, width=WIDTH)
WIDE = frozenset({"head"})
"""Layers that stay exact in every recipe; embeddings are no products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Runs of one rule, one a seed."""

    fits: tuple[Fit, ...]

    @property
    def mean_loss(self) -> float:
        """On held-out text, with the rule's own products."""
        return float(np.mean([run.held_out_loss for run in self.fits]))


def drawn(seed: int) -> Lessons:
    """The text that the decoder learns, and is judged by."""
    task = text(seed, vocabulary=VOCABULARY, tokens=TOKENS)
    return Lessons(learned=task, judged=task, num_inputs=VOCABULARY, num_outputs=VOCABULARY)


def compare(
    rules: Mapping[str, RuleOf],
    *,
    seed: int,
    num_seeds: int,
    steps: int,
    progress: Progress,
    learning_rate: float = 1e-2,
    network: Decoder = NETWORK,
    lessons_of: Callable[[int], Lessons] = drawn,
) -> dict[str, Runs]:
    """Every rule with the same seeds: same text, same first weights, same batches."""
    seeds = [seed * num_seeds + s for s in range(num_seeds)]
    tick = counter(progress, len(rules) * num_seeds * steps)

    def run(rule_of: RuleOf, seed: int) -> Fit:
        plan = Plan(steps=steps, points=POINTS, learning_rate=learning_rate, seed=seed, held_out=HELD_OUT_TEXTS)
        lessons = lessons_of(seed)
        return fit(network, lessons.learned, rule_of, plan, judged=lessons.judged, on_step=tick)

    return {name: Runs(fits=tuple(run(rule_of, s) for s in seeds)) for name, rule_of in rules.items()}
