"""Launches of one layer's kernels in training: what the host needs for them, and which of them CUDA graphs replay.

A host launches kernels one by one; where that takes longer than the kernels, the device waits. A graph replays what was
recorded once. Megatron records parts of a layer by name (its *scopes*) or the whole step (``full_iteration``); what
sends tokens to experts, computes them there and brings them back has sizes that only the device knows, and stays out of
graphs, unless experts take rows of a fixed number (``moe``).
"""

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.execution.train.cut import is_adapted
from orrery.execution.train.job import LOW_RANK, TrainingJob
from orrery.execution.train.units import Units
from orrery.models.model import Block, RecurrentMixer

Floats = NDArray[np.float64]

WHOLE_STEP = "full_iteration"
ATTENTION, MLP, RECURRENT, EXPERTS = "attn", "mlp", "mamba", "moe"
ROUTER, MAPS = "moe_router", "moe_preprocess"
PARTS = (ATTENTION, MLP, RECURRENT, EXPERTS, ROUTER, MAPS)
"""Parts of a layer that have graphs of their own, by Megatron's names."""

OF_EXPERTS = frozenset({EXPERTS, ROUTER, MAPS})
"""Parts of routed experts."""

MIXER_LAUNCHES, MLP_LAUNCHES = 6, 5
"""Kernels of a dense layer: norm, queries with keys and values, rotation, attention, output, sum; norm, products in,
activation, product out, sum."""

ADAPTER_LAUNCHES = 4
"""Kernels of a low-rank addition: two thin products, scaled, added."""

ROUTER_LAUNCHES, MAP_LAUNCHES, EXPERT_LAUNCHES = 6, 4, 10
"""Kernels of a layer's routed experts: product, scores, choice, weights and two for the balance of loads; counts,
offsets, places of rows there and back; and what stays out of graphs: rows put in order and sent, sorted, two products
around an activation, unsorted, sent back, put in order and summed."""


def read_scopes(words: str) -> frozenset[str]:
    """The scopes of ``attn,moe_router`` or ``full_iteration``; blank or none: no graphs.

    Raises:
        ScenarioError: a word is no scope.
    """
    scopes = frozenset(w for w in words.replace(" ", ",").split(",") if w and w != "none")
    if unknown := sorted(scopes - {*PARTS, WHOLE_STEP}):
        raise ScenarioError(
            f"cuda_graphs: {unknown[0]!r} is none of {', '.join((*PARTS, WHOLE_STEP))}; "
            "write some of them with commas, or none."
        )
    return scopes


def launch_s(units: Units) -> Floats:
    """Seconds in which the host launches the average layer's forward pass, but for what graphs replay."""
    f = units.job.framework
    scopes = read_scopes(f.cuda_graphs)
    if WHOLE_STEP in scopes:
        return np.zeros(units.choice.tp.shape)
    blocks = units.job.model.blocks
    fracs = (b.count * (_layer_frac(b, scopes) + _adapters_frac(units.job, b)) for b in blocks)
    layers = sum(fracs) / sum(b.count for b in blocks)
    routed = sum(b.count for b in blocks if b.experts) / units.num_layers * _routing_frac(scopes)
    return f.host_layer_s * layers + f.host_expert_s * routed + f.host_collective_s * _collectives(units)


def _layer_frac(block: Block, scopes: frozenset[str]) -> float:
    """Share of a layer's own launches that no graph holds."""
    mixer = (RECURRENT if isinstance(block.mixer, RecurrentMixer) else ATTENTION) not in scopes
    if block.experts:  # whose launches are counted apart
        return float(mixer)
    return (MIXER_LAUNCHES * mixer + MLP_LAUNCHES * (MLP not in scopes)) / (MIXER_LAUNCHES + MLP_LAUNCHES)


def _adapters_frac(job: TrainingJob, block: Block) -> float:
    """Launches of a layer's low-rank additions over the layer's own."""
    added = sum(is_adapted(job, x) for x in block.linears) if job.task in LOW_RANK else 0
    return ADAPTER_LAUNCHES * added / (MIXER_LAUNCHES + MLP_LAUNCHES)


def _routing_frac(scopes: frozenset[str]) -> float:
    """Share of the routed experts' launches that no graph holds."""
    if EXPERTS in scopes:
        return 0.0
    left = ROUTER_LAUNCHES * (ROUTER not in scopes) + MAP_LAUNCHES * (MAPS not in scopes) + EXPERT_LAUNCHES
    return left / (ROUTER_LAUNCHES + MAP_LAUNCHES + EXPERT_LAUNCHES)


def _collectives(units: Units) -> Floats:
    """Collectives that the host launches in one layer and direction."""
    choice, blocks = units.choice, (*units.job.model.encoder, *units.job.model.blocks)
    reduces = sum(b.count * b.num_reduces for b in blocks) / units.num_layers
    routed = sum(2 * b.count for b in blocks if b.experts) / units.num_layers
    tensor = reduces * np.where(choice.is_sequence_parallel, 2.0, 1.0) * (choice.tp > 1)
    context = np.where(choice.is_ring, choice.cp - 1.0, 4.0 * (choice.cp > 1))
    return tensor + routed * (choice.ep > 1) + context
