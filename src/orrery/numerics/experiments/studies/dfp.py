"""Training with every product in dynamic fixed point, at several widths, beside FP32.

All three products of a layer multiply integer codes with one exponent a tensor, and sum them in 32-bit accumulators
that are spilled to wider ones after so many products. Accumulators wrap, so chains that are too long ruin sums. What is
no product, and the weights that are updated, stay in FP32. [das-2018]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.base.experiment import Experiment, Row, Run, counter, numbers, whole
from orrery.numerics.arithmetic.dynamic_fixed_point import MAX_BITS, fixed_point
from orrery.numerics.arithmetic.dynamic_fixed_point import product as fixed_product
from orrery.numerics.experiments.fitting import Plan, all_alike, answers, fit
from orrery.numerics.experiments.losses import Targets
from orrery.numerics.experiments.networks import Perceptron
from orrery.numerics.experiments.tasks import Lessons, classification, own_points
from orrery.numerics.learning.linear import Array, Product, ThreeProducts

NUM_CLASSES, NUM_FEATURES = 16, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated widths of codes and hidden layers; points of a batch; products in an accumulator (0: as safe)."""

    bits: str = "16,8,6,4"
    hidden: str = "64,64"
    points: int = 64
    chain: int = 0


@dataclass(slots=True)
class Counts:
    """Accumulator events of a run."""

    sums: int = 0
    spills: int = 0
    overflows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPointProduct(Product):
    """``a b^T`` of codes of ``bits``, ``chain`` products to an accumulator; the longest safe chain where it is 0."""

    bits: int
    chain: int
    counts: Counts

    def __call__(self, a: Array, b: Array, rng: np.random.Generator) -> Array:
        """The product as the accumulators gave it; operands that are no numbers any more stay so."""
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            return np.full((len(a), len(b)), np.nan, dtype=a.dtype)
        found = fixed_product(fixed_point(a, self.bits), fixed_point(b, self.bits), self.chain or None)
        self.counts.sums += found.sums.size
        self.counts.spills += found.num_spills * found.sums.size
        self.counts.overflows += found.num_overflows
        return found.values.astype(a.dtype)


def run(request: Run) -> tuple[Row, ...]:
    """FP32, then a row a width: held-out loss and accuracy, spills of a sum, and partial sums that overflowed."""
    sizes: Sizes = request.sizes
    widths = [int(n) for n in numbers("bits", sizes.bits, least=2, most=MAX_BITS)]
    hidden = tuple(whole("hidden", int(n), most=1024) for n in numbers("hidden", sizes.hidden, least=1))
    chain = whole("chain", sizes.chain, least=0)
    points = whole("points", sizes.points, most=4096)
    lessons = _lessons(request.data, request.seed)
    network = Perceptron(widths=(lessons.num_inputs, *hidden, lessons.num_outputs))
    plan = Plan(steps=request.steps, points=points, learning_rate=1e-2, seed=request.seed)
    tick = counter(request.progress, (1 + len(widths)) * request.steps)
    rows: list[Row] = []
    for bits in (0, *widths):
        counts = Counts()
        product = FixedPointProduct(bits=bits, chain=chain, counts=counts) if bits else Product()
        rule_of = all_alike(ThreeProducts(output=product, input_gradient=product, weight_gradient=product))
        found = fit(network, lessons.learned, rule_of, plan, on_step=tick)
        with np.errstate(all="ignore"):
            logits, targets = answers(network, found.weights, lessons.judged, rule_of, request.seed)
            loss = lessons.judged.loss(logits, targets)[0]
            rows.append(_row(f"dfp{bits}" if bits else "fp32", loss, logits, targets, counts))
    return tuple(rows)


def _row(name: str, loss: float, logits: Array, targets: Targets, counts: Counts) -> Row:
    return {
        "products": name,
        "loss": loss,
        "accuracy_frac": float((logits.argmax(axis=-1) == targets).mean()),
        "spills_per_sum": counts.spills / counts.sums if counts.sums else 0.0,
        "overflow_frac": counts.overflows / counts.spills if counts.spills else 0.0,
    }


def _lessons(data: Mapping[str, Any], seed: int) -> Lessons:
    """Drawn, or of the user's points."""
    if data:
        return own_points(data, seed)
    drawn = classification(seed, num_inputs=NUM_FEATURES, num_classes=NUM_CLASSES)
    return Lessons(learned=drawn, judged=drawn, num_inputs=NUM_FEATURES, num_outputs=NUM_CLASSES)


EXPERIMENT = Experiment(
    name="dfp",
    question="How narrow may integers with one exponent a tensor be, and how long chains in their accumulators?",
    run=run,
    num_steps=300,
    claims=("dfp-int16-training",),
    sizes=Sizes,
    reads=("data",),
    keys=("products",),
)
