"""Bytes that a graph of tensors moves between products and attention, where every operation is a kernel over
activations in 32 bits, as ggml runs it (llama.cpp, ggml-cuda.cu: products by cuBLAS).

    norm           8 bytes an element, and 12 to multiply by its weight
    rotation       8 of queries and keys
    additions     12 to the residual stream, twice a layer
    activation     8, and 12 to multiply by the other half
    product        6 of each input and each output that is rounded to 16 bits and widened again
    scores        20 of each query, head and token that it attends to: written, scaled, rounded, read
    weights        what they are stored in, and two bytes, of each that is turned to 16 bits before a prompt's products
"""

from collections.abc import Iterator

import numpy as np

from orrery.execution.batch import Batch, Ints
from orrery.execution.eager_layers import SEPARATE
from orrery.execution.formats import is_16bit
from orrery.execution.layout import Deployment
from orrery.execution.shard import LinearShard, MixerShard, Shard
from orrery.models.model import SoftmaxAttention
from orrery.numerics.registry import get_format

NORM_BYTES, ROTATION_BYTES, ADDITION_BYTES, GATE_BYTES, ENDS_BYTES, SCORE_BYTES = 20.0, 8.0, 24.0, 20.0, 6.0, 20.0
WIDE_BYTES = 2.0

ADDED_BYTES = 6.0
"""Bytes that an element of an addition moves, in 16 bits: what these are counted in."""

Work = tuple[str, str, Ints, float, float]
"""Element-wise work: its name and kind, rows, elements of a row over all repetitions, and those."""


def tensor_passes(deployment: Deployment, cut: Shard, batch: Batch) -> Iterator[Work]:
    """The passes of a step."""
    engine, layers = deployment.engine, float(max(cut.num_layers, 1))
    prompts = batch.prompt_sequences * batch.prompt_tokens
    moved = (
        NORM_BYTES * cut.norm_elements
        + ROTATION_BYTES * sum(m.count * _turned(m) for m in cut.mixers)
        + ADDITION_BYTES * deployment.model.hidden_size * layers
        + GATE_BYTES * cut.activation_elements
    )
    yield "operations", "add", batch.num_tokens, moved / ADDED_BYTES, layers
    inner = [x for x in cut.linears if not x.is_head]
    if engine.sums_in_16_bits:
        ends = sum(x.count * (SEPARATE.get(x.name, 1) * x.k + x.n) for x in inner if _is_rounded(deployment, x))
        yield "activations rounded", "add", prompts, ENDS_BYTES * ends / ADDED_BYTES, layers
    if engine.unpacks_weights:
        once = np.asarray(prompts > 0).astype(np.int64)
        stored = sum(x.count * _unpacked_bytes(x) for x in inner)
        yield "weights unpacked", "add", once, stored / ADDED_BYTES, layers
    if engine.keeps_scores:
        for m in cut.mixers:
            seen = batch.prompt_context_tokens
            if isinstance(m.mixer, SoftmaxAttention) and m.mixer.window_tokens:
                seen = np.minimum(seen, m.mixer.window_tokens + batch.prompt_tokens)
            if m.num_heads:
                yield "scores", "add", prompts * seen, m.count * m.num_heads * SCORE_BYTES / ADDED_BYTES, m.count


def _turned(mixer: MixerShard) -> float:
    """Elements of a token's queries and keys that are rotated."""
    if not isinstance(mixer.mixer, SoftmaxAttention) or not mixer.mixer.rotary:
        return 0.0
    return float((mixer.num_heads + mixer.num_kv_heads) * mixer.mixer.head_size)


def _is_rounded(deployment: Deployment, linear: LinearShard) -> bool:
    """Whether a prompt's product is in 16 bits: its weights are, or are turned to them."""
    return is_16bit(linear.format) or deployment.engine.unpacks_weights


def _unpacked_bytes(linear: LinearShard) -> float:
    """Bytes read and written to turn one layer's narrow weights to 16 bits."""
    if is_16bit(linear.format):
        return 0.0
    elements = linear.n * linear.k / linear.groups
    return elements * (get_format(linear.format).bytes_per_element + WIDE_BYTES)
