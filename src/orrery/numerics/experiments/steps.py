"""The parts of a small network: each takes an array and gives an array, and the way back for its gradient.

A network is a chain of such steps. Whatever has weights reads them from a ``Pass`` and leaves their gradients there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from orrery.numerics.learning.linear import Array, Linear

Back = Callable[[Array], Array]
Step = Callable[[Array], tuple[Array, Back]]
RuleOf = Callable[[str], Linear]
"""Which linear layer computes how, by the name of its weights."""

NORM_FLOOR = 1e-6
"""Added to the mean square before its root is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One forward and backward pass: its weights, how they are multiplied, and the gradients as they come."""

    weights: Mapping[str, Array]
    rule_of: RuleOf
    rng: np.random.Generator
    gradients: dict[str, Array] = field(default_factory=dict[str, Array])

    def linear(self, name: str) -> Step:
        """The linear layer called ``name``; its input may have any number of axes before the last."""

        def step(x: Array) -> tuple[Array, Back]:
            rule, w = self.rule_of(name), self.weights[name]
            y, saved = rule.forward(x.reshape(-1, x.shape[-1]), w, self.rng)

            def back(dy: Array) -> Array:
                dx, self.gradients[name] = rule.backward(saved, dy.reshape(-1, dy.shape[-1]), self.rng)
                return dx.reshape(x.shape)

            return y.reshape(*x.shape[:-1], w.shape[0]), back

        return step

    def embedding(self, name: str, places: str) -> Step:
        """A row of ``name`` for each token, and one of ``places`` for where it stands."""

        def step(tokens: Array) -> tuple[Array, Back]:
            table, at = self.weights[name], self.weights[places]
            rows = tokens.astype(np.intp)

            def back(dy: Array) -> Array:
                gradient = np.zeros_like(table)
                np.add.at(gradient, rows, dy)
                self.gradients[name], self.gradients[places] = gradient, dy.sum(axis=0)
                return np.zeros_like(dy)

            return table[rows] + at, back

        return step


def chain(*steps: Step) -> Step:
    """Steps one after the other; back in reverse."""

    def step(x: Array) -> tuple[Array, Back]:
        backs: list[Back] = []
        for one in steps:
            x, back = one(x)
            backs.append(back)

        def back_all(dy: Array) -> Array:
            for back in reversed(backs):
                dy = back(dy)
            return dy

        return x, back_all

    return step


def residual(inner: Step) -> Step:
    """``x + inner(x)``."""

    def step(x: Array) -> tuple[Array, Back]:
        y, back = inner(x)
        return x + y, lambda dy: dy + back(dy)

    return step


def silu(x: Array) -> tuple[Array, Back]:
    """``x s(x)`` with the logistic function s; its slope is ``s (1 + x (1 - s))``."""
    s = 0.5 + 0.5 * np.tanh(0.5 * x)
    return x * s, lambda dy: dy * s * (1.0 + x * (1.0 - s))


def relu(x: Array) -> tuple[Array, Back]:
    """``max(x, 0)``."""
    return np.maximum(x, 0.0), lambda dy: dy * (x > 0.0)


def rms_norm(x: Array) -> tuple[Array, Back]:
    """``x / rms(x)`` along the last axis, without weights: ``dx = (dy - y mean(y dy)) / rms``."""
    scale = 1.0 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + NORM_FLOOR)
    y = x * scale
    return y, lambda dy: scale * (dy - y * np.mean(y * dy, axis=-1, keepdims=True))


def causal_attention(num_heads: int) -> Step:
    """Attention of every token to itself and those before, of queries, keys and values side by side."""

    def step(qkv: Array) -> tuple[Array, Back]:
        batch, tokens, width = qkv.shape
        size = width // (3 * num_heads)
        q, k, v = qkv.reshape(batch, tokens, 3, num_heads, size).transpose(2, 0, 3, 1, 4)
        root = float(np.sqrt(size))
        later = np.triu(np.ones((tokens, tokens), dtype=np.bool_), k=1)
        shares = softmax(np.where(later, -np.inf, q @ k.swapaxes(-1, -2) / root).astype(qkv.dtype))

        def back(dy: Array) -> Array:
            d_out = dy.reshape(batch, tokens, num_heads, size).transpose(0, 2, 1, 3)
            d_shares = d_out @ v.swapaxes(-1, -2)
            d_scores = shares * (d_shares - np.sum(shares * d_shares, axis=-1, keepdims=True)) / root
            parts = np.stack((d_scores @ k, d_scores.swapaxes(-1, -2) @ q, shares.swapaxes(-1, -2) @ d_out))
            return parts.transpose(1, 3, 0, 2, 4).reshape(qkv.shape)

        return (shares @ v).transpose(0, 2, 1, 3).reshape(batch, tokens, -1), back

    return step


def softmax(x: Array) -> Array:
    """``exp(x)`` over its sum along the last axis, taken from the largest so that nothing overflows."""
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)
