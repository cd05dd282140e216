"""Attention over a few tokens, alone and in the networks of two papers; parameters are named arrays.

attention  x + softmax(x Q (x K)^T / sqrt(d) + mask) x V
grouped    a token for every feature; within their groups features attend to each other and are averaged to one
           token a group; groups attend to each other; a perceptron reads them all [ncpp-perfcastdb]
dual       one branch has a token for every second, the other a token for every metric; each attends along its own
           axis; a perceptron reads rectified sums of both and a weighted sum of the metrics [cloudformer]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.predictors.learn.extra import learning_package
from orrery.predictors.learn.network import Array, Perceptron

Values = Mapping[str, Any]

APART = -1e9
"""Addition to the logits of tokens that do not see each other."""


def start_attention(rng: np.random.Generator, name: str, width: int) -> dict[str, Array]:
    """Queries, keys and values of one layer called ``name``."""
    return {f"{name}.{part}": normal(rng, width, width) for part in ("query", "key", "value")}


def attend(parameters: Values, name: str, x: Any, mask: Any = 0.0) -> Any:
    """Tokens (rows, tokens, width) that have looked at each other, added to what they were."""
    anp = learning_package("autograd.numpy")
    query, key, value = (through(x, parameters[f"{name}.{part}"]) for part in ("query", "key", "value"))
    logits = anp.matmul(query, anp.swapaxes(key, 1, 2)) * (x.shape[-1] ** -0.5) + mask
    weights = anp.exp(logits - anp.max(logits, axis=-1, keepdims=True))
    return x + anp.matmul(weights / anp.sum(weights, axis=-1, keepdims=True), value)


def through(x: Any, weights: Any) -> Any:
    """The last axis of three through a matrix, as one product of two matrices."""
    anp = learning_package("autograd.numpy")
    return anp.reshape(anp.matmul(anp.reshape(x, (-1, x.shape[-1])), weights), (x.shape[0], x.shape[1], -1))


def normal(rng: np.random.Generator, inputs: int, outputs: int) -> Array:
    """Random weights of variance 1 / inputs."""
    return (rng.standard_normal((inputs, outputs)) / np.sqrt(inputs)).astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedAttention:
    """Features of one row, known or not, by group; several outputs."""

    groups: tuple[int, ...]  # the group of every feature, counted from 0
    width: int
    hidden: int
    num_outputs: int

    @property
    def _head(self) -> Perceptron:
        return Perceptron(widths=((max(self.groups) + 1) * self.width, self.hidden, self.num_outputs))

    @property
    def _members(self) -> Array:
        """(groups, features): one over the size of the group for its members."""
        is_member = np.arange(max(self.groups) + 1)[:, None] == np.array(self.groups)[None, :]
        return (is_member / is_member.sum(axis=1, keepdims=True)).astype(np.float32)

    def start(self, rng: np.random.Generator) -> dict[str, Array]:
        """Random parameters."""
        features = len(self.groups)
        return {
            "embed": rng.standard_normal((features, self.width)).astype(np.float32),
            "known": normal(rng, features, self.width),
            "missing": normal(rng, features, self.width),
            **start_attention(rng, "within", self.width),
            **start_attention(rng, "across", self.width),
            **self._head.start(rng),
        }

    def __call__(self, parameters: Values, x: Any) -> Any:
        """Outputs for rows of features followed by one flag a feature: whether it is missing."""
        anp = learning_package("autograd.numpy")
        value, missing = x[:, : len(self.groups), None], x[:, len(self.groups) :, None]
        tokens = value * parameters["embed"] + (1.0 - missing) * parameters["known"] + missing * parameters["missing"]
        mask = np.where(np.equal.outer(self.groups, self.groups), 0.0, APART).astype(np.float32)
        groups = anp.matmul(self._members, attend(parameters, "within", tokens, mask))
        seen = attend(parameters, "across", groups)
        return self._head(parameters, anp.reshape(seen, (seen.shape[0], -1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DualBranch:
    """A run of many metrics, second by second; several outputs."""

    num_seconds: int
    num_metrics: int
    width: int
    hidden: int
    num_outputs: int

    @property
    def _head(self) -> Perceptron:
        return Perceptron(widths=(3 * self.width, self.hidden, self.num_outputs))

    def start(self, rng: np.random.Generator) -> dict[str, Array]:
        """Random parameters."""
        return {
            "second": normal(rng, self.num_metrics, self.width),
            "metric": normal(rng, self.num_seconds, self.width),
            "place": normal(rng, self.num_seconds, self.width),
            "name": normal(rng, self.num_metrics, self.width),
            "weight": normal(rng, 1, self.num_metrics).T,
            **start_attention(rng, "time", self.width),
            **start_attention(rng, "metrics", self.width),
            **self._head.start(rng),
        }

    def __call__(self, parameters: Values, x: Any) -> Any:
        """Outputs for (runs, seconds, metrics)."""
        anp = learning_package("autograd.numpy")
        seconds = through(x, parameters["second"]) + parameters["place"]
        metrics = through(anp.swapaxes(x, 1, 2), parameters["metric"]) + parameters["name"]
        seconds, metrics = attend(parameters, "time", seconds), attend(parameters, "metrics", metrics)
        root = np.float32(self.num_metrics**-0.5)
        pooled = (
            anp.mean(anp.maximum(seconds, 0), axis=1),
            anp.sum(anp.maximum(metrics, 0), axis=1) * root,
            anp.sum(metrics * parameters["weight"], axis=1) * root,
        )
        return self._head(parameters, anp.concatenate(pooled, axis=1))
