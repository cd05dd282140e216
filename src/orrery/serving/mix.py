"""The mix of steps in which a scheduler settles, counted in steps: nothing here knows how long a step takes.

Of ``slots`` requests each is away for ``away`` steps, has its prompt computed, decodes ``steps`` tokens, one a step,
and comes back. Prompts are served first come, first served from what the token budget B leaves beside D decodes::

    x = (slots - L) / (steps + own + away),  D = steps x          prompts and decodes a step, on average
    m = (B - D) / prompt                                          prompts that a step has room for

L prompts wait on average. While L of them do, (slots - L) / life come to the queue each step and m leave it: L is
pulled to the level l* at which both are equal, and chance (Poisson, so of variance x) pushes it about. Its law is a
normal one around l*, cut off at 0: where prompts are few its mean is that of the M/D/1 queue, rho / (2 (1 - rho)),
and where they fill every step it is l* itself. What is left over at the end of a step is less, since a step has room
for several prompts: M/D/c, for which Sakasegawa gives rho^sqrt(2 (c + 1)) / (2 (1 - rho)).

Requests do not march in lock step here; the slots that start at once are told apart in ``online``.
"""

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np

from orrery.execution.batch import Floats

SPREAD_FRAC = 0.1
"""Half-width of lengths around their mean within one kind of request: evenly, within a tenth of it. Services see
lengths that differ; only a benchmark of equal ones marches in step.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mix:
    """Contents of a step; arrays with one entry for each number of slots."""

    decoding: Floats
    prompts: Floats  # computed a step, on average
    load: Floats  # of the room that steps have for prompts
    waiting: Floats  # prompts left over when a step ends
    own_steps: Floats  # of a prompt that finds none ahead
    wait_steps: Floats  # behind prompts ahead
    room_tokens: Floats  # for prompts in a step
    chunks: Floats  # (2, …): a small and a large chunk that stand for the chunks of all steps with prompts
    shares: Floats  # (2, …): of all steps that hold either
    dense: Floats  # how many times closer together prompts come than evenly over a life


def mixed(
    slots: Floats,
    prompt: Floats | float,
    steps: float,
    budget: float,
    away: Floats | float,
    spread_frac: float = SPREAD_FRAC,
    rounds: Floats | float = np.inf,
    own_frac: Floats | float = 1.0,
    gathered: Floats | float = 0.0,
) -> Mix:
    """Prompts and decodes share steps; chunks fill what the decodes leave of the budget.

    ``own_frac`` is the part of a life that goes with a request's own lengths: the front end and others' prompts do not.
    Ends of ``gathered`` steps come back at once (see ``waves_of``).
    """
    start = _settle(slots, prompt, steps, budget, steps + 1.0 + np.asarray(away), spread_frac)
    life = steps + start.own_steps + away
    at = _settle(slots, prompt, steps, budget, life, spread_frac)
    load, size = at.load, at.size
    capacity: Floats = 1.0 / size
    waves = waves_of(load, spread_frac * own_frac, rounds, gathered / life, 1.0 / life)
    dense = waves.dense
    crowd = np.minimum(load * dense, 1.0 - 1e-6)
    critical = 0.4 * np.sqrt(np.maximum(slots - 1, 0.0))
    late = np.maximum(slots - 1, 0.0) / 2 * np.maximum(1.0 - 1.0 / np.maximum(load * dense, 1e-12), 0.0)
    clump = np.sqrt(np.minimum(crowd / (2 * (1 - crowd)), critical) ** 2 + late**2)
    clump /= np.where(capacity >= 1, np.maximum(np.minimum(dense, 1.0 / np.maximum(load, 1e-12)), 1.0), 1.0)
    clump = np.where(dense > 1, clump, 0.0)
    cut = np.where(capacity >= 1, crowd ** (np.sqrt(2 * (capacity + 1)) - 1), 1.0)
    waiting = np.minimum(np.maximum(at.level + at.excess * cut, clump * cut), np.maximum(slots - 1, 0.0))
    rate = np.minimum(
        (slots - np.where(capacity >= 1, waiting, load * waiting)) / (steps + at.own_steps + away), capacity
    )
    wait_steps = np.where(capacity >= 1, waiting / rate, waiting * size)
    chunks, shares = _chunks(slots, rate, waves, capacity, load, at.alone)
    return Mix(
        decoding=steps * rate,
        prompts=rate,
        load=load,
        waiting=waiting,
        own_steps=at.own_steps,
        wait_steps=wait_steps,
        room_tokens=prompt / size,
        chunks=chunks * prompt,
        shares=shares,
        dense=dense,
    )


def apart(
    slots: Floats,
    prompt: Floats | float,
    steps: float,
    budget: float,
    away: Floats | float,
    spread_frac: float = SPREAD_FRAC,
    rounds: Floats | float = np.inf,
    own_frac: Floats | float = 1.0,
    gathered: Floats | float = 0.0,
    interval: float = 1.0,
) -> Mix:
    """Prompts in steps of their own, before the next decode step: all that came since the scheduler last looked for new
    ones, ``interval`` decode steps before, however many.

    Steps are those that decode; ``chunks`` are the prompt tokens computed between two of them.
    """
    life = np.maximum(steps + away, 1.0)
    rate = slots / life
    none, one = np.zeros_like(slots), np.ones_like(slots)
    seen = rate * interval  # at one look
    most = np.maximum(slots / np.maximum(seen, 1e-12), 1.0)
    waves = waves_of(none, spread_frac * own_frac, rounds, gathered / life, 1.0 / life)
    dense = np.minimum(waves.dense, most)
    chunks, shares = _chunks(slots, seen, waves, slots, none, one)
    shares = shares / interval
    return Mix(
        decoding=steps * rate,
        prompts=rate,
        load=none,
        waiting=none,
        own_steps=one,
        wait_steps=none,
        room_tokens=one * budget,
        chunks=chunks * prompt,
        shares=shares,
        dense=dense,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waves:
    """Density of prompts over a life, which is not even: all slots start at once. Arrays of (moments, …)."""

    dense: Floats  # how many times closer together prompts come than evenly, on average
    densities: Floats  # the same at some moments of a life
    weights: Floats  # shares of a run's steps that these stand for; no prompts come in the rest


MOMENTS, WAVE_ROUNDS = 8, 4
"""Steps of a wave, and rounds of a run while waves spread, that stand for all."""


def waves_of(
    load: Floats,
    spread_frac: Floats | float,
    rounds: Floats | float,
    gather: Floats | float = 0.0,
    least: Floats | float = 0.0,
) -> Waves:
    """How many times closer together prompts come than evenly over a life, on average over the rounds of a run, and at
    some moments.

    All slots start at once. Their prompts are computed over a share ``load`` of a life, and each round adds the spread
    of lengths (a width w = 2 spread_frac, added in squares) until they come at any time.

    But the front end gathers them: what ended in a share ``gather`` (g) of a life finds one long step of prompts under
    way and comes behind it, at once. A width x of starts is one of sqrt(x^2 + w^2) - g the next time, so that it grows
    no further than to (w^2 - g^2) / 2g, nor falls below that of the prompts themselves, or of a step (``least``).

    What adds up in squares tends to a normal law, whose deviation is the width over sqrt(12): many slots have prompts
    in its tails as well, in more steps than an even wave of that width takes.
    """
    if np.isinf(rounds).all():  # most questions: prompts come at any time, which one density says
        even = np.ones((1, *load.shape))
        return Waves(dense=even[0], densities=even, weights=even)
    later = np.maximum(np.where(np.isinf(rounds), 0.0, rounds) - 1.0, 1.0) * np.ones_like(load)
    width = np.maximum(2 * spread_frac, 1e-6) ** 2
    start = load * load
    retained = np.maximum((width - gather * gather) / np.maximum(2 * gather, 1e-9), load)
    last = np.clip(np.sqrt(retained * retained + width) - gather, least, 1.0)
    until = np.clip((last * last - start) / width, 0.0, later)  # rounds in which they still move apart
    together = 2 * (np.sqrt(start + width * (until + 0.5)) - np.sqrt(start + width * 0.5)) / width
    mean = (together + (later - until) / last) / later
    spent = np.arange(0.5, WAVE_ROUNDS).reshape(-1, *(1,) * load.ndim) / WAVE_ROUNDS * until + 0.5
    density, shares = _normal(np.clip(np.sqrt(start + width * spent), least, 1.0) / sqrt(12.0))
    flat = (-1, *load.shape)  # then the rounds in which they no longer spread, evenly over the last width
    densities = np.concatenate([density.reshape(flat), (1.0 / last)[None]])
    weights = np.concatenate(
        [(shares * (until / later) / WAVE_ROUNDS).reshape(flat), (last * (1.0 - until / later))[None]]
    )
    endless = np.isinf(rounds) & np.ones_like(densities, dtype=np.bool_)
    return Waves(
        dense=np.where(np.isinf(rounds), 1.0, np.maximum(mean, 1.0)),
        densities=np.where(endless, 1.0, densities),
        weights=np.where(endless, 1.0 / len(densities), weights),
    )


def _normal(deviation: Floats) -> tuple[Floats, Floats]:
    """Densities of a normal wave at ``MOMENTS`` of a life, which meets those before and after it, and the share of a
    life that each stands for."""
    span = np.minimum(4.0 * deviation, 0.5)
    at = np.arange(0.5, MOMENTS).reshape(-1, *(1,) * span.ndim) / MOMENTS * span
    density = sum(np.exp(-0.5 * ((at + turns) / deviation) ** 2) for turns in (-1.0, 0.0, 1.0))
    return density / (2.0 * span * np.mean(density, axis=0)), np.broadcast_to(2.0 * span / MOMENTS, at.shape)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Settled:
    """The queue of prompts at a given length of life."""

    load: Floats
    level: Floats  # to which waiting prompts are pulled; 0 = none
    excess: Floats  # that chance adds
    size: Floats  # of a prompt, in steps
    alone: Floats  # whole steps that it takes alone
    own_steps: Floats


def _settle(
    slots: Floats, prompt: Floats | float, steps: float, budget: float, life: Floats, spread_frac: float
) -> _Settled:
    """The room that decodes leave to prompts, and how many wait for it."""
    load, level, excess = _queue(slots, prompt, steps, budget, life)
    decoding = steps * np.maximum(slots - level, 1e-9) / life
    size: Floats = prompt / np.maximum(budget - decoding, budget * prompt / (prompt + steps) / 2)
    alone = _steps_of(size, spread_frac)
    own: Floats = np.where(size <= 1 - spread_frac, 1.0, (1 - load) * alone + load * np.maximum(size + 0.5, 1.0))
    return _Settled(load=load, level=level, excess=excess, size=size, alone=alone, own_steps=own)


def _queue(
    slots: Floats, prompt: Floats | float, steps: float, budget: float, life: Floats
) -> tuple[Floats, Floats, Floats]:
    """The load, the level to which waiting prompts are pulled (none: 0), and what chance adds to it."""
    per_room = 1.0 + steps / prompt
    fits = budget / prompt * life / per_room  # slots at which as many prompts come as steps have room for
    others = np.maximum(slots - 1.0, 0.0)
    level = others - fits
    spread = np.sqrt(np.maximum(np.minimum(others, fits), 1e-9) / (2 * per_room))
    mean = spread * _cut_normal(level / spread)
    coming = np.maximum(slots - np.maximum(level, 0.0), 1e-9) / life
    load = np.minimum(coming * prompt / np.maximum(budget - coming * steps, 1e-9 * budget), 1.0)
    load = np.where(level >= 0, 1.0, load)
    settled = np.maximum(level, 0.0)
    return load, settled, np.maximum(mean - settled, 0.0)


def _cut_normal(z: Floats) -> Floats:
    """The mean of a unit normal around ``z`` that is cut off below 0 (Mills' ratio by a rational bound, within 2 %)."""
    y = np.abs(z)
    mills = pi / ((pi - 1) * y + np.sqrt(y * y + 2 * pi))
    density = np.exp(-0.5 * y * y) / sqrt(2 * pi)
    return np.where(z < 0, 1 / mills - y, y + density / (1 - density * mills))


def _steps_of(size: Floats, spread_frac: float) -> Floats:
    """Whole steps that a prompt of ``size`` steps takes alone, on average over lengths around its own."""
    if spread_frac <= 0:
        return np.ceil(size)
    low, high = size * (1 - spread_frac), size * (1 + spread_frac)
    return (_ceil_area(high) - _ceil_area(low)) / (high - low)


def _ceil_area(x: Floats) -> Floats:
    """The integral of ceil from 0 to x."""
    whole = np.floor(x)
    return whole * (whole + 1) / 2 + (x - whole) * (whole + 1)


def _chunks(
    slots: Floats, rate: Floats, waves: Waves, capacity: Floats, load: Floats, alone: Floats
) -> tuple[Floats, Floats]:
    """Two chunks, in prompts, with the mean and (where there is room) the variance of those of all steps with prompts.

    Prompts that come in one step are binomial: of ``slots`` requests each comes with the same small chance.
    """
    rates, crowd = np.minimum(rate * waves.densities, capacity), np.minimum(load * waves.densities, 1.0 - 1e-6)
    weights = waves.weights * (rate / np.maximum((waves.weights * rates).sum(axis=0), 1e-12))
    each = np.minimum(rates / slots, 1.0)
    nobody = (1 - each) ** slots
    empty = np.where(
        capacity >= 1,
        nobody * (1 - crowd ** (1.3 * np.sqrt(2 * (np.minimum(capacity, 1e6) + 1)))),
        np.maximum(1 - rates * ((1 - crowd) * alone + crowd / np.minimum(capacity, 1.0)), 0.0),
    )
    busy = np.maximum(1 - empty, np.minimum(rates / capacity, 1.0))
    busy = np.clip((weights * busy).sum(axis=0), 1e-12, 1.0)
    mean = rate / busy
    square = (weights * (rates + rates * rates * np.maximum(1 - 1 / slots, 0.0))).sum(axis=0) / busy
    variance = np.maximum(square - mean * mean, 0.0)
    least = np.where(
        capacity >= 1,
        np.minimum(1.0, mean),
        np.clip(1 - (alone - 1) * np.minimum(capacity, 1.0), 0.05 * np.minimum(capacity, 1.0), mean),
    )
    low = np.maximum(mean - np.sqrt(variance), least)
    gap = np.maximum(mean - low, 1e-9)
    high = np.where(capacity >= 1, np.minimum(mean + variance / gap, capacity), capacity)
    high = np.maximum(high, mean)
    above = np.clip((mean - low) / np.maximum(high - low, 1e-12), 0.0, 1.0)
    return np.stack([low, high]), np.stack([busy * (1 - above), busy * above])
