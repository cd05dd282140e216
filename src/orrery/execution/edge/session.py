"""A session of frames over a link whose rate changes: one cut throughout, or cuts that follow the link.

    delay of frame k with cut i = fixed[i] + mean_bytes[i] / rate[k]

Following picks a cut for each frame. Cuts of one network whose encoders share their weights (slimmable ones) change
between frames for nothing; encoders of their own are read from storage first, and the frame waits for it:

    reload = bytes of the new head / storage rate

Where a limit is set the cut of the best quality that keeps it is picked, and the quickest where none does. Quality
ranks as the caller says: a wider bottleneck loses less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from orrery.execution.edge.cuts import Cut

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watts:
    """Power of the device in each of its states."""

    busy_w: float
    sending_w: float
    idle_w: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frames:
    """Inputs of a session: the link's rate at each, and what holds for all of them."""

    link_bytes_per_s: Floats
    way_s: float
    watts: Watts
    limit_s: float = inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A session under one way of choosing cuts; means are over frames."""

    name: str
    mean_s: float
    p95_s: float
    in_time_frac: float  # frames within the limit; 1 where there is none
    mean_energy_j: float  # of the device, waiting for the link and the server included
    num_switches: int
    shares: tuple[tuple[str, float], ...]  # of frames, by cut


def sampled(times_s: Floats, values: Floats, at_s: Floats) -> Floats:
    """Values of a piecewise constant signal; each holds until the next, and the first before itself."""
    return values[np.maximum(np.searchsorted(times_s, at_s, side="right") - 1, 0)]


def delays_s(cuts: Sequence[Cut], frames: Frames) -> Floats:
    """(frames, cuts): from input to answer."""
    fixed = np.array([c.fixed_s(frames.way_s) for c in cuts])
    sent = np.array([c.mean_bytes for c in cuts])
    return fixed + sent / frames.link_bytes_per_s[:, None]


def followed(delays: Floats, quality: Floats, limit_s: float = inf) -> NDArray[np.int64]:
    """Index of the cut of each frame: the best quality within the limit, then the quickest."""
    if limit_s == inf:
        return np.argmin(delays, axis=1)
    within = delays <= limit_s
    best = np.where(within, quality, -1.0).max(axis=1, keepdims=True)
    allowed = np.where(within.any(axis=1, keepdims=True), within & (quality == best), True)
    return np.argmin(np.where(allowed, delays, inf), axis=1)


def policy(
    name: str, cuts: Sequence[Cut], picked: NDArray[np.int64], frames: Frames, reload_s: Sequence[float] = ()
) -> Policy:
    """Means over the picked cuts; ``reload_s`` is the time to load each cut's head, nothing where it is empty."""
    rows = np.arange(len(picked))
    switched = np.concatenate([[False], picked[1:] != picked[:-1]])
    waited = np.where(switched, np.array(reload_s)[picked], 0.0) if reload_s else np.zeros(len(picked))
    delay = delays_s(cuts, frames)[rows, picked] + waited
    energy = _energies(cuts, frames)[rows, picked] + frames.watts.busy_w * waited
    counts = np.bincount(picked, minlength=len(cuts))
    shares = tuple((c.name, float(n / len(picked))) for c, n in zip(cuts, counts, strict=True) if n)
    return Policy(
        name=name,
        mean_s=float(delay.mean()),
        p95_s=float(np.quantile(delay, 0.95)),
        in_time_frac=float((delay <= frames.limit_s).mean()),
        mean_energy_j=float(energy.mean()),
        num_switches=int(switched.sum()),
        shares=shares,
    )


def _energies(cuts: Sequence[Cut], frames: Frames) -> Floats:
    """(frames, cuts): what the device draws from input to answer, which is linear in 1 / rate."""
    watts = frames.watts
    endless = np.array([c.energy_j(inf, frames.way_s, watts.busy_w, watts.sending_w, watts.idle_w) for c in cuts])
    sending = np.array([c.mean_bytes * watts.sending_w for c in cuts])
    return endless + sending / frames.link_bytes_per_s[:, None]
