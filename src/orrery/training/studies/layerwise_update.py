"""One group of layers moves in each step, in three orders, against all layers in every step. [hift-2024]"""

from dataclasses import dataclass

import numpy as np

from orrery.base.experiment import Experiment, Row, Run, counter, numbers, whole
from orrery.training.small.layerwise import ORDERS, layerwise_descent

NUM_POINTS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Groups of layers, and comma-separated widths of the hidden layers."""

    groups: int = 3
    hidden: str = "32,32,32,32,32"


def run(request: Run) -> tuple[Row, ...]:
    """A row a stretch of each run: the mean loss of its batches."""
    sizes: Sizes = request.sizes
    hidden = tuple(whole("hidden", int(n), most=1024) for n in numbers("hidden", sizes.hidden, least=1))
    groups = whole("groups", sizes.groups, most=len(hidden) + 1)
    tick = counter(request.progress, 1 + len(ORDERS))
    runs = {"all layers": layerwise_descent("bottom-up", 1, request.steps, request.seed, hidden)}
    tick()
    for order in ORDERS:
        runs[order] = layerwise_descent(order, groups, request.steps, request.seed, hidden)
        tick()
    rows = list[Row]()
    for order, losses in runs.items():
        for part in np.array_split(np.arange(losses.size), min(NUM_POINTS, losses.size)):
            rows.append({"order": order, "step": int(part[-1]) + 1, "loss": float(losses[part].mean())})
    return tuple(rows)


EXPERIMENT = Experiment(
    name="layerwise-update",
    question="Does training one group of layers a step learn as well, and does the order matter?",
    run=run,
    num_steps=600,
    claims=("hift",),
    sizes=Sizes,
    keys=("order", "step"),
    curve=("step", "loss"),
)
