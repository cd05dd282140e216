"""EEEA-Net: an evolutionary search with and without a filter on the first generation, priced by training times."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.predictors.cells.evolution import evolved
from orrery.predictors.cells.latency import Floats, Machine
from orrery.predictors.cells.nas_bench_201 import nas_bench_201
from orrery.predictors.cells.pool import bench
from orrery.predictors.cells.space import Cells

TRAINING_RATIO = 3.0
"""A step of training over a forward pass: forward, and a gradient of inputs and of weights."""

IMAGES, DAY_S = 50_000, 86_400.0
AFFINITY_SPREAD = 0.3
SPACE = "the paper's space, its epochs and numbers of networks were not found, and worth is a stand-in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a search cost, and the best that it ended with."""

    device_s: float
    num_trained: int
    num_mean_parameters: float  # of those that were trained
    best_worth_ratio: float


def predict(paper: Paper) -> Iterator[Prediction]:
    """The filter's saving, then what the whole costs."""
    setup = paper.setups["search"]
    machine = machine_of(setup.word("device"), int(setup.number("num_batch")))
    share = setup.number("most_parameters_frac")
    ours, plain = searched(setup, machine, share), searched(setup, machine, np.inf)
    yield Prediction(
        claim="saving",
        predicted=plain.device_s / ours.device_s,
        because=f"{ours.device_s / DAY_S:.2f} GPU days with a first generation of at most {share:.0%} of the largest "
        f"size, {plain.device_s / DAY_S:.2f} without, at {ours.best_worth_ratio / plain.best_worth_ratio:.1%} of its "
        "worth",
        differs="the searches compared differ in space, epochs and numbers of networks too, of which the filter is one",
    )
    yield Prediction(
        claim="cost",
        predicted=ours.device_s / DAY_S,
        differs=SPACE,
        because=f"{ours.num_trained} networks of {ours.num_mean_parameters / 1e6:.2f} million parameters on average",
    )


@cache
def machine_of(device: str, batch: int) -> Machine:
    """The space's networks on a device as its data sheet has it."""
    return bench(get_device(device), nas_bench_201(), batch).truth


def searched(setup: Setup, machine: Machine, share: float) -> Searched:
    """One search; ``share`` of the largest network's parameters may be in the first generation."""
    space, plan = nas_bench_201(), machine.plan
    rng = np.random.default_rng(7)
    blocks = parameters(machine)
    affinity = np.exp(AFFINITY_SPREAD * rng.standard_normal(space.num_columns))
    _, work = plan.by_column(plan.flops / plan.flops.max())
    _, columns = plan.by_column(blocks)
    largest = float(columns.reshape(len(space.num_alternatives), -1).max(axis=1).sum())

    def size(cells: Cells) -> Floats:
        return plan.total(blocks, cells)

    def worth(cells: Cells) -> Floats:
        return np.log1p(space.encode(cells) @ (work * affinity))

    fixed = float(size(np.zeros((1, len(space.num_alternatives)), np.int64))[0])
    found = evolved(
        space,
        worth,
        size,
        fixed + share * largest,
        int(setup.number("num_population")),
        int(setup.number("num_generations")),
        np.random.default_rng(8),
    )
    steps = IMAGES / setup.number("num_batch") * setup.number("num_search_epochs")
    total_s = float(machine.latency_s(found.trained).sum()) * TRAINING_RATIO * steps
    return Searched(
        device_s=total_s,
        num_trained=len(found.trained),
        best_worth_ratio=float(worth(found.last).max()),
        num_mean_parameters=float(size(found.trained).mean()),
    )


def parameters(machine: Machine) -> Floats:
    """Weights of every block's products."""
    plan, found, first = machine.plan, list[float](), 0
    for count in map(int, plan.sizes):
        found.append(float(sum(kernel.n * kernel.k for kernel in plan.kernels[first : first + count])))
        first += count
    return np.array(found)
