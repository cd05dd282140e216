"""A small language model in stages of residual blocks, trained for real: what a lost stage costs is measured on it.

A token is told from the two before it. Their embeddings add up to the stream h; every block adds to it

    h <- h + relu(rms(h) W1) W2,   rms(h) = h / sqrt(mean h^2)

and the next token's logits are rms(h) U. Stages hold equally many blocks; the embeddings and U stand apart, as they do
in the pipelines that are modelled [checkfree-2025]. Gradients are worked out by hand, and Adam [kingma-2014] makes the
steps. The text is drawn from a random table of next tokens, so there is as much of it as is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.engine.streams import stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALL = 1e-8
"""Under roots and quotients."""

BETAS = 0.9, 0.999
"""Decay rates of Adam's two means, as its authors propose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of the model and of a step's batch."""

    num_stages: int = 6
    blocks_per_stage: int = 1
    hidden_size: int = 16
    ffn_size: int = 32
    vocab_size: int = 16
    num_batch: int = 64


class Text:
    """A source whose next token depends on the last two: a table of random logits, drawn once."""

    def __init__(self, shape: Shape, seed: int) -> None:
        draws, size = stream(seed, "recovery/text"), shape.vocab_size
        logits = 2.0 * draws.standard_normal((size, size, size))
        odds = np.exp(logits - logits.max(axis=2, keepdims=True))
        self.bounds: Floats = np.cumsum(odds / odds.sum(axis=2, keepdims=True), axis=2)
        self.draws, self.size = stream(seed, "recovery/batches"), size

    def batch(self, count: int) -> tuple[Ints, Ints]:
        """(count, 2) contexts and (count,) next tokens."""
        context = self.draws.integers(0, self.size, (count, 2))
        bounds = self.bounds[context[:, 0], context[:, 1]]
        return context, (bounds < self.draws.random((count, 1))).sum(axis=1).clip(max=self.size - 1)


STAGED = ("up", "down")
"""Parameters that belong to stages, along their first axis."""


class Model:
    """Parameters by name, and the optimizer's means and steps beside them; stages have learning rates of their own."""

    def __init__(self, shape: Shape, seed: int, learning_rate: float = 3e-3) -> None:
        draws, hidden = stream(seed, "recovery/weights"), shape.hidden_size
        stages = (shape.num_stages, shape.blocks_per_stage)
        blocks = shape.num_stages * shape.blocks_per_stage
        self.shape, self.learning_rate = shape, learning_rate
        self.weights: dict[str, Floats] = {
            "embedding": draws.standard_normal((2, shape.vocab_size, hidden)),
            "up": draws.standard_normal((*stages, hidden, shape.ffn_size)) * np.sqrt(2.0 / hidden),
            "down": draws.standard_normal((*stages, shape.ffn_size, hidden)) / np.sqrt(shape.ffn_size * blocks),
            "head": draws.standard_normal((hidden, shape.vocab_size)) / np.sqrt(hidden),
        }
        self.means = {name: np.zeros_like(w) for name, w in self.weights.items()}
        self.squares = {name: np.zeros_like(w) for name, w in self.weights.items()}
        self.stage_steps = np.zeros(shape.num_stages)
        self.stage_rate_ratio = np.ones(shape.num_stages)
        self.gradient_squares = np.ones(shape.num_stages)
        self.steps = 0

    def copy(self) -> "Model":
        """A model that goes on alone from here."""
        twin = object.__new__(Model)
        twin.shape, twin.learning_rate, twin.steps = self.shape, self.learning_rate, self.steps
        twin.weights, twin.means, twin.squares = (
            {name: value.copy() for name, value in table.items()} for table in (self.weights, self.means, self.squares)
        )
        twin.stage_steps, twin.stage_rate_ratio = self.stage_steps.copy(), self.stage_rate_ratio.copy()
        twin.gradient_squares = self.gradient_squares.copy()
        return twin

    def loss(self, context: Ints, target: Ints) -> float:
        """Mean of -log(odds of the token that came)."""
        log_odds, _ = self._forward(context, range(self.shape.num_stages))
        return float(-log_odds[np.arange(target.size), target].mean())

    def step(self, context: Ints, target: Ints, *, swaps_ends: bool = False) -> None:
        """One step of Adam. ``swaps_ends``: for half the batch the first two and the last two stages change places."""
        gradients = {name: np.zeros_like(w) for name, w in self.weights.items()}
        order = list(range(self.shape.num_stages))
        if swaps_ends:
            half = target.size // 2
            self._backward(context[:half], target[:half], order, target.size, gradients)
            swapped = [order[1], order[0], *order[2:-2], order[-1], order[-2]]
            self._backward(context[half:], target[half:], swapped, target.size, gradients)
        else:
            self._backward(context, target, order, target.size, gradients)
        self.gradient_squares = np.sum([(gradients[n] ** 2).sum(axis=(1, 2, 3)) for n in STAGED], axis=0)
        self._adam(gradients)

    def _forward(self, context: Ints, order: Sequence[int]) -> "tuple[Floats, list[_Kept]]":
        """Log odds, and what the way back needs: of each block in turn, and of the head last."""
        tables, saved = self.weights["embedding"], list[_Kept]()
        h = tables[0][context[:, 0]] + tables[1][context[:, 1]]
        for stage in order:
            for block in range(self.shape.blocks_per_stage):
                normed, scale = _rms(h)
                inner = np.maximum(normed @ self.weights["up"][stage, block], 0.0)
                saved.append((stage, block, normed, scale, inner))
                h = h + inner @ self.weights["down"][stage, block]
        normed, scale = _rms(h)
        saved.append((-1, -1, normed, scale, normed))
        logits = normed @ self.weights["head"]
        logits -= logits.max(axis=1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)), saved

    def _backward(self, context: Ints, target: Ints, order: list[int], count: int, into: dict[str, Floats]) -> None:
        """Adds the gradient of the sum of losses over ``count``."""
        log_odds, saved = self._forward(context, order)
        back = np.exp(log_odds)
        back[np.arange(target.size), target] -= 1.0
        back /= count
        _, _, normed, scale, _ = saved.pop()
        into["head"] += normed.T @ back
        back = _rms_back(normed, scale, back @ self.weights["head"].T)
        for stage, block, normed, scale, inner in reversed(saved):
            into["down"][stage, block] += inner.T @ back
            inward = (back @ self.weights["down"][stage, block].T) * (inner > 0.0)
            into["up"][stage, block] += normed.T @ inward
            back = back + _rms_back(normed, scale, inward @ self.weights["up"][stage, block].T)
        for place in (0, 1):
            np.add.at(into["embedding"][place], context[:, place], back)

    def _adam(self, gradients: dict[str, Floats]) -> None:
        self.steps += 1
        self.stage_steps += 1.0
        for name, gradient in gradients.items():
            is_staged = name in STAGED
            steps = self.stage_steps[:, None, None, None] if is_staged else np.array(float(self.steps))
            rate = self.learning_rate * (self.stage_rate_ratio[:, None, None, None] if is_staged else 1.0)
            mean, square = self.means[name], self.squares[name]
            mean += (1.0 - BETAS[0]) * (gradient - mean)
            square += (1.0 - BETAS[1]) * (gradient**2 - square)
            unbiased = mean / (1.0 - BETAS[0] ** steps), square / (1.0 - BETAS[1] ** steps)
            self.weights[name] -= rate * unbiased[0] / (np.sqrt(unbiased[1]) + SMALL)


_Kept = tuple[int, int, Floats, Floats, Floats]
"""Stage, block, normed input, its scale, inner activations."""


def _rms(h: Floats) -> tuple[Floats, Floats]:
    """h over the root of its mean square, and that root."""
    scale = np.sqrt(np.einsum("ij,ij->i", h, h) / h.shape[1] + SMALL)[:, None]
    return h / scale, scale


def _rms_back(normed: Floats, scale: Floats, back: Floats) -> Floats:
    """Gradient to h of what comes back to rms(h)."""
    along = np.einsum("ij,ij->i", back, normed)[:, None] / normed.shape[1]
    return (back - normed * along) / scale
