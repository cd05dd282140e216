"""EEEA-Net: an evolutionary search with and without a filter on the first generation, small networks really trained."""

from collections.abc import Iterator
from functools import cache

from orrery.base.errors import OutOfRange
from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.search.answer import DeviceResult
from orrery.scenario.search.ask import search

TRAINING_RATIO = 3.0
"""A step of training over a forward pass: forward, and a gradient of inputs and of weights."""

IMAGES, DAY_S = 50_000, 86_400.0
SPACE = "the paper's space, its epochs and numbers of networks were not found"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The filter's saving, then what the whole costs."""
    setup = paper.setups["search"]
    ours, plain = (searched(setup, share) for share in (setup.number("most_parameters_frac"), None))
    days, plain_days = (cost_days(setup, found) for found in (ours, plain))
    yield Prediction(
        claim="saving",
        predicted=plain_days / days,
        because=f"{days:.2f} GPU days with a first generation of at most "
        f"{percent(setup.number('most_parameters_frac'))} of the largest size, {plain_days:.2f} without; the best "
        f"trained twin's loss is {-ours.best.metrics['score']:.3f} with it, {-plain.best.metrics['score']:.3f} without",
        differs="the searches compared differ in space, epochs and numbers of networks too, of which the filter is one",
    )
    yield Prediction(
        claim="cost",
        predicted=days,
        differs=SPACE,
        because=f"{ours.num_evaluated} networks, {ours.searched_latency_s / ours.num_evaluated * 1e3:.1f} ms a batch "
        "on average",
    )


@cache
def _found(device: str, batch: int, population: int, generations: int, first: float) -> DeviceResult:
    found = search(
        space="cells",
        device=device,
        batch=batch,
        objective="score,parameters",
        scores="shared",
        method="evolution",
        population=population,
        generations=generations,
        **({"first_parameters": first} if first else {}),
    )
    if isinstance(found, InfeasibleAnswer):
        raise OutOfRange(str(found.infeasible))
    return found.devices[0]


def searched(setup: Setup, share: float | None) -> DeviceResult:
    """One search; ``share`` of the largest network's parameters may be in the first generation."""
    counts = (int(setup.number(name)) for name in ("num_batch", "num_population", "num_generations"))
    batch, population, generations = counts
    device = setup.word("device")
    largest = _found(device, batch, 2, 1, 0.0).reference["parameters"]
    return _found(device, batch, population, generations, largest * share if share else 0.0)


def cost_days(setup: Setup, found: DeviceResult) -> float:
    """Days of training every network that was looked at for the set-up's epochs."""
    steps = IMAGES / setup.number("num_batch") * setup.number("num_search_epochs")
    return found.searched_latency_s * TRAINING_RATIO * steps / DAY_S
