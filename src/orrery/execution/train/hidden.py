"""Collectives' exposed time beside a layer's products, after an overlap technique."""

from dataclasses import fields, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.extension_points import ExtensionPoint, knob_array
from orrery.base.technique import Technique
from orrery.execution.train import techniques
from orrery.execution.train.cut import Choice, Product, product
from orrery.execution.train.exchanges import ELEMENT_BYTES, collective_s, tensor_s
from orrery.execution.train.expert_exchange import expert_s, inside_s
from orrery.execution.train.experts import expert_times
from orrery.execution.train.job import TrainingJob, jobs_by_block
from orrery.execution.train.overlap import Pair
from orrery.execution.train.placement import standing
from orrery.execution.train.products import Passes, nothing, product_times
from orrery.execution.train.units import Units
from orrery.models.model import Block

Floats = NDArray[np.float64]

TENSOR = ExtensionPoint(name="execution.tensor_overlap", folder=techniques, noun="tensor overlap")
EXPERT = ExtensionPoint(name="execution.expert_overlap", folder=techniques, noun="expert overlap")
GRADIENT = ExtensionPoint(name="execution.gradient_overlap", folder=techniques, noun="gradient overlap")

SEQUENCE_FREE_FRAC = 2.0 / 3.0
"""With sequence parallelism a third of the backward collectives feed both products, and hide nowhere.
[korthikanti-2022]"""


def tensor_technique(job: TrainingJob) -> str:
    """By name: the user's, or what the framework's flags amount to."""
    if job.tensor_overlap:
        return job.tensor_overlap
    f = job.framework
    return "pieces" if f.overlaps_tensor else "weight-gradients" if f.overlaps_weight_gradients else "serial"


def gradient_technique(job: TrainingJob) -> Technique:
    """Technique by which data-parallel sums of gradients hide: the user's, or the framework's own."""
    does = "gradient-buckets" if job.framework.overlaps_gradients else "gradient-serial"
    return GRADIENT.get(job.gradient_overlap or does)


def tensor_exposed(units: Units, ratio: Floats) -> tuple[Floats, Floats]:
    """Seconds that tensor parallelism adds to one layer, forward and backward; ``ratio`` slows its collectives."""
    job, x, f = units.job, units.layer, units.job.framework
    technique = TENSOR.get(tensor_technique(job))
    if not x.tensor_forward_s.any():
        return x.tensor_forward_s, x.tensor_backward_s
    mr = f.matrix_ratio

    def pair(compute_s: Floats, weight_s: Floats, network_s: Floats, kind: str, other_s: Floats) -> Pair:
        return Pair(
            compute_s=compute_s,
            network_s=ratio * network_s,
            num_collectives=2.0,
            cut_compute_s=lambda cuts: mr * getattr(_cut(units, cuts, 1), kind),
            cut_columns_s=lambda cuts: mr * getattr(_cut(units, 1, cuts), kind),
            cut_network_s=lambda cuts: ratio * _cut_tensor(units, cuts),
            backward_weight_s=weight_s,
            contention_ratio=f.contention_ratio,
            other_compute_s=other_s,
        )

    zero = np.zeros(ratio.shape)
    forward, inputs = mr * x.products.forward_s, mr * x.products.input_gradient_s
    weights = mr * x.products.weight_gradient_s
    rest = x.core_forward_s(f) + f.elementwise_ratio * x.stream_forward_s
    rest_back = x.core_backward_s(f) + f.elementwise_ratio * x.stream_backward_s
    ahead = _by_rank(units, technique, pair(forward, zero, x.tensor_forward_s, "forward_s", rest))
    back = _by_rank(units, technique, pair(inputs, weights, x.tensor_backward_s, "input_gradient_s", rest_back))
    return np.maximum(ahead - forward, 0.0), np.maximum(back - inputs - weights, 0.0)


def _by_rank(units: Units, technique: Technique, pair: Pair) -> Floats:
    """The technique's answer; knobs that follow from the layout are set for each tensor degree on its own."""
    given, own = dict(units.job.tensor_knobs), {f.name for f in fields(technique.knobs)}
    if not own & {"num_pieces", "free_frac"}:
        return technique.rule(pair, knob_array(technique, **given))
    out = pair.serial_s.copy()
    choice = units.choice
    keys = choice.tp * 2 + choice.is_sequence_parallel
    for key in set(keys.tolist()):
        here, tp = keys == key, key // 2
        if tp > 1:
            follows = {"num_pieces": float(tp), "free_frac": SEQUENCE_FREE_FRAC if key % 2 else 1.0}
            knobs = {name: value for name, value in follows.items() if name in own}
            out[here] = technique.rule(pair, knob_array(technique, **(knobs | given)))[here]
    return out


def _blocks(units: Units) -> list[tuple[float, TrainingJob, Block]]:
    return [(b.count / units.num_layers, job, b) for job, b in jobs_by_block(units.job)]


@lru_cache(maxsize=64)  # both directions ask for the same pieces
def _cut(units: Units, rows: int, columns: int) -> Passes:
    """All products of the average layer with tokens cut into ``rows`` pieces and weights into ``columns``."""
    total = nothing(units.choice)
    for share, job, block in _blocks(units):
        products = [_narrower(product(x, block.mixer, units.choice.tp), columns) for x in block.linears]
        for times in product_times(job, products, units.choice, rows):
            total = total + times.times(share * columns)
    return total


def _narrower(p: Product, columns: int) -> Product:
    return p if columns == 1 else replace(p, n=np.maximum(-(-p.n // columns), 1))


@lru_cache(maxsize=64)
def _cut_tensor(units: Units, cuts: int) -> Floats:
    total = np.zeros(units.choice.tp.shape)
    for share, job, block in _blocks(units):
        total = total + share * tensor_s(job, block.num_reduces, units.choice, cuts)
    return total


def expert_exposed(units: Units, ratio: Floats, most_gathered: int | None = None) -> tuple[Floats, Floats]:
    """Seconds that the exchange of tokens adds to one layer, forward and backward.

    Below 0 where a technique takes more off the experts' products than the exchange adds: it evens out the loads.
    ``most_gathered`` stands in for the first knob of one that gathers experts.
    """
    job, x, f = units.job, units.layer, units.job.framework
    network_s = ratio * x.expert_forward_s
    if not job.expert_overlap or not network_s.any():
        return network_s, ratio * x.expert_backward_s
    technique = EXPERT.get(job.expert_overlap)
    knobs = knob_array(technique, **dict(job.expert_knobs))
    if most_gathered is not None:
        knobs[0] = most_gathered
    block = next(b for b in job.model.blocks if b.experts)
    share = sum(b.count for b in job.model.blocks if b.experts) / units.num_layers
    experts, choice, mr = block.experts, units.choice, f.matrix_ratio
    assert experts is not None
    near_s = share * ratio * inside_s(job, block, choice)
    gather_s = share * ratio * _gather(job, choice, ELEMENT_BYTES * experts.num_parameters_each)

    def answer(compute_s: Floats, weight_s: Floats, kind: str, other_s: Floats, gathers: float) -> Floats:
        saved_s = np.zeros(compute_s.shape)
        for ranks in set(choice.ep.tolist()):  # whose loads differ with how many share the experts out
            pair = Pair(
                compute_s=compute_s,
                network_s=network_s - near_s,
                num_collectives=2.0,
                backward_weight_s=weight_s,
                cut_compute_s=lambda cuts: share * mr * getattr(expert_times(job, experts, choice, cuts), kind),
                cut_columns_s=lambda cuts: compute_s,
                cut_network_s=lambda cuts: share * ratio * expert_s(job, block, choice, cuts) - near_s,
                contention_ratio=f.contention_ratio,
                inside_s=near_s,
                other_compute_s=other_s,
                expert_gather_s=gathers * gather_s,
                expert_share=standing(job, experts, ranks).share,
                num_ranks=ranks,
            )
            saved_s = np.where(choice.ep == ranks, pair.serial_s - technique.rule(pair, knobs), saved_s)
        return network_s - saved_s  # to the bit what serial experts add, where nothing is saved

    forward, inputs, zero = mr * x.experts.forward_s, mr * x.experts.input_gradient_s, np.zeros(ratio.shape)
    weights = mr * x.experts.weight_gradient_s
    seen, seen_back = x.core_forward_s(f), x.core_backward_s(f)
    return answer(forward, zero, "forward_s", seen, 1.0), answer(inputs, weights, "input_gradient_s", seen_back, 2.0)


def _gather(job: TrainingJob, choice: Choice, expert_bytes: float) -> Floats:
    """One expert's parameters to all ranks that experts are dealt over."""
    return collective_s(job, "all_gather", choice.ep, choice.etp, np.full(choice.tp.shape, expert_bytes) / choice.etp)
