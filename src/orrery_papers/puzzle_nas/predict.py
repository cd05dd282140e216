"""Puzzle: blocks chosen for Llama-3.1-70B within one H100 by orrery search, and the published child beside it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from orrery.base.errors import OutOfRange
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import InfeasibleAnswer, estimate
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import read_scenario
from orrery.scenario.search import blocks
from orrery.scenario.search.answer import DeviceResult
from orrery.scenario.search.ask import search

PUBLISHED = "llama-3_3-nemotron-super-49b-v1"
STAND_IN = (
    "the stand-in for damages keeps every key/value head and narrows all layers, where the published children drop "
    "attention from many layers"
)
ENGINE = "the engine's batch and its version, which were not found"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The searched child, the published one, and the parent on one device and on its best layout, per device."""
    one, other = paper.setups["generation"], paper.setups["summarization"]
    found = searched(one)
    served = rates(one, found)
    yield Prediction(
        claim="throughput",
        predicted=served["child"] / served["parent"],
        differs=STAND_IN,
        because=f"{found.best.metrics['parameters'] / 1e9:.1f}e9 parameters, {mixture(found)}: {served['child']:.0f} "
        f"tokens/s a device, the parent {served['parent']:.0f} on its best layout (tp {served['tp']:.0f})",
    )
    yield Prediction(
        claim="throughput-published",
        predicted=served["published"] / served["parent"],
        differs=ENGINE,
        because=f"the published layers of Nemotron-49B: {served['published']:.0f} tokens/s a device, the parent "
        f"{served['parent']:.0f} (tp {served['tp']:.0f})",
    )
    for name, setup in (("generation", one), ("summarization", other)):
        each = served if setup is one else rates(setup, found)
        for claim, side in (("child", "child"), ("parent", "parent"), ("parent", "single")):
            yield Prediction(
                claim=f"{claim}-{name}" + ("-single" if side == "single" else ""),
                predicted=each[side],
                differs=f"{ENGINE}; {STAND_IN}" if claim == "child" else ENGINE,
                because="offline, as many sequences as the cache holds"
                + (f", on its best layout, tp {each['tp']:.0f}" if side == "parent" else ", one device"),
            )


def scenario_of(setup: Setup) -> dict[str, Any]:
    """The set-up's deployment and lengths, with a cache in the format of the weights."""
    return {
        "model": setup.word("model"),
        "device": setup.word("device"),
        "weights": setup.word("weights_format"),
        "engine": setup.word("engine"),
        "kv": setup.word("weights_format"),
        "input_tokens": int(setup.number("input_tokens")),
        "output_tokens": int(setup.number("output_tokens")),
    }


def searched(setup: Setup) -> DeviceResult:
    """The child: parameters as stated, so many times the parent's sequences on the same device."""
    settings = scenario_of(setup)
    parent = estimate(**settings, batch=1)
    if isinstance(parent, InfeasibleAnswer):
        raise OutOfRange(str(parent.infeasible))
    sequences = int(setup.number("workload_ratio") * parent.room.max_sequences)
    found = search(
        space="blocks", **settings, concurrency=sequences, max_parameters=setup.number("num_child_parameters")
    )
    if isinstance(found, InfeasibleAnswer):
        raise OutOfRange(str(found.infeasible))
    return found.devices[0]


def rates(setup: Setup, found: DeviceResult) -> dict[str, float]:
    """Answer tokens a second and device of the child, of the published child, and of the parent, cut and on one."""
    settings = scenario_of(setup) | {"concurrency": 1}
    network = blocks.network_of(found.best.alternatives)
    served = blocks.served(settings, network)
    if served is None:
        raise OutOfRange(f"{setup.word('model')}: the child or its parent does not fit.")
    return {
        "child": served.child_tokens_per_s,
        "parent": served.parent_tokens_per_s,
        "tp": float(served.parent_tp),
        "single": offline_tokens_per_s(settings),
        "published": offline_tokens_per_s(settings | {"model": PUBLISHED}),
    }


def offline_tokens_per_s(settings: Mapping[str, Any]) -> float:
    """Answer tokens a second and device of the scenario's own model on its own layout; 0 where it does not fit."""
    question = resolve(read_scenario(settings))
    at = question.deployment
    return blocks.rate(at, question.workload, at.model, at.layout.tp)


def mixture(found: DeviceResult) -> str:
    """How many layers keep what."""
    counts = Counter(found.best.alternatives.values())
    return ", ".join(f"{n} layers with {name}" for name, n in counts.items())
