"""A deployment as seen by a process that owns a part of every device's compute units, and what two such share.

Compute rates scale with the units. Memory bandwidth does not: a unit keeps ``IN_FLIGHT_BYTES`` on their way, each for
``MEMORY_LATENCY_S``, so (Little's law) a fraction f of the units draws

    min(1, f / f_sat) of the bandwidth W,   f_sat = W / (units x IN_FLIGHT_BYTES / MEMORY_LATENCY_S)

Two processes that together ask for more than W get it in proportion to what they ask for. [semi-pd-2025], [little-1961]
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from orrery.base.errors import ScenarioError
from orrery.execution.layout import Deployment
from orrery.execution.step import Step
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device

IN_FLIGHT_BYTES = 32768.0
"""Bytes in flight of one unit in a streaming kernel: a 16-byte load by each of 2048 resident threads. Assumed."""

MEMORY_LATENCY_S = 650e-9
"""From a load to its data under traffic. Assumed; microbenchmarks of idle A100s and H100s show 450 to 600 ns."""

GROWS = ("feed_ratio", "head_feed_ratio")
SHRINKS = ("start_keys", "head_start_keys", "start_latents")
"""Constants that state what one unit draws, or does before it draws, in parts of its share of the bandwidth."""


def saturation_frac(device: Device) -> float:
    """The part of the compute units that can draw the whole memory bandwidth."""
    unit_bytes_per_s = IN_FLIGHT_BYTES / MEMORY_LATENCY_S
    return min(1.0, device.memory_bandwidth_bytes_per_s / (device.num_compute_units * unit_bytes_per_s))


def with_share(deployment: Deployment, units_frac: float, *, bandwidth_frac: float | None = None) -> Deployment:
    """The deployment with ``units_frac`` of each device's compute units, in whole units.

    ``bandwidth_frac`` is the most that it draws of the memory bandwidth; left out, what its units can draw. Name,
    generation and calibrations stay the device's. The same arguments give the same object, so that tables of it keep.
    """
    if not 0.0 < units_frac <= 1.0:
        raise ScenarioError(f"units_frac = {units_frac:g} of {deployment.cluster.device.name}; write above 0, up to 1.")
    if bandwidth_frac is not None and not 0.0 < bandwidth_frac <= 1.0:
        raise ScenarioError(f"bandwidth_frac = {bandwidth_frac:g}; write above 0, up to 1, or leave it out.")
    device = deployment.cluster.device
    units = max(1, round(units_frac * device.num_compute_units))
    share = units / device.num_compute_units
    drawn = min(1.0, share / saturation_frac(device))
    width = drawn if bandwidth_frac is None else min(drawn, bandwidth_frac)
    if units == device.num_compute_units and width == 1.0:
        return deployment
    return _cut(deployment, units, width)


@lru_cache(maxsize=512)
def _cut(deployment: Deployment, units: int, width: float) -> Deployment:
    device = deployment.cluster.device
    share = units / device.num_compute_units
    part = replace(
        device,
        num_compute_units=units,
        vector_flops_per_s=device.vector_flops_per_s * share,
        dense_flops_per_s={rate: peak * share for rate, peak in device.dense_flops_per_s.items()},
        memory_bandwidth_bytes_per_s=device.memory_bandwidth_bytes_per_s * width,
        calibrations={key: _restated(c, share / width) for key, c in device.calibrations.items()},
    )
    return replace(deployment, cluster=replace(deployment.cluster, device=part))


def _restated(found: Calibration, ratio: float) -> Calibration:
    """The same unit, told in parts of another share of the bandwidth. Trees stay: they read ratios of the new terms."""
    constants: Mapping[str, float] = {
        name: value * ratio if name in GROWS else value / ratio if name in SHRINKS else value
        for name, value in found.constants.items()
    }
    return replace(found, constants=constants)


def memory_demand_frac(device: Device, done: Step, entry: int) -> float:
    """Bytes that kernels move in a step, as a share of what ``device`` (the whole one) could move in its time."""
    time_s = float(done.time_s[entry])
    moved = sum(p.work(entry)[1] for p in done.parts)
    return moved / (time_s * device.memory_bandwidth_bytes_per_s) if time_s > 0.0 else 0.0
