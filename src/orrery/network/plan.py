"""The candidates for one collective on one group: each a latency, a slope and a root in the size of the message.

An algorithm that passes S bytes in pieces through a chain of ``steps`` messages of ``step_s`` each, with ``x`` = S
times the slope for the bytes alone, takes ``steps step_s + x + 2 sqrt(pipeline steps step_s x)`` when it cuts the
buffer into the best number of pieces: more pieces fill the chain sooner and pay more messages. ``pipeline_ratio`` in
[0, 1] is how much of that remains after a library's tuning. Sources: [thakur-2005], [sanders-2009] section 2.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from orrery.base.extension_points import ExtensionPoint
from orrery.hardware.device import Device
from orrery.network import techniques
from orrery.network.group import Group
from orrery.network.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One algorithm over one transport: time = latency + slope S + sqrt(root S), and the bare roof of its bytes."""

    name: str
    latency_s: float
    slope_s_per_bytes: float
    root_s2_per_bytes: float
    roof_s_per_bytes: float
    wire_ratio: float  # bytes that a device sends, per byte of message

    def time_s(self, message_bytes: float) -> float:
        """The time for one size."""
        return (
            self.latency_s + self.slope_s_per_bytes * message_bytes + math.sqrt(self.root_s2_per_bytes * message_bytes)
        )


ALGORITHMS = ExtensionPoint(name="network.collective", folder=techniques, noun="collective algorithm")


def candidates(group: Group, device: Device, constants: Mapping[str, float]) -> tuple[Candidate, ...]:
    """Every algorithm that can do it, over every transport that the library was measured with."""
    found: list[Candidate] = []
    crowd = 1.0 if group.has_peer_to_peer else _contention(group, constants)
    for technique in ALGORITHMS.techniques.values():
        traffic: Traffic | None = technique.rule(group)
        for transport in traffic.transports if traffic else ():
            if f"{transport}_rate_frac" in constants and traffic:
                found.append(_candidate(technique.name, traffic, transport, device, constants, crowd))
    return tuple(found)


def undominated(found: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Without the candidates that another beats, or equals, at every size."""

    def coefficients(c: Candidate) -> tuple[float, float, float]:
        return c.latency_s, c.slope_s_per_bytes, c.root_s2_per_bytes

    retained: list[Candidate] = []
    for c in sorted(found, key=coefficients):
        if not any(all(a <= b for a, b in zip(coefficients(k), coefficients(c), strict=True)) for k in retained):
            retained.append(c)
    return tuple(retained)


def _contention(group: Group, constants: Mapping[str, float]) -> float:
    """How many times slower each device's link is when all copies crowd through the host's memory.

    Measured as a power of the devices that share it; 1 with two devices.
    """
    inside = min(group.num_devices, group.per_node)
    return max(inside / 2.0, 1.0) ** constants.get("contention_ratio", 0.0)


def _candidate(
    name: str, traffic: Traffic, transport: str, device: Device, c: Mapping[str, float], contention: float
) -> Candidate:
    """The arithmetic of one algorithm over one transport, with the library's constants."""
    rate = device.scaleup.each_way_bytes_per_s
    out = device.scaleout.each_way_bytes_per_s
    inside = traffic.wire_ratio + (c.get("staging_ratio", 0.0) * traffic.staged_ratio if traffic.wire_ratio else 0.0)
    near = inside * contention / (c[f"{transport}_rate_frac"] * rate) if inside else 0.0
    far = traffic.out_ratio / (c.get("scaleout_rate_frac", 1.0) * out) if traffic.out_ratio else 0.0
    slope = max(near, far)
    out_step = max(c.get("scaleout_step_s", 0.0), device.scaleout.latency_s)
    chain = traffic.num_steps * c[f"{transport}_step_s"] + traffic.num_out_steps * out_step
    chain += traffic.num_peers * c.get(f"{transport}_peer_s", 0.0)
    roof = max(
        traffic.wire_ratio / rate if traffic.wire_ratio else 0.0, traffic.out_ratio / out if traffic.out_ratio else 0.0
    )
    return Candidate(
        name=name if transport == name.replace("-", "_") else f"{name}, {transport.replace('_', ' ')}",
        latency_s=c["launch_s"] + c.get(f"{transport}_launch_s", 0.0) + chain,
        slope_s_per_bytes=slope,
        root_s2_per_bytes=4.0 * c.get("pipeline_ratio", 0.0) * chain * slope if transport == "bulk" else 0.0,
        roof_s_per_bytes=roof,
        wire_ratio=traffic.wire_ratio + traffic.out_ratio,
    )
