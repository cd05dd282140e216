"""FLIQS: one policy-gradient run over the formats of a network's layers, against uniform formats of equal cost."""

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.memory import Infeasible
from orrery.planner.bits.layer import Layer, product
from orrery.planner.bits.options import Options, options_of
from orrery.planner.bits.policy import PolicyKnobs, searched
from orrery.planner.bits.sensitivity import drawn_errors
from orrery.planner.bits.solve import Assignment, solve
from orrery_papers.shared.convolutional import resnet50

METRIC = "size"
FEWER = "the stand-in for errors knows nothing of training, and the run ends near its target, not at it"


def predict(paper: Paper) -> Iterator[Prediction]:
    """What the run loses against uniform formats, and against the proven best."""
    setup = paper.setups["resnet-50"]
    options = options_for(setup)
    each = options.uniform(METRIC)
    low, high = float(each.min()), float(each.max())
    target = low + setup.number("cost_frac") * (high - low)
    found = searched(options, METRIC, target, PolicyKnobs())
    spent = found.total(METRIC)
    uniform = between_uniform(options, spent)
    yield Prediction(
        claim="above-uniform",
        predicted=uniform / found.perturbation_ratio,
        differs=FEWER,
        because=f"{counted(found)} at {spent / 1e6:.1f} MB (asked {target / 1e6:.1f}); uniform formats of that size "
        f"lose {uniform / found.perturbation_ratio:.2f} times as much",
    )
    best = solve(options, {METRIC: spent})
    if not isinstance(best, Infeasible):
        yield Prediction(
            claim="one-shot",
            predicted=found.perturbation_ratio / best.perturbation_ratio,
            differs=FEWER,
            because="against the integer program's proven best of the same size",
        )


def options_for(setup: Setup) -> Options:
    """The set-up's choices."""
    return _options(setup.word("device"), setup.word("formats_swept"), int(setup.number("num_batch")))


@cache
def _options(device_name: str, words: str, batch: int) -> Options:
    """Convolutions but the first, and no classifier; a layer counts by the numbers that it puts out."""
    device, formats = get_device(device_name), words.split(", ")
    layers = list(resnet50())[1:-1]
    most = max(x.num_results for x in layers)
    known = tuple(
        Layer(
            name=f"convolution {i}",
            group="convolutions",
            num_parameters=x.num_parameters,
            work=product(batch * x.height**2, x.num_outputs, x.kernel**2 * x.num_inputs),
            weight_ratio=x.num_results / most,
        )
        for i, x in enumerate(layers)
    )
    return options_of(known, formats, device, drawn_errors(formats, device, 0))


def between_uniform(options: Options, cost: float) -> float:
    """Perturbation of a uniform network of that cost, on the logarithmic line between neighbouring formats."""
    costs = options.uniform(METRIC)
    harms: NDArray[np.float64] = np.asarray(options.perturbation_ratio.sum(axis=0))
    order = np.argsort(costs)
    return float(np.exp(np.interp(cost, costs[order], np.log(harms[order]))))


def counted(found: Assignment) -> str:
    """How many layers take what."""
    return ", ".join(f"{found.formats.count(name)} in {name}" for name in found.options.formats)
