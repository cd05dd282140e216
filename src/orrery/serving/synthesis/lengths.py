"""How long prompts and answers are: constant, uniform, normal or lognormal, with the mean that was asked for."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError, nearest
from orrery.serving.synthesis.clipped import lognormal_centre, normal_centre

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST_TOKENS = 100_000_000
"""Beyond this a length is a slip, not a request."""

WIDEST_RATIO = 100.0
"""The largest standard deviation over its mean: beyond it the mean hangs on a request in many millions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """A distribution of lengths; whole tokens, at least 1 and at most ``most_tokens``.

    ``uniform`` has a ``range_ratio`` r and lies between mean (1 - r) and mean (1 + r), as ``--random-range-ratio``
    of vLLM's load generator does [vllm]; ``normal`` and ``lognormal`` have a ``std_tokens`` before they are clipped.
    """

    mean_tokens: float
    std_tokens: float = 0.0
    law: str = "lognormal"
    range_ratio: float = 0.0
    most_tokens: int = LONGEST_TOKENS

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            near = nearest(self.law, LAWS)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ScenarioError(f"lengths: there is no law {self.law!r};{hint} write one of {', '.join(LAWS)}.")
        if not 1 <= self.most_tokens <= LONGEST_TOKENS:
            raise ScenarioError(f"lengths: most: got {self.most_tokens}; write 1 to {LONGEST_TOKENS:,} tokens.")
        if not 1 <= self.mean_tokens <= self.most_tokens:
            raise ScenarioError(
                f"lengths: mean: got {self.mean_tokens:g} tokens; write 1 to the most, {self.most_tokens:,}."
            )
        if not 0 <= self.std_tokens <= WIDEST_RATIO * self.mean_tokens:
            raise ScenarioError(
                f"lengths: standard deviation: got {self.std_tokens:g} tokens; write 0 to {WIDEST_RATIO:g} means."
            )
        if not 0 <= self.range_ratio < 1:
            raise ScenarioError(f"lengths: range ratio: got {self.range_ratio:g}; write 0 to below 1.")


def draw(length: Length, count: int, stream: np.random.Generator) -> Ints:
    """``count`` lengths; more of them from the same stream never change the first ones."""
    return whole(LAWS[length.law](length, count, stream), length.most_tokens)


NO_SPREAD = 1e-9
"""Share of the mean: a deviation this small moves no length by a token."""


def whole(drawn: Floats, most: float) -> Ints:
    """Whole lengths between 1 and ``most``."""
    return np.clip(np.rint(drawn), 1, most).astype(np.int64)


def _is_constant(length: Length) -> bool:
    """Whether no whole length but the mean can come out, or the spread is lost in the precision of a float."""
    return length.std_tokens < NO_SPREAD * length.mean_tokens or length.mean_tokens in (1, length.most_tokens)


def _constant(length: Length, count: int, stream: np.random.Generator) -> Floats:
    return np.full(count, length.mean_tokens)


def _uniform(length: Length, count: int, stream: np.random.Generator) -> Floats:
    low = max(math.floor(length.mean_tokens * (1.0 - length.range_ratio)), 1)
    high = math.ceil(length.mean_tokens * (1.0 + length.range_ratio))
    return low + np.floor(stream.random(count) * (high - low + 1))


def _normal(length: Length, count: int, stream: np.random.Generator) -> Floats:
    if _is_constant(length):
        return _constant(length, count, stream)
    centre = normal_centre(length.mean_tokens, length.std_tokens, length.most_tokens)
    return centre + length.std_tokens * stream.standard_normal(count)


def _lognormal(length: Length, count: int, stream: np.random.Generator) -> Floats:
    if _is_constant(length):
        return _constant(length, count, stream)
    sigma = math.sqrt(math.log1p((length.std_tokens / length.mean_tokens) ** 2))
    mu = lognormal_centre(length.mean_tokens, sigma, length.most_tokens)
    return np.exp(mu + sigma * stream.standard_normal(count))


LAWS: dict[str, Callable[[Length, int, np.random.Generator], Floats]] = {
    "constant": _constant,
    "uniform": _uniform,
    "normal": _normal,
    "lognormal": _lognormal,
}
"""Samplers of the laws."""


def fit_lognormal(quantiles: dict[float, float], mean: float) -> tuple[float, float]:
    """(mu, sigma) whose mean is ``mean`` and whose quantiles lie nearest, by least squares of their logarithms.

    The mean decides the load on a server, so it is kept: mu = log(mean) - sigma^2 / 2, and sigma is searched.
    """
    sigma = np.linspace(0.01, 3.0, 1500)
    mu = math.log(mean) - sigma**2 / 2
    z = np.array([NormalDist().inv_cdf(p) for p in quantiles])
    log_quantiles = np.log(np.array(list(quantiles.values())))
    error = ((mu[:, None] + sigma[:, None] * z - log_quantiles) ** 2).sum(axis=1)
    best = int(error.argmin())
    return float(mu[best]), float(sigma[best])


def lognormal_lengths(count: int, mu: float, sigma: float, most: float, stream: np.random.Generator) -> Ints:
    """Whole lognormal lengths between 1 and ``most``."""
    return whole(np.exp(mu + sigma * stream.standard_normal(count)), most)
