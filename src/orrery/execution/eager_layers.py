"""A model's layers as a Python library's modules run them: every operator a launch of its own, and many passes over
activations.

Counted in Hugging Face transformers' decoders and encoders (models/llama, qwen3, qwen3_moe and bert of 5.17): operators
that an engine fuses into one kernel, such as a norm, are launched one by one there. Products and attention take what
the kernels floor says; what the other operators of a layer move is counted in 16-bit words of a token.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device
from orrery.kernels.dispatch import predict
from orrery.kernels.elementwise.rule import calibration
from orrery.kernels.ops import AttentionPrefill, Gemm
from orrery.models.model import Block, LatentAttention, Model, RecurrentMixer, SoftmaxAttention

FORMAT, WORD_BYTES = "bf16", 2.0

SEPARATE = {"qkv": 3, "qkv_a": 2, "gate_up": 2, "shared_gate_up": 2}
"""Products of one input that engines run as one, and modules and graphs of tensors one by one."""

NORM, NORM_WORDS = 8, 18.0
"""Launches of a root-mean-square norm: to 32 bits, square, mean, add, root, product, to 16 bits, weight; 16-bit words
read and written for an element."""

PLAIN_NORM_WORDS = 2.0
"""Words of an element of a layer norm, which is one operator."""

ROTATION, ROTATION_WORDS = 10, 10.0
"""Launches for queries and keys, and words of one of their elements: for each a product with cosines, the negated half,
both halves put together, a product with sines, and their sum."""

APPENDS, ADDITIONS, COPIES, ATTENTION = 2, 2, 1, 1
"""To the keys and to the values, each of which is written anew as a whole; to the residual stream; of what attention
gives; attention itself."""

ADDITION_WORDS, COPY_WORDS, ACTIVATION_WORDS, GATE_WORDS = 3.0, 2.0, 2.0, 3.0

ROUTING = 21
"""Launches of experts, beside the router's product: softmax, the choice, its weights, their sum and share, and the sum
to 16 bits; gathering tokens and weights, both products, the activation, weighing, masking, the sum. Prompts sort
their tokens by expert besides; they rarely wait for the host."""

ROUTED_WORDS = 8.0
"""For each element that goes to an expert, beside what one kernel for all experts moves: gathered, weighed, masked, and
brought back."""

COPIED_WORDS = 3.0
"""For each weight of a decoded token's experts: they are gathered into a tensor of their own, token by token, and read
from there (generation runs experts as a batched product, which is quick for few tokens)."""

RECURRENCE = 23
"""Launches of a recurrent mixer, where its compiled kernels are installed: fifteen of an engine's chain, and its gates
apart."""

LATENT = 5
"""Beside norms and rotation: queries, keys and their shared part put together, and spread over heads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """Launches of one layer's modules, and the bytes that operators beside products and attention move."""

    num_launches: int
    num_products: int
    token_bytes: float  # of each token
    decoded_token_bytes: float  # more, of one that is decoded: its experts' weights are copied
    cached_token_bytes: float  # of each token that a decoded one attends to: its cache is written anew


def operators(block: Block, hidden_size: int) -> Operators:
    """One layer's, from its shape."""
    products = sum(SEPARATE.get(x.name, 1) for x in block.linears)
    mixing, mixing_words, cached_words = _mixing(block)
    norms, norm_words = _norms(block, hidden_size)
    gates = 2 if any("gate" in x.name for x in block.linears) else 1
    activations = gates if block.activation_elements else 0
    gate_words = ACTIVATION_WORDS + (GATE_WORDS if gates == 2 else 0.0)
    experts = block.experts
    routed = experts.experts_per_token * hidden_size if experts else 0
    copied = experts.experts_per_token * experts.num_parameters_each if experts else 0
    return Operators(
        num_launches=products + mixing + norms + activations + ADDITIONS + (ROUTING if experts else 0),
        num_products=products,
        token_bytes=WORD_BYTES
        * (
            mixing_words
            + norm_words
            + ADDITIONS * ADDITION_WORDS * hidden_size
            + gate_words * block.activation_elements
            + ROUTED_WORDS * routed
        ),
        decoded_token_bytes=WORD_BYTES * COPIED_WORDS * copied,
        cached_token_bytes=WORD_BYTES * cached_words,
    )


def _mixing(block: Block) -> tuple[int, float, float]:
    """Launches of a token mixer but for its products and norms, words of a token, and of a cached one."""
    mixer = block.mixer
    if mixer is None:
        return 0, 0.0, 0.0
    if isinstance(mixer, RecurrentMixer):
        return RECURRENCE, GATE_WORDS * mixer.width, 0.0
    if isinstance(mixer, SoftmaxAttention):
        queries, keys = mixer.num_heads * mixer.head_size, mixer.num_kv_heads * mixer.head_size
        cache = mixer.cache_elements_per_token if mixer.is_causal else 0.0
        turned = (ROTATION, ROTATION_WORDS * (queries + keys)) if mixer.rotary and mixer.is_causal else (0, 0.0)
        appends = APPENDS if cache else 0
        words = turned[1] + COPY_WORDS * (mixer.num_heads * mixer.value_head_size + cache)
        return ATTENTION + COPIES + appends + turned[0], words, COPY_WORDS * cache
    latent = LATENT if isinstance(mixer, LatentAttention) else 0
    cache = float(mixer.cache_elements_per_token)
    return ATTENTION + COPIES + APPENDS + ROTATION + latent, COPY_WORDS * cache, COPY_WORDS * cache


def _norms(block: Block, hidden_size: int) -> tuple[int, float]:
    """Launches of a layer's norms and the words of a token that they move: layer norms where the feed-forward part has
    no gate, as the models before Llama have it."""
    over_heads = _head_norms(block, hidden_size)
    count = round((block.norm_elements - over_heads) / hidden_size) + (2 if over_heads else 0)
    is_plain = any(x.name == "up" for x in block.linears)
    if is_plain:
        return count, PLAIN_NORM_WORDS * block.norm_elements
    return NORM * count, NORM_WORDS * block.norm_elements


def _head_norms(block: Block, hidden_size: int) -> int:
    """Elements of queries and keys that are normed, or of latents, where what is left are norms over the model's
    width."""
    mixer = block.mixer
    if isinstance(mixer, LatentAttention):
        return block.norm_elements % hidden_size
    if not isinstance(mixer, SoftmaxAttention):
        return 0
    both = (mixer.num_heads + mixer.num_kv_heads) * mixer.head_size
    left = block.norm_elements - both
    return both if left > 0 and left % hidden_size == 0 else 0


def layer_of(model: Model) -> Operators:
    """The operators of a model's layers, which are all softmax attention; of the most launches where they differ."""
    _check_attention(model)
    return max((operators(b, model.hidden_size) for b in model.blocks), key=lambda x: x.num_launches)


def kernels_s(model: Model, device: Device, batch: int, tokens: int, engine: str = "") -> NDArray[np.float64]:
    """All layers, kernel by kernel, over whole prompts; what a layer streams beside products and attention is dealt out
    evenly over the kernels that are left."""
    _check_attention(model)
    measured = calibration("add", device).constants
    every: list[NDArray[np.float64]] = []
    for block in model.blocks:
        mixer, layer = block.mixer, operators(block, model.hidden_size)
        assert isinstance(mixer, SoftmaxAttention)
        products = [Gemm(m=batch * tokens, n=x.out_features, k=x.in_features, format=FORMAT) for x in block.linears]
        attention = AttentionPrefill(
            batch=batch,
            query_tokens=tokens,
            context_tokens=tokens,
            num_heads=mixer.num_heads,
            format=FORMAT,
            num_kv_heads=mixer.num_kv_heads,
            head_size=mixer.head_size,
            kv_format=FORMAT,
            is_causal=mixer.is_causal,
        )
        busy = [float(predict(op, device, engine).time_s) for op in (*products, attention)]
        moved = layer.token_bytes * batch * tokens
        stream_s = moved / (measured["bandwidth_frac"] * device.memory_bandwidth_bytes_per_s)
        others = layer.num_launches - len(busy)
        every += [np.array([*busy, *([stream_s / others] * others)])] * block.count
    return np.concatenate(every)


def _check_attention(model: Model) -> None:
    if not all(isinstance(block.mixer, SoftmaxAttention) for block in model.blocks):
        raise OutOfRange(f"{model.name}: layers are counted for models whose every layer is softmax attention.")
