"""The design space of four-bit training: scale format, tensor scale, rounding, rotation, slope; on a regression.

Each recipe's loss stands beside the operations that its stabilisers add; a recipe is on the front where none is both
better and cheaper. The question is that of [hu-2025-fp4-design-space]; counts are of the mechanisms here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np

from orrery.base.experiment import Experiment, Row, Run, counter, whole
from orrery.numerics.experiments.fitting import Fit, Plan, all_alike, answers, fit
from orrery.numerics.experiments.networks import Perceptron
from orrery.numerics.experiments.tasks import Task, own_points, regression
from orrery.numerics.learning import linear
from orrery.numerics.learning.linear import Linear
from orrery.numerics.learning.operations import extra_operations
from orrery.numerics.learning.techniques.rounded_linear import RoundedKnobs, rule
from orrery.numerics.rounding import Rounding

SCALES = ("ue8m0", "e4m3fn", "ue5m3")
BLOCK = 16
ROTATION, SLOPE = 16, 5.0
NUM_SEEDS = 2
INPUTS, OUTPUTS = 64, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Width of the hidden layers and how many there are, and points of a batch."""

    hidden: int = 64
    layers: int = 2
    points: int = 64


def run(request: Run) -> tuple[Row, ...]:
    """A row for every recipe, cheapest first; the gap is to exact products."""
    seed, steps, sizes = request.seed, request.steps, request.sizes
    width, depth = whole("hidden", sizes.hidden, least=16, most=1024), whole("layers", sizes.layers, most=16)
    points, own = (
        whole("points", sizes.points, most=4096),
        own_points(request.data, seed, ROTATION) if request.data else None,
    )
    ends = (own.num_inputs, own.num_outputs) if own else (INPUTS, OUTPUTS)
    network = Perceptron(widths=(ends[0], *(width,) * depth, ends[1]))
    tick = counter(request.progress, (len(RECIPES) + 1) * NUM_SEEDS * steps)

    def mean_loss(layer: Linear) -> float:
        losses: list[float] = []
        for s in range(seed * NUM_SEEDS, (seed + 1) * NUM_SEEDS):
            plan = Plan(steps=steps, points=points, learning_rate=1e-2, seed=s, held_out=256)
            task = own.learned if own else regression(s)
            found = fit(network, task, all_alike(layer), plan, on_step=tick)
            losses.append(judged_loss(network, found, own.judged, layer, s) if own else found.held_out_loss)
        return float(np.mean(losses))

    exact = mean_loss(linear("exact-linear"))
    rows = [recipe.row(mean_loss(rule(recipe.knobs)), exact) for recipe in RECIPES]
    return tuple(_front(sorted(rows, key=lambda row: (row["extra_operations"], row["loss"]))))


def judged_loss(network: Perceptron, found: Fit, judged: Task, layer: Linear, seed: int) -> float:
    """Loss on points that nothing was learnt from, with the run's own products."""
    return judged.loss(*answers(network, found.weights, judged, all_alike(layer), seed))[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One point of the space: all operands in blocks of e2m1 under one kind of scale."""

    scale: str
    has_tensor_scale: bool
    rounding: Rounding  # of gradients
    hadamard_elements: int = 0
    slope_order: float = 0.0

    @property
    def knobs(self) -> RoundedKnobs:
        """The layer."""
        word = f"e2m1/{BLOCK}:{self.scale}" + ("/tensor" if self.has_tensor_scale else "")
        return RoundedKnobs(
            inputs=word,
            weights=word,
            gradients=word,
            gradient_rounding=self.rounding,
            hadamard_elements=self.hadamard_elements,
            slope_order=self.slope_order,
        )

    def row(self, loss: float, exact: float) -> dict[str, Any]:
        """Result of a recipe, and its added operations."""
        parts = extra_operations(self.knobs)
        counts = {f"{name}_operations": count for name, count in parts.items()}
        description = {f.name: getattr(self, f.name) for f in fields(self)} | {"rounding": str(self.rounding)}
        return {**description, "loss": loss, "gap": loss - exact, "extra_operations": sum(parts.values()), **counts}


def _recipes() -> Iterator[Recipe]:
    """Scales with and without one for the tensor, roundings, and a rotation, a slope or neither.

    A power of two has range enough without a scale for the tensor.
    """
    for scale, has_tensor_scale, rounding in product(
        SCALES, (False, True), (Rounding.NEAREST_EVEN, Rounding.STOCHASTIC)
    ):
        if scale == "ue8m0" and has_tensor_scale:
            continue
        plain = Recipe(scale=scale, has_tensor_scale=has_tensor_scale, rounding=rounding)
        yield plain
        yield replace(plain, hadamard_elements=ROTATION)
        yield replace(plain, slope_order=SLOPE)


RECIPES = tuple(_recipes())


def _front(rows: Iterable[dict[str, Any]]) -> Iterator[Row]:
    """Rows from the cheapest on, marked where none before is as good."""
    best = np.inf
    for row in rows:
        yield {**row, "is_on_front": row["loss"] < best}
        best = min(best, row["loss"])


EXPERIMENT = Experiment(
    name="fp4-design-space",
    question="Which stabilisers of four-bit training are worth their operations?",
    run=run,
    num_steps=150,
    claims=("hu-2025-fp4-design-space",),
    sizes=Sizes,
    reads=("data",),
    keys=("scale", "has_tensor_scale", "rounding", "hadamard_elements", "slope_order"),
)
