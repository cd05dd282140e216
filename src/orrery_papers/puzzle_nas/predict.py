"""Puzzle: blocks chosen for Llama-3.1-70B within one H100, and the published child, served by the same engine."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.base.errors import OutOfRange
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory, memory_of
from orrery.models.model import Model
from orrery.planner.blocks.choose import Limits, chosen
from orrery.planner.blocks.library import Variant, costs, rebuilt
from orrery.serving.estimate import estimate
from orrery.serving.steady import batch_limit
from orrery.serving.workload import Workload
from orrery_papers.shared.setup import deployment, layout_of

PUBLISHED = "llama-3_3-nemotron-super-49b-v1"
STAND_IN = (
    "the stand-in for damages keeps every key/value head and narrows all layers a little, where the published children "
    "drop attention from many layers; the throughput that was demanded is not known"
)
ENGINE = "the engine's batch and its version, which were not found"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The searched child, the published one, and the parent, per device."""
    claims = {claim.id: claim for claim in paper.claims}
    one = claims["throughput"].setup
    blocks = searched(one)
    child = rebuilt(get_model(one.word("model")), blocks, "child")
    ours, parent = rate(one, "layout", child), rate(one, "baseline_layout")
    yield Prediction(
        claim="throughput",
        predicted=ours / parent,
        differs=STAND_IN,
        because=f"{child.num_parameters / 1e9:.1f}e9 parameters, {mixture(blocks)}: {ours:.0f} tokens/s a device, "
        f"the parent {parent:.0f}",
    )
    published = rate(one, "layout", get_model(PUBLISHED))
    yield Prediction(
        claim="throughput-published",
        predicted=published / parent,
        differs=ENGINE,
        because=f"the published layers of Nemotron-49B: {published:.0f} tokens/s a device, the parent {parent:.0f}",
    )
    for claim in paper.claims:
        if claim.metric == "throughput_per_device":
            side = "layout" if "single" in claim.id or "child" in claim.id else "baseline_layout"
            model = child if "child" in claim.id else None
            yield Prediction(
                claim=claim.id,
                predicted=rate(claim.setup, side, model),
                differs=f"{ENGINE}; {STAND_IN}",
                because=f"offline, {claim.setup.word(side)}, as many sequences as the cache holds",
            )


def searched(setup: Setup) -> tuple[Variant, ...]:
    """The integer program's blocks: parameters as stated, so many times the parent's sequences, no slower than it."""
    parent = served(setup, "layout")
    memory = _fits(parent)
    length = setup.number("input_tokens") + setup.number("output_tokens")
    most = setup.number("workload_ratio") * sequences(setup, parent.model)
    middle = setup.number("input_tokens") + setup.number("output_tokens") / 2
    layers, options = parent.model.num_layers, costs(parent, most, middle)
    whole = options[0]
    rest = parent.model.num_parameters - layers * whole.num_parameters
    found = chosen(
        options,
        layers,
        Limits(
            num_parameters=setup.number("num_child_parameters") - rest,
            memory_bytes=memory.kv_capacity_bytes + layers * whole.weight_bytes,
            cached_tokens=most * length,
            step_s=most / rate(setup, "baseline_layout"),
        ),
    )
    if isinstance(found, Infeasible):
        raise OutOfRange(str(found))
    return found


def served(setup: Setup, side: str, model: Model | None = None) -> Deployment:
    """The set-up's model, or another in its place, with a cache in the format of the weights."""
    found = deployment(setup, layout=setup.word(side), engine=setup.word("engine"))
    formats = replace(found.formats, kv=setup.word("weights_format"))
    return replace(found, formats=formats, model=model or found.model)


def rate(setup: Setup, side: str, model: Model | None = None) -> float:
    """Answer tokens a second and device, all requests at once; 0 where it does not fit."""
    work = Workload(
        mode="offline", input_tokens=setup.number("input_tokens"), output_tokens=setup.number("output_tokens")
    )
    found = estimate(served(setup, side, model), work)
    return 0.0 if isinstance(found, Infeasible) else found.output_tokens_per_s / layout_of(setup.word(side)).num_devices


def sequences(setup: Setup, model: Model) -> float:
    """That one device holds at once."""
    at = served(setup, "layout", model)
    return batch_limit(at, _fits(at), setup.number("input_tokens"), setup.number("output_tokens"))


def mixture(blocks: tuple[Variant, ...]) -> str:
    """How many layers keep what."""
    counts = {block: blocks.count(block) for block in dict.fromkeys(blocks)}
    return ", ".join(
        f"{n} layers with {b.kv_share_frac:.0%} of the heads and {b.ffn_share_frac:.0%} of the width"
        for b, n in counts.items()
    )


def _fits(at: Deployment) -> Memory:
    found = memory_of(at)
    if isinstance(found, Infeasible):
        raise OutOfRange(str(found))
    return found
