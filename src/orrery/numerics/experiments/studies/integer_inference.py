"""Integers after training and while training: one scale for a tensor or for each channel, eight and four bits.

A perceptron learns to classify; its weights are rounded afterwards, or trained on with rounded products. Channels of
its weights differ in size, as those of convolutions do once batch norms are folded into them; here they start so.
Activations have eight bits, a zero point and one scale a tensor throughout. [krishnamoorthi-2018]
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.experiment import Experiment, Progress, Row, counter
from orrery.numerics.error import compare
from orrery.numerics.experiments.fitting import Plan, all_alike, answers, fit
from orrery.numerics.experiments.losses import Targets
from orrery.numerics.experiments.networks import Perceptron, start
from orrery.numerics.experiments.tasks import Task, classification
from orrery.numerics.learning import linear
from orrery.numerics.learning.linear import Array
from orrery.numerics.quantise import round_trip

NETWORK = Perceptron(widths=(32, 64, 64, 16))
SPREAD = 1.0
"""Standard deviation of the logarithm of a channel's size."""

TUNED_FRAC = 0.5
"""Steps of training in integers, over those before it."""

ACTIVATIONS = "uint8/tensor:zero"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Bits of weights and who shares their scale."""

    bits: int
    share: str  # "tensor" or "row"

    @property
    def word(self) -> str:
        """The format of the weights."""
        return f"int{self.bits}sym/{self.share}"


CASES = tuple(Case(bits=bits, share=share) for bits in (8, 4) for share in ("tensor", "row"))


def run(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
    """The float network, then a row for every case after training, and after training on."""
    task, rng = classification(seed), np.random.default_rng([seed, 10])
    begin = {
        name: (w * np.exp(SPREAD * rng.standard_normal((len(w), 1)))).astype(np.float32)
        for name, w in start(NETWORK, rng).items()
    }
    tuned_steps = max(1, int(TUNED_FRAC * steps))
    tick = counter(progress, steps + len(CASES) * tuned_steps)
    exact = all_alike(linear("exact-linear"))
    plan = Plan(steps=steps, points=128, learning_rate=1e-2, seed=seed)
    base = fit(NETWORK, task, exact, plan, begin=begin, on_step=tick)
    rows: list[Row] = [{"weights": "fp32", "rounded": "never", **_scores(task, base.logits, base.targets)}]
    for case in CASES:
        rule_of = all_alike(
            linear("rounded-linear", inputs=ACTIVATIONS, weights=case.word, gradients="", is_cast_again=False)
        )
        sqnr_db = float(np.mean([compare(w, round_trip(w, case.word)).sqnr_db for w in base.weights.values()]))
        about: Row = {"weights": f"int{case.bits}", "scale": case.share, "weights_sqnr_db": sqnr_db}
        after = _scores(task, *answers(NETWORK, base.weights, task, rule_of, seed))
        tuning = Plan(steps=tuned_steps, points=128, learning_rate=2e-3, seed=seed)
        tuned = fit(NETWORK, task, rule_of, tuning, begin=base.weights, on_step=tick)
        rows.append({**about, "rounded": "after training", **after})
        rows.append({**about, "rounded": "while training", **_scores(task, tuned.logits, tuned.targets)})
    return tuple(rows)


def _scores(task: Task, logits: Array, targets: Targets) -> Row:
    """Loss and share of right answers."""
    return {
        "loss": task.loss(logits, targets)[0],
        "right_frac": np.count_nonzero(logits.argmax(axis=-1) == targets) / len(targets),
    }


EXPERIMENT = Experiment(
    name="integer-inference",
    question="What do scales of tensors and of channels cost, after training and while training?",
    run=run,
    num_steps=300,
    claims=("krishnamoorthi-2018",),
)
