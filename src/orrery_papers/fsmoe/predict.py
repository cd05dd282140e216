"""FSMoE: layers of experts on two clusters, with one stream of collectives or two, and gradients in the gaps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from orrery import kernels, network
from orrery.base.extension_points import knob_array
from orrery.catalog.frameworks import get_framework
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.train.gradient_sum import GradientSum
from orrery.execution.train.hidden import EXPERT, GRADIENT
from orrery.execution.train.overlap import Floats, Pair
from orrery.hardware.device import Device
from orrery.kernels.ops import AttentionPrefill, Gemm
from orrery_papers.fsmoe.models import model_gains
from orrery_papers.shared.layer_costs import geometric_mean, words
from orrery_papers.shared.trained import training_device

MAX_CHUNKS, ELEMENT_BYTES = 8, 2.0
FRAMEWORK = "megatron-lm"  # whose measured slow-down of products beside collectives is taken

DIFFERS = (
    "what a layer spends where: links, chunks and the baseline's schedule are those recalled, products run at measured "
    "rates of other machines of the generation, and routing and reordering of tokens are left out of every system"
)
MODELS_DIFFER = (
    "clusters, links and the models' sizes are recalled, and every system runs the same kernels here: what Tutel loses "
    "besides waiting, and DeepSpeed-MoE besides waiting and masks, is not described"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layers:
    """Layers of one cluster, one entry a shape: B sequences of L tokens on each device, M wide, experts of H."""

    setup: Setup
    sequences: Floats
    tokens: Floats
    num_hidden: Floats
    num_ffn: Floats
    num_heads: Floats
    capacity_ratio: Floats
    num_matrices: Floats  # 2, or 3 where experts are gated

    @property
    def device(self) -> Device:
        """With its part of the link between machines."""
        return training_device(self.setup)

    @property
    def per_node(self) -> int:
        """Devices over which experts, and attention, are cut."""
        return int(self.setup.number("num_devices_per_node"))

    @property
    def num_nodes(self) -> int:
        """Nodes over which experts are dealt out."""
        return int(self.setup.number("num_devices")) // self.per_node

    @property
    def routed(self) -> Floats:
        """Token copies that a device sends out."""
        return self.sequences * self.tokens * self.capacity_ratio * self.setup.number("num_experts_per_token")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Times:
    """Seconds of every layer, forward and backward, under the three schedules."""

    scheduled_s: Floats
    pipelined_s: Floats
    serial_s: Floats


def predict(paper: Paper) -> Iterator[Prediction]:
    """The grid on both clusters; then the three models."""
    clusters = [paper.setups["cluster-a"], paper.setups["cluster-b"]]
    claims = {claim.id: claim for claim in paper.claims}
    clusters[0] = claims["configured"].setup
    means = [mean_gain(grid(c)) for c in clusters]
    yield Prediction(
        claim="configured",
        predicted=float(np.mean(means)),
        because=f"mean gain over one stream of collectives in {len(grid(clusters[0]).num_hidden)} layers: "
        f"{means[0]:.3f} on the first cluster, {means[1]:.3f} on the second",
        differs=DIFFERS,
    )
    found = [
        gain for cluster in clusters for name in words(cluster.word("models")) for gain in model_gains(cluster, name)
    ]
    for claim, ratio in (("models-least", min(found)), ("models-most", max(found))):
        yield Prediction(
            claim=claim,
            predicted=ratio,
            differs=MODELS_DIFFER,
            because="whole steps of three models, two clusters, against one stream, and none with masks: "
            f"{min(found):.2f} to {max(found):.2f}, {geometric_mean(found):.2f} in the mean",
        )


def mean_gain(layers: Layers) -> float:
    """How many times faster than the pipeline with one stream, on average."""
    times = layer_times(layers)
    return float(np.mean(times.pipelined_s / times.scheduled_s))


def grid(setup: Setup) -> Layers:
    """Every combination of sizes; plain and gated experts."""
    swept = (
        "batches_swept",
        "context_tokens_swept",
        "hidden_swept",
        "ffn_ratios_swept",
        "heads_swept",
        "capacities_swept",
    )
    rows = np.array(list(product(*(setup.numbers(name) for name in swept), (2.0, 3.0))))
    b, t, m, ratio, heads, capacity, matrices = rows.T
    return Layers(
        setup=setup,
        sequences=b,
        tokens=t,
        num_hidden=m,
        num_ffn=m * ratio,
        num_heads=heads,
        capacity_ratio=capacity,
        num_matrices=matrices,
    )


def layer_times(layers: Layers) -> Times:
    """Both passes of every layer: attention, experts with their exchanges, and the sum of attention's gradients.

    The baselines sum gradients after the pass, and cut forward and backward into as many chunks.
    """
    forward, backward = pair_of(layers, 1.0), pair_of(layers, 2.0)
    others_s, reduce_s = attention_s(layers), gradients_s(layers)
    serial = [_rule("expert-serial")(p) for p in (forward, backward)]
    best = [_rule("expert-pipeline", has_two_streams=1.0, most_chunks=MAX_CHUNKS)(p) for p in (forward, backward)]
    alike = [
        sum(_rule("expert-pipeline", has_two_streams=0.0, num_chunks=c)(p) for p in (forward, backward))
        for c in range(1, MAX_CHUNKS + 1)
    ]
    back_s = best[1] + 2.0 * others_s
    return Times(
        scheduled_s=others_s + best[0] + back_s + summed_s(layers, reduce_s, back_s - backward.network_s),
        pipelined_s=3.0 * others_s + np.min(np.array(alike), axis=0) + reduce_s,
        serial_s=3.0 * others_s + serial[0] + serial[1] + reduce_s,
    )


def summed_s(layers: Layers, reduce_s: Floats, idle_s: Floats) -> Floats:
    """Seconds that ``orrery train --gradient-overlap gradient-slots`` adds to a step, for each of many layers.

    Products beside collectives are slowed in the layer's own time already: the idle part of it has none.
    """
    none = np.zeros(np.shape(reduce_s))
    slots = GradientSum(
        reduce_s=reduce_s,
        idle_s=np.maximum(0.0, idle_s),
        last_bucket_frac=none,
        last_layer_frac=none,
        contention_ratio=1.0,
    )
    technique = GRADIENT.get("gradient-slots")
    return technique.rule(slots, knob_array(technique))


def _rule(name: str, **knobs: float) -> Callable[[Pair], Floats]:
    technique = EXPERT.get(name)
    values = knob_array(technique, **knobs)
    return lambda pair: technique.rule(pair, values)


def pair_of(layers: Layers, passes: float) -> Pair:
    """Experts and their exchanges in one direction; ``passes`` 2 has products for inputs and for weights."""
    rows, message = layers.routed, layers.routed * layers.num_hidden * ELEMENT_BYTES

    def experts_s(cuts: int) -> Floats:
        return cuts * _experts_s(layers, rows * layers.per_node / cuts)

    def sent_s(cuts: int) -> Floats:
        return 2.0 * cuts * across_s(layers, "all_to_all", message / cuts)

    inside_s = inside(layers, message * layers.per_node)
    framework = get_framework(FRAMEWORK, layers.device, layers.setup.word("weights_format"))
    whole_s = experts_s(1)
    return Pair(
        compute_s=whole_s,
        network_s=sent_s(1),
        num_collectives=2.0,
        cut_compute_s=experts_s,
        cut_columns_s=experts_s,
        cut_network_s=sent_s,
        backward_weight_s=(passes - 1.0) * whole_s,
        contention_ratio=framework.contention_ratio,
        inside_s=inside_s,
    )


def _experts_s(layers: Layers, rows: Floats) -> Floats:
    """The products of the expert that a device holds a part of."""
    cut = np.maximum(layers.num_ffn / layers.per_node, 1.0)
    up, down = _gemm_s(layers, rows, cut, layers.num_hidden), _gemm_s(layers, rows, layers.num_hidden, cut)
    return (layers.num_matrices - 1.0) * up + down


def _gemm_s(layers: Layers, m: Floats, n: Floats, k: Floats) -> Floats:
    rows, columns, depth = (np.maximum(x, 1.0).astype(np.int64, order="C") for x in np.broadcast_arrays(m, n, k))
    op = Gemm(m=rows, n=columns, k=depth, format=layers.setup.word("weights_format"), quantises_input=False)
    return kernels.predict(op, layers.device).time_s


def attention_s(layers: Layers) -> Floats:
    """Attention of a node's tokens, cut by heads over its devices, with its gather and scatter; forward."""
    node = layers.per_node
    tokens = layers.sequences * layers.tokens * node
    mixed = _gemm_s(layers, tokens, 3.0 * layers.num_hidden / node, layers.num_hidden)
    mixed = mixed + _gemm_s(layers, tokens, layers.num_hidden, layers.num_hidden / node)
    heads, size = np.maximum(layers.num_heads / node, 1.0), layers.num_hidden / layers.num_heads
    batch, query, count, wide = (
        x.astype(np.int64, order="C") for x in np.broadcast_arrays(layers.sequences * node, layers.tokens, heads, size)
    )
    op = AttentionPrefill(
        batch=batch,
        query_tokens=query,
        context_tokens=query,
        num_heads=count,
        num_kv_heads=count,
        head_size=wide,
        format=layers.setup.word("weights_format"),
        kv_format=layers.setup.word("weights_format"),
    )
    moved = inside(layers, tokens * layers.num_hidden * ELEMENT_BYTES)
    return mixed + kernels.predict(op, layers.device).time_s + moved


def gradients_s(layers: Layers) -> Floats:
    """Attention's gradients, of which a device holds a part, summed over the nodes."""
    return across_s(layers, "all_reduce", 4.0 * layers.num_hidden**2 / layers.per_node * ELEMENT_BYTES)


def inside(layers: Layers, message_bytes: Floats) -> Floats:
    """A gather and a scatter among the devices of a node."""
    kinds = ("all_gather", "reduce_scatter")
    return sum((_sent_s(layers, kind, layers.per_node, layers.per_node, message_bytes) for kind in kinds), np.zeros(()))


def across_s(layers: Layers, kind: str, message_bytes: Floats) -> Floats:
    """A collective of the devices of one place in every node."""
    return _sent_s(layers, kind, layers.num_nodes, 1, message_bytes)


def _sent_s(layers: Layers, kind: str, count: int, per_node: int, message_bytes: Floats) -> Floats:
    work = network.Collective(
        kind=kind,
        num_devices=count,
        message_bytes=message_bytes,
        devices_per_node=per_node,
        library="nccl",
        has_peer_to_peer=True,
    )
    return np.asarray(network.predict(work, layers.device).time_s)
