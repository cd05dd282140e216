"""Routing of tokens: expert loads on the busiest rank, drawn many times and averaged.

Steps of a model follow a law of popularity: an expert with the share w of all assignments is chosen by each of the
tokens with probability q = min(1, k w) (what is cut off goes to the others), tokens choose independently, and of T
tokens hit

    distinct experts = sum over experts of 1 - (1 - q)^T

on average: smooth and rising in T, however many experts there are. Ranks hold experts at random, or, with redundant
ones, placed by their popularity (``replicas``); the busiest counts.

Rows of measured tables say how they were drawn, in two laws of their own. ``skew`` > 0 draws every expert's share from
a power law of that exponent, bounded as the public MoE benchmark of AIConfigurator bounds it: on [1, 0.8 tokens] where
there are more assignments than experts, else on [0.01, 2]; shares are scaled to the assignments, rounded, and the rank
with the largest sum is the one that counts. ``skew`` = RANDOM lets every token pick its experts at random, all alike
(binomial loads).
"""

from collections.abc import Callable
from functools import lru_cache
from math import floor
from typing import cast

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.kernels.moe._kernel import GRID_PER_OCTAVE, NUM_HEIGHTS
from orrery.kernels.moe.replicas import copies_of, placed, spread_over
from orrery.kernels.ops import Popularity

Floats = NDArray[np.float64]

RANDOM = -1.0
"""The ``skew`` that stands for experts picked at random, all alike."""

NUM_DRAWS = 64  # the mean over these is good to about 2 % where loads are most uneven
NUM_OCTAVES = 18  # up to a quarter of a million tokens; beyond, loads grow in proportion
SEED = 1


@lru_cache(maxsize=4096)
def load_table(num_experts: int, experts_per_token: int, ep: int, skew: float) -> Floats:
    """Rows for tokens = 2^(j / GRID_PER_OCTAVE): assignments and distinct experts on the busiest rank, tiles by height.

    Loads never fall as tokens grow: the same draws serve every row, and what rounding undoes is put back.
    """
    generator = np.random.default_rng(SEED)
    uniform = np.sort(generator.random((NUM_DRAWS, num_experts)), axis=1)[:, ::-1]
    places = generator.permuted(np.tile(np.arange(num_experts), (NUM_DRAWS, 1)), axis=1)
    rows: list[Floats] = []
    for step in range(NUM_OCTAVES * GRID_PER_OCTAVE + 1):
        tokens = 2.0 ** (step / GRID_PER_OCTAVE)
        if skew == RANDOM:
            loads = _random(tokens, num_experts, experts_per_token)
        else:
            loads = np.take_along_axis(_power_law(uniform, tokens, experts_per_token, skew), places, axis=1)
        rows.append(_busiest(loads, min(ep, num_experts)))
    return np.maximum.accumulate(np.array(rows), axis=0)


def _random(tokens: float, num_experts: int, experts_per_token: int) -> Floats:
    generator = np.random.default_rng(SEED)
    share = min(1.0, experts_per_token / num_experts)
    return generator.binomial(round(tokens), share, (NUM_DRAWS, num_experts)).astype(np.float64)


def _power_law(uniform: Floats, tokens: float, experts_per_token: int, skew: float) -> Floats:
    """Loads of all experts, largest first, a draw a line; no expert gets more than every token once."""
    num_experts = uniform.shape[1]
    assignments = tokens * experts_per_token
    low, high = (1.0, 0.8 * tokens) if assignments > num_experts and tokens > 2.0 else (0.01, 2.0)
    power = 1.0 - skew
    start, end = float(low**power), float(high**power)
    shares: Floats = low * np.power(high / low, uniform)
    if power != 0.0:
        shares = np.power(start + (end - start) * uniform, 1.0 / power)
    loads = cast(Floats, np.round(shares / np.sum(shares, axis=1, keepdims=True) * assignments))
    missing = cast(Floats, np.round(assignments - np.sum(loads, axis=1, keepdims=True)))
    loads += _shared_out(np.maximum(missing, 0.0), np.zeros_like(missing), num_experts)
    loads[:, :1] = np.maximum(loads[:, :1] + np.minimum(missing, 0.0), 0.0)
    spilled = np.sum(np.maximum(loads - tokens, 0.0), axis=1, keepdims=True)
    full = np.sum(loads >= tokens, axis=1, keepdims=True).astype(np.float64)
    loads = np.minimum(loads, tokens)
    return np.minimum(loads + _shared_out(spilled, full, num_experts), tokens)


def _shared_out(amount: Floats, first: Floats, num_experts: int) -> Floats:
    """``amount`` assignments a draw, one by one from expert ``first`` on, round and round."""
    place = np.arange(num_experts) - first
    takers = np.maximum(num_experts - first, 1.0)
    return np.where(place >= 0, np.floor(amount / takers) + (place < amount % takers), 0.0)


def _busiest(loads: Floats, ep: int) -> Floats:
    """Means over draws for the rank with the most assignments."""
    draws, num_experts = loads.shape
    each = num_experts // ep
    ranks = loads[:, : each * ep].reshape(draws, ep, each)
    busiest = ranks[np.arange(draws), ranks.sum(axis=2).argmax(axis=1)]
    tiles = [np.ceil(busiest / (8 * 2**i)).sum(axis=1).mean() for i in range(NUM_HEIGHTS)]
    return np.array([max(busiest.sum(axis=1).mean(), 1.0), max((busiest > 0).sum(axis=1).mean(), 1.0), *tiles])


@lru_cache(maxsize=1024)
def popular_table(
    num_experts: int, experts_per_token: int, ep: int, popularity: Popularity, num_redundant: int = 0
) -> Floats:
    """The same rows as ``load_table`` by a law of popularity; the distinct experts of a single rank are exact."""
    if popularity.layers:
        return layered_table(num_experts, experts_per_token, ep, popularity, num_redundant)
    chosen = chosen_fracs(num_experts, experts_per_token, popularity)
    ep = min(ep, num_experts + num_redundant)
    generator = np.random.default_rng(SEED)
    places = generator.permuted(np.tile(np.arange(num_experts), (NUM_DRAWS, 1)), axis=1)
    fixed = placed(chosen, copies_of(chosen, num_redundant), ep) if num_redundant else None
    drawn = np.zeros((NUM_DRAWS, num_experts))

    def loads(more: int) -> Floats:
        nonlocal drawn
        drawn += generator.binomial(more, chosen, drawn.shape)
        return np.take_along_axis(drawn, places, axis=1) if fixed is None else spread_over(drawn, fixed)

    return _grown(loads, chosen[np.newaxis], experts_per_token, ep)


def layered_table(
    num_experts: int, experts_per_token: int, ep: int, popularity: Popularity, num_redundant: int = 0
) -> Floats:
    """The same rows where every layer has shares and a placement of its own: draws go round the layers.

    With redundant experts each layer's copies are placed by its own shares, and ``ranks`` are not used.
    """
    if wrong := next((len(row) for row in popularity.layers if len(row) != num_experts), 0):
        raise OutOfRange(f"expert loads: {wrong} shares a layer for {num_experts} experts; write one for each expert.")
    ep, layers = min(ep, num_experts + num_redundant), len(popularity.layers)
    by_layer = np.array([chosen_by(np.array(row), experts_per_token) for row in popularity.layers])
    of_draw = np.arange(layers * -(-NUM_DRAWS // layers)) % layers
    chosen, places = by_layer[of_draw], _places(popularity, num_experts)[of_draw]
    copies = [placed(row, copies_of(row, num_redundant), ep) for row in by_layer] if num_redundant else []
    generator = np.random.default_rng(SEED)
    drawn = np.zeros(chosen.shape)

    def loads(more: int) -> Floats:
        nonlocal drawn
        drawn += generator.binomial(more, chosen)
        return _copied(drawn, copies, of_draw) if copies else np.take_along_axis(drawn, places, axis=1)

    return _grown(loads, by_layer, experts_per_token, ep)


def _grown(loads: Callable[[int], Floats], by_layer: Floats, experts_per_token: int, ep: int) -> Floats:
    """Rows for ever more tokens: ``loads`` adds so many tokens to those drawn before and says what every place holds.

    Between whole numbers of tokens rows are straight lines. ``by_layer``: the probabilities that are drawn from, by
    which the assignments and the distinct experts of a single rank are exact.
    """
    known: dict[int, Floats] = {0: np.zeros(2 + NUM_HEIGHTS)}
    rows: list[Floats] = []
    at = 0
    for step in range(NUM_OCTAVES * GRID_PER_OCTAVE + 1):
        tokens = 2.0 ** (step / GRID_PER_OCTAVE)
        below = floor(tokens)
        for whole in (below, below + 1):
            if whole not in known:
                at, known[whole] = whole, _busiest(loads(whole - at), ep)
        share = tokens - below
        row = (1.0 - share) * known[below] + share * known[below + 1]
        row[0] = max(row[0], tokens * experts_per_token / ep)
        if ep == 1:
            row[0] = tokens * experts_per_token
            row[1] = float(np.sum(1.0 - (1.0 - by_layer) ** tokens)) / len(by_layer)
        rows.append(row)
    return np.maximum.accumulate(np.array(rows), axis=0)


def _places(popularity: Popularity, num_experts: int) -> NDArray[np.int64]:
    """The expert of every place, rank after rank, by layer."""
    if not popularity.ranks:
        return np.tile(np.arange(num_experts), (len(popularity.layers), 1))
    return np.argsort(np.array(popularity.ranks), axis=1, kind="stable")


def _copied(drawn: Floats, copies: list[NDArray[np.int64]], of_draw: NDArray[np.int64]) -> Floats:
    """Tokens of every place of each draw's own layer."""
    held = np.empty((len(drawn), len(copies[0])))
    for layer, places in enumerate(copies):
        mine = of_draw == layer
        held[mine] = spread_over(drawn[mine], places)
    return held


@lru_cache(maxsize=1024)
def chosen_fracs(num_experts: int, experts_per_token: int, popularity: Popularity) -> Floats:
    """Probability that a token chooses each expert, most popular first: they add up to ``experts_per_token``."""
    if popularity.shares and len(popularity.shares) != num_experts:
        raise OutOfRange(
            f"expert loads: {len(popularity.shares)} shares for {num_experts} experts; write one for each expert."
        )
    shares = np.sort(np.array(popularity.shares))[::-1] if popularity.shares else _by_rank(num_experts, popularity)
    return chosen_by(shares, experts_per_token)


def chosen_by(shares: Floats, experts_per_token: int) -> Floats:
    """Probability that a token chooses each expert by their shares of all assignments, in the order of the shares."""
    num_experts = len(shares)
    num_chosen = min(experts_per_token, num_experts)
    chosen = num_chosen * shares / shares.sum()
    while (chosen > 1.0).any():
        full = chosen >= 1.0
        rest = shares[~full].sum()
        even = np.full(num_experts, (num_chosen - full.sum()) / max(1, (~full).sum()))
        chosen = np.where(full, 1.0, shares * (num_chosen - full.sum()) / rest if rest > 0 else even)
    return chosen


def _by_rank(num_experts: int, popularity: Popularity) -> Floats:
    return np.arange(1.0, num_experts + 1.0) ** -popularity.exponent
