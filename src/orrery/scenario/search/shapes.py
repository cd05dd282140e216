"""The space of a decoder's shape: width, layers, heads and feed-forward width, trained on one device.

Layers are timed forward and backward as `orrery` times their products and attention for training, so that sizes that
fill the device's tiles stand out from their neighbours [anthony-2024]. Times are no sum over these choices.
"""

from functools import cache
from itertools import product

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.hardware.device import Device
from orrery.models.model import Model, SoftmaxAttention
from orrery.planner.architecture.problem import Choice, Floats, Metric, Networks
from orrery.scenario.search.costs import Costs
from orrery.training.sizing import Size, rank_sizes

WIDTHS = (0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.5, 2.0)
LAYERS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
FFN = (0.5, 0.75, 1.0, 1.25, 1.5)
HEADS = (64, 128, 256)
"""Shares of the model's own width, layers and feed-forward width over width; features of a head."""

MULTIPLE = 64
LOSS_POWER = 0.34
"""Exponent of loss in parameters: 406.4 / N ** 0.34 in arXiv 2203.15556, equation 10."""

LOSS_RATIO = 406.4
LIKENED = (
    "score: a stand-in, less what a loss law of the literature (406.4 / parameters ** 0.34) says of the size; "
    "shapes of equal size count alike"
)


def costs_of(model: Model, device: Device, seq_len: int, batch: int, format: str) -> Costs:
    """Shapes around the model's own."""
    own = shape_of(model)
    widths = [max(MULTIPLE, round(own.hidden_size * share / MULTIPLE) * MULTIPLE) for share in WIDTHS]
    ratios = [own.ffn_size / own.hidden_size * share for share in FFN]
    layers = [max(1, round(model.num_layers * share)) for share in LAYERS]
    heads = sorted({*HEADS, own.head_size})
    group = own.num_heads // own.num_kv_heads
    listed = (widths, ratios, heads, layers)
    sizes = {
        key: _size(widths[key[0]], ratios[key[1]], heads[key[2]], group, own)
        for key in product(*(range(len(values)) for values in listed[:3]))
    }

    @cache
    def timed() -> dict[Size, float]:
        ranked = rank_sizes(device, list(set(sizes.values())), seq_len=seq_len, micro_batch=batch, format=format)
        return {found.size: found.layer_s for found in ranked}

    def each(network: Networks) -> tuple[Size, int]:
        width, ratio, head, depth = map(int, network)
        return sizes[width, ratio, head], layers[depth]

    def latency(networks: Networks) -> Floats:
        return np.array([timed()[size] * depth for size, depth in map(each, networks)])

    def parameters(networks: Networks) -> Floats:
        return np.array([float(size.num_parameters * depth) for size, depth in map(each, networks)])

    metrics = {"latency": Metric(exact=latency), "parameters": Metric(exact=parameters)}
    parent = np.array([[WIDTHS.index(1.0), FFN.index(1.0), heads.index(own.head_size), LAYERS.index(1.0)]])
    names = ("width", "feed-forward over width", "features of a head", "layers")
    return Costs(
        choices=tuple(
            Choice(name=name, alternatives=tuple(f"{value:g}" for value in values))
            for name, values in zip(names, listed, strict=True)
        ),
        metrics=metrics,
        stand_in=Metric(exact=lambda networks: -LOSS_RATIO * parameters(networks) ** -LOSS_POWER),
        likened=LIKENED,
        reference_name=model.name,
        reference={name: float(found.of(parent)[0]) for name, found in metrics.items()},
        parent=parent,
        notes=(
            f"latency: forward and backward passes of all layers over {batch} x {seq_len:,} tokens in {format}, "
            "without embedding, head and exchanges; parameters likewise",
        ),
    )


def shape_of(model: Model) -> Size:
    """The model's layer as a size; ScenarioError where it is no stack of one."""
    block = model.blocks[-1]
    mixer = block.mixer
    if not isinstance(mixer, SoftmaxAttention):
        raise ScenarioError(
            f'model: {model.name} has no softmax attention to shape; write another, such as model = "llama-3.2-1b".'
        )
    ffn = block.experts.ffn_size if block.experts else block.activation_elements
    return Size(
        hidden_size=model.hidden_size,
        ffn_size=ffn,
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_kv_heads,
        head_size=mixer.head_size,
    )


def _size(width: int, ratio: float, head: int, group: int, own: Size) -> Size:
    """Whole groups of heads that are about as wide as the model's own are beside its width."""
    share = own.num_heads * own.head_size / own.hidden_size
    kv = max(1, round(share * width / head / group))
    ffn = max(MULTIPLE, round(ratio * width / MULTIPLE) * MULTIPLE)
    return Size(hidden_size=width, ffn_size=ffn, num_heads=kv * group, num_kv_heads=kv, head_size=head)
