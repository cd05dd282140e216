"""FLIQS: a policy and the weights of a small network trained together, against uniform formats and every mixture."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.search.answer import DeviceResult, Network
from orrery.scenario.search.ask import search

SEEDS = (0, 1, 2)
FEWER = "a perceptron of four layers on a drawn task stands in for ResNet-50 on ImageNet"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Loss of the run against uniform formats, and against the best of all mixtures, each trained by itself."""
    setup = paper.setups["resnet-50"]
    ours = [searched(setup, seed, "policy") for seed in SEEDS]
    every = [searched(setup, seed, "enumeration") for seed in SEEDS]
    over = [uniform(e, o.best) / loss(o.best) for o, e in zip(ours, every, strict=True)]
    beyond = [loss(o.best) / loss(best_within(e.front, o.best)) for o, e in zip(ours, every, strict=True)]
    yield Prediction(
        claim="above-uniform",
        predicted=fmean(over),
        differs=FEWER,
        because=f"held-out loss of uniform formats at the size of the mixture over its own, {spread(over)}",
    )
    yield Prediction(
        claim="one-shot",
        predicted=fmean(beyond),
        differs=FEWER,
        because=f"its loss over that of the best of all mixtures of its size, {spread(beyond)}",
    )


def searched(setup: Setup, seed: int, method: str) -> DeviceResult:
    """One run within the set-up's share of sizes between the narrowest and the widest format."""
    settings: dict[str, Any] = {
        "space": "formats",
        "formats": setup.word("formats_swept").replace(" ", ""),
        "device": setup.word("device"),
        "scores": "trained",
        "objective": "score,memory",
        "train_steps": int(setup.number("num_steps")),
        "seed": seed,
        "method": method,
    }
    if method == "policy":
        settings["memory_ratio"] = 0.5 + 0.5 * setup.number("cost_frac")  # four bits are half of eight
    found = search(**settings)
    if isinstance(found, InfeasibleAnswer):
        raise OutOfRange(str(found.infeasible))
    return found.devices[0]


def loss(network: Network) -> float:
    """Held-out loss."""
    return -network.metrics["score"]


def best_within(front: Sequence[Network], network: Network) -> Network:
    """The best point of a front that is no larger."""
    return min((n for n in front if n.metrics["memory"] <= network.metrics["memory"]), key=loss)


def uniform(every: DeviceResult, network: Network) -> float:
    """The loss of uniform formats at that size, on the logarithmic line between the two."""
    ends = sorted(uniform_ends(every), key=lambda n: n.metrics["memory"])
    sizes, losses = [n.metrics["memory"] for n in ends], [np.log(loss(n)) for n in ends]
    return float(np.exp(np.interp(network.metrics["memory"], sizes, losses)))


def uniform_ends(every: DeviceResult) -> list[Network]:
    """The networks of one format throughout."""
    return [n for n in every.front if len(set(n.alternatives.values())) == 1]


def spread(values: Sequence[float]) -> str:
    """Least to greatest, and the number of seeds."""
    return f"{min(values):.2f} to {max(values):.2f} over {len(values)} seeds"
