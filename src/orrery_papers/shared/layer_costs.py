"""A model's linear layers as matrix products, its attention for one token, and sums and means over them."""

from collections.abc import Callable, Iterator
from math import exp, log

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device
from orrery.kernels.dispatch import predict
from orrery.kernels.ops import AttentionDecode
from orrery.models.model import Model, SoftmaxAttention


def linear_shapes(model: Model) -> Iterator[tuple[int, int, int]]:
    """Outputs, inputs and how many times, of every linear layer of every block; the head is not among them."""
    for block in model.blocks:
        for linear in block.linears:
            yield linear.out_features, linear.in_features, block.count


def over_linears(model: Model, each: Callable[[int, int], float]) -> float:
    """A cost of (outputs, inputs) summed over all linear layers."""
    return sum(count * each(outputs, inputs) for outputs, inputs, count in linear_shapes(model))


def decode_attention_s(model: Model, device: Device, batch: int, context: int, cache: str) -> float:
    """Attention of all layers for one token of every sequence, with a cache in that format."""
    total = 0.0
    for block in model.blocks:
        mixer = block.mixer
        if not isinstance(mixer, SoftmaxAttention):
            raise OutOfRange(f"{model.name}: {block.name} layers have no softmax attention; name another model.")
        op = AttentionDecode(
            batch=batch,
            context_tokens=context,
            num_heads=mixer.num_heads,
            num_kv_heads=mixer.num_kv_heads,
            head_size=mixer.head_size,
            format="fp16",
            kv_format=cache,
        )
        total += block.count * float(predict(op, device).time_s)
    return total


def geometric_mean(ratios: list[float]) -> float:
    """The mean of ratios that treats a half and a double alike."""
    return exp(sum(log(ratio) for ratio in ratios) / len(ratios))


def words(text: str) -> list[str]:
    """Names of a list by comma."""
    return [word.strip() for word in text.split(",")]
