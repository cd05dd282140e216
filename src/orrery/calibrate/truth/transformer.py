"""A Llama-like decoder that really runs: FP32, random weights, made of the measured kernels and nothing else.

Its shapes are those that orrery reads from the same config.json, so what is predicted is what runs. One step takes any
number of sequences with any number of new tokens each: prompts, chunks of prompts and decodes are the same thing.
Linear layers see the tokens of all sequences at once, attention goes sequence by sequence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.calibrate.measure import numpy_kernels as kernels
from orrery.calibrate.measure.numpy_kernels import Array
from orrery.models.config import parse
from orrery.models.model import Block, Model, SoftmaxAttention

Tokens = NDArray[np.int64]


@dataclass(slots=True, kw_only=True, eq=False)
class Cache:
    """The keys and values of one sequence: layers x kv_heads x capacity x size, ``num_tokens`` of them filled."""

    keys: Array
    values: Array
    num_tokens: int = 0


Work = Sequence[tuple[Cache, Tokens]]
"""One step's work: the new tokens of each sequence, behind those in its cache."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """The weights of one layer, in_features x out_features, and the gains of its two norms."""

    qkv: Array
    out: Array
    gate_up: Array
    down: Array
    attention_gain: Array
    feed_gain: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transformer:
    """The weights of a whole model and the way through them."""

    model: Model  # what orrery predicts
    attention: SoftmaxAttention
    embedding: Array
    layers: tuple[Layer, ...]
    final_gain: Array
    head: Array

    @property
    def vocab_size(self) -> int:
        """How many tokens there are."""
        return self.model.vocab_size

    def new_cache(self, capacity_tokens: int) -> Cache:
        """Room for one sequence, written once so that no page of it is new when a step needs it."""
        a = self.attention
        shape = (len(self.layers), a.num_kv_heads, capacity_tokens, a.head_size)
        return Cache(keys=np.full(shape, 0.0, np.float32), values=np.full(shape, 0.0, np.float32))

    def logits(self, work: Work) -> Array:
        """One step: fills the caches; one row for the last new token of each sequence."""
        new_tokens = np.concatenate([tokens for _, tokens in work])
        x = self.embedding[new_tokens]
        residual = np.zeros_like(x)
        for number, layer in enumerate(self.layers):
            x = kernels.product(kernels.norm(x, residual, layer.attention_gain), layer.qkv)
            x = kernels.product(self._mixed(x, work, number), layer.out)
            x = kernels.product(kernels.norm(x, residual, layer.feed_gain), layer.gate_up)
            x = kernels.product(kernels.gated_activation(x), layer.down)
        for cache, tokens in work:
            cache.num_tokens += len(tokens)
        last = np.cumsum([len(tokens) for _, tokens in work]) - 1
        return kernels.product(kernels.norm(x[last], residual[last], self.final_gain), self.head)

    def step(self, work: Work) -> Tokens:
        """One step with its sampling: the likeliest next token of each sequence."""
        return kernels.sample(self.logits(work))

    def _mixed(self, qkv: Array, work: Work, layer: int) -> Array:
        """Attention of every sequence over its own cache."""
        a = self.attention
        keys_from, values_from = a.num_heads, a.num_heads + a.num_kv_heads
        heads = qkv.reshape(len(qkv), values_from + a.num_kv_heads, a.head_size)
        mixed = np.empty((len(qkv), a.num_heads * a.head_size), np.float32)
        start = 0
        for cache, tokens in work:
            end = start + len(tokens)
            mixed[start:end] = kernels.attend(
                heads[start:end, :keys_from],
                heads[start:end, keys_from:values_from],
                heads[start:end, values_from:],
                cache.keys[layer],
                cache.values[layer],
                cache.num_tokens,
            )
            start = end
        return mixed


def transformer(config: Mapping[str, Any], seed: int = 0) -> Transformer:
    """The model of a config.json, with weights drawn so that every layer keeps the size of what passes through it."""
    model = parse(config, name=str(config.get("model_type", "decoder")))
    block, attention = _plain(model)
    assert model.head is not None
    random = np.random.default_rng(seed)

    def weight(rows: int, columns: int) -> Array:
        return random.standard_normal((rows, columns), np.float32) * np.float32(rows**-0.5)

    def gain() -> Array:
        return 1.0 + np.float32(0.1) * random.standard_normal(model.hidden_size, np.float32)

    def layer() -> Layer:
        weights = {x.name: weight(x.in_features, x.out_features) for x in block.linears}
        return Layer(**weights, attention_gain=gain(), feed_gain=gain())

    return Transformer(
        model=model,
        attention=attention,
        embedding=random.standard_normal((model.vocab_size, model.hidden_size), np.float32),
        layers=tuple(layer() for _ in range(block.count)),
        final_gain=gain(),
        head=weight(model.head.in_features, model.head.out_features),
    )


LINEARS = ("qkv", "out", "gate_up", "down")


def _plain(model: Model) -> tuple[Block, SoftmaxAttention]:
    """The one kind of layer of a plain decoder; anything else is refused."""
    block = model.blocks[0]
    mixer, linears = block.mixer, block.linears
    is_plain = (
        len(model.blocks) == 1
        and isinstance(mixer, SoftmaxAttention)
        and mixer.rotary
        and not (mixer.window_tokens or mixer.chunk_tokens or mixer.has_sinks or mixer.index_heads)
        and tuple(x.name for x in linears) == LINEARS
        and not any(x.has_bias or x.groups > 1 for x in linears)
        and block.norm_elements == 2 * model.hidden_size
        and model.head is not None
        and not model.is_head_tied
    )
    if not is_plain or not isinstance(mixer, SoftmaxAttention) or mixer.head_size % 2:
        raise ScenarioError(
            f"{model.name}: is not what the reference loop runs; write the config of a Llama without biases, windows, "
            "experts or scaled norms, with heads of an even size and tie_word_embeddings = false."
        )
    return block, mixer
