"""Two small networks whose every weight product goes through a ``Linear``: a perceptron and a decoder."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.numerics.experiments.steps import Pass, Step, causal_attention, chain, residual, rms_norm, silu
from orrery.numerics.learning.linear import Array

Weights = Mapping[str, Array]


class Network(Protocol):
    """Interface of a network in training."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Every weight matrix by name, (out, in)."""
        ...

    def step(self, run: Pass) -> Step:
        """The whole network as one step of that pass."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Perceptron:
    """Linear layers of those widths with a smooth activation between them."""

    widths: tuple[int, ...] = (64, 128, 128, 16)

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """``layer0``, ``layer1``, …"""
        pairs = zip(self.widths[1:], self.widths[:-1], strict=True)
        return {f"layer{i}": pair for i, pair in enumerate(pairs)}

    def step(self, run: Pass) -> Step:
        """Linear, activation, linear, …"""
        first, *rest = self.shapes
        return chain(run.linear(first), *(chain(silu, run.linear(name)) for name in rest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """A causal transformer: normalised attention and feed-forward branches beside a residual stream, and a head."""

    vocabulary: int = 32
    tokens: int = 32
    width: int = 64
    num_heads: int = 4
    num_blocks: int = 2

    def __post_init__(self) -> None:
        if self.width % self.num_heads:
            raise ScenarioError(
                f"decoder: width {self.width} does not divide among {self.num_heads} heads; write a multiple."
            )

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Embeddings, four matrices a block, and the head."""
        d = self.width
        shapes = {"embedding": (self.vocabulary, d), "places": (self.tokens, d)}
        for b in range(self.num_blocks):
            shapes |= {f"{b}.qkv": (3 * d, d), f"{b}.out": (d, d), f"{b}.up": (4 * d, d), f"{b}.down": (d, 4 * d)}
        return shapes | {"head": (self.vocabulary, d)}

    def step(self, run: Pass) -> Step:
        """Embedding, blocks, head."""
        blocks = [self._block(run, b) for b in range(self.num_blocks)]
        return chain(run.embedding("embedding", "places"), *blocks, rms_norm, run.linear("head"))

    def _block(self, run: Pass, b: int) -> Step:
        attention = chain(rms_norm, run.linear(f"{b}.qkv"), causal_attention(self.num_heads), run.linear(f"{b}.out"))
        feed_forward = chain(rms_norm, run.linear(f"{b}.up"), silu, run.linear(f"{b}.down"))
        return chain(residual(attention), residual(feed_forward))


def start(network: Network, rng: np.random.Generator) -> dict[str, Array]:
    """Weights to begin with: normal, of variance one over the input features."""
    return {
        name: (rng.standard_normal(shape) / np.sqrt(shape[1])).astype(np.float32)
        for name, shape in network.shapes.items()
    }
