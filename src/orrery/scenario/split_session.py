"""A split network over a session: a cut throughout beside cuts that follow the link, with the battery that is left."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.edge.cuts import Cut
from orrery.execution.edge.placement import DEVICE, SERVER
from orrery.execution.edge.session import Floats, Frames, Policy, Watts, delays_s, followed, policy, sampled
from orrery.models.networks import Network
from orrery.scenario.link_trace import link_trace

MAX_FRAMES = 200_000
LOSSLESS = 1e18
"""Quality of a cut that loses nothing, above any number of channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Ways of choosing cuts over the frames of a trace; ``battery_s``: what the battery lasts at that pace."""

    num_frames: int
    duration_s: float
    policies: tuple[Policy, ...]
    battery_s: tuple[float | None, ...]  # by policy; None where no battery is known


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInputs:
    """Inputs of a session beside the cuts."""

    trace: str
    seed: int
    frame_s: float  # from one input to the next
    limit_s: float  # inf: none
    way_s: float
    watts: Watts
    storage_bytes_per_s: float  # 0: encoders share their weights, nothing is loaded
    battery_j: float  # 0: none is known


def session(cuts: Sequence[Cut], network: Network, element_bytes: float, inputs: SessionInputs) -> Session:
    """The best single cut, both extremes, and cuts that follow the link, over the frames of the trace."""
    times, rates, end_s = link_trace(inputs.trace, inputs.seed)
    num_frames = max(1, int(end_s / inputs.frame_s))
    if num_frames > MAX_FRAMES:
        raise ScenarioError(
            f"frames_per_s: {num_frames:,} frames over {end_s:g} s; at most {MAX_FRAMES:,}: write a lower rate."
        )
    frames = Frames(
        link_bytes_per_s=sampled(times, rates, np.arange(num_frames, dtype=np.float64) * inputs.frame_s),
        way_s=inputs.way_s,
        watts=inputs.watts,
        limit_s=inputs.limit_s,
    )
    delays = delays_s(cuts, frames)
    quality = np.array([_quality(cut) for cut in cuts])
    found = [
        policy(f"always {cuts[i].name}", cuts, np.full(num_frames, i), frames)
        for i in _throughout(cuts, delays, quality, inputs.limit_s)
    ]
    picked = followed(delays, quality, inputs.limit_s)
    found.append(policy("following the link", cuts, picked, frames))
    if inputs.storage_bytes_per_s:
        loads = [bytes_ / inputs.storage_bytes_per_s for bytes_ in head_bytes(cuts, network, element_bytes)]
        found.append(policy("following, each encoder loaded", cuts, picked, frames, loads))
    lasts = tuple(_battery_s(one, inputs, end_s / num_frames) for one in found)
    return Session(num_frames=num_frames, duration_s=end_s, policies=tuple(found), battery_s=lasts)


def _throughout(cuts: Sequence[Cut], delays: Floats, quality: Floats, limit_s: float) -> list[int]:
    """The cut that is best for the whole session, then both extremes."""
    in_time = (delays <= limit_s).mean(axis=0)
    best = max(range(len(cuts)), key=lambda i: (in_time[i], quality[i] if limit_s < inf else 0, -delays[:, i].mean()))
    ends = [i for i, cut in enumerate(cuts) if cut.name in (SERVER, DEVICE)]
    return list(dict.fromkeys([best, *ends]))


def _quality(cut: Cut) -> float:
    """Channels of a bottleneck; a cut without one loses nothing."""
    _, _, channels = cut.name.partition(":")
    return float(channels) if channels else LOSSLESS


def head_bytes(cuts: Sequence[Cut], network: Network, element_bytes: float) -> list[float]:
    """Weights that the device holds for each cut: its units, and the encoder of a bottleneck."""
    index = {unit.name: i for i, unit in enumerate(network.units)}
    held = [0]
    for unit in network.units:
        held.append(held[-1] + unit.num_weights)
    found = list[float]()
    for cut in cuts:
        after, _, channels = cut.name.partition(":")
        i = index.get(after, -1)
        encoder = network.units[i].squeezed(int(channels)).encoder.num_weights if channels else 0
        elements = 0 if after == SERVER else held[i + 1] + encoder if i >= 0 else held[-1]
        found.append(element_bytes * elements)
    return found


def _battery_s(found: Policy, inputs: SessionInputs, frame_s: float) -> float | None:
    """How long the battery lasts: frames draw their energy, and the device idles between them."""
    if not inputs.battery_j:
        return None
    idle_s = max(0.0, frame_s - found.mean_s)
    mean_w = (found.mean_energy_j + inputs.watts.idle_w * idle_s) / max(frame_s, found.mean_s)
    return inputs.battery_j / mean_w
