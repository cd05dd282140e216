"""Continuous use of one device without a fan: at full clock until it is warm, then at the clock that it keeps up."""

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.fleet.power.phases import clocked
from orrery.hardware.device import Device
from orrery.hardware.heat import Body
from orrery.scenario.answer import to_json
from orrery.scenario.clock import MIN_CLOCK_FRAC
from orrery.scenario.schema import Scenario
from orrery.serving.estimate import Estimate, estimate
from orrery.serving.workload import Workload

SETTINGS = ("battery_wh", "sustained_w", "thermal_s")
SUSTAINED = ("sustained_s", *SETTINGS)
J_PER_WH, BISECTIONS = 3600.0, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One part of the use: the clock, and what the device does at it."""

    clock_frac: float
    busy_frac: float  # of the time; below 1 where even the lowest clock draws too much
    output_tokens_per_s: float
    tpot_s: float
    power_w: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sustained:
    """Use without a pause: cold, then warm; None where it does not throttle, or where no battery is known."""

    length_s: float
    cold: Phase
    warm: Phase
    throttles_after_s: float | None
    output_tokens_per_s: float  # mean over the length
    num_output_tokens: float
    battery_s: float | None
    battery_tokens: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain data; SI units."""
        return to_json({name: getattr(self, name) for name in Sustained.__dataclass_fields__})


def sustained(scenario: Scenario, deployment: Deployment, workload: Workload, cold: Estimate) -> Sustained | None:
    """The use that the scenario asks for; None where it asks for none."""
    if scenario.sustained_s is None:
        for name in SETTINGS:
            if getattr(scenario, name) is not None:
                raise ScenarioError(f"{name}: has no effect without sustained_s; write sustained_s = 600 beside it.")
        return None
    body = _body(scenario, deployment)
    first = _phase(1.0, 1.0, cold)
    cool_s = body.throttles_after_s(first.power_w)
    warm = first if not isfinite(cool_s) else _warm(deployment, workload, cold, body)
    length_s, cold_s = scenario.sustained_s, min(scenario.sustained_s, cool_s)
    tokens = first.output_tokens_per_s * cold_s + warm.output_tokens_per_s * (length_s - cold_s)
    battery_s = body.lasts_s(first.power_w, warm.power_w) if body.battery_j else None
    return Sustained(
        length_s=length_s,
        cold=first,
        warm=warm,
        throttles_after_s=cool_s if isfinite(cool_s) else None,
        output_tokens_per_s=tokens / length_s,
        num_output_tokens=tokens,
        battery_s=battery_s,
        battery_tokens=None if battery_s is None else _tokens_in(battery_s, cool_s, first, warm),
    )


def _tokens_in(length_s: float, cool_s: float, first: Phase, warm: Phase) -> float:
    cold_s = min(length_s, cool_s)
    return first.output_tokens_per_s * cold_s + warm.output_tokens_per_s * (length_s - cold_s)


def _body(scenario: Scenario, deployment: Deployment) -> Body:
    device = deployment.cluster.device
    if deployment.layout.num_devices > 1:
        raise ScenarioError(
            f"sustained_s: is of one device; the layout has {deployment.layout.num_devices}, write tp = 1."
        )
    sustained_w = scenario.sustained_w or device.sustained_power_w
    time_constant_s = scenario.thermal_s or device.thermal_time_constant_s
    if not sustained_w or not time_constant_s:
        raise ScenarioError(
            f"sustained_s: nothing is known of how {device.name} warms; write sustained_w = 4 and thermal_s = 60."
        )
    battery_j = device.battery_j if scenario.battery_wh is None else scenario.battery_wh * J_PER_WH
    if sustained_w <= device.idle_power_w:
        raise ScenarioError(
            f"sustained_w: {sustained_w:g} W is not above the {device.idle_power_w:g} W of idling; write more."
        )
    return Body(
        idle_w=device.idle_power_w, sustained_w=sustained_w, time_constant_s=time_constant_s, battery_j=battery_j
    )


def _warm(deployment: Deployment, workload: Workload, cold: Estimate, body: Body) -> Phase:
    """The highest clock whose power is kept up; the lowest clock for a part of the time where none is."""
    low, high = MIN_CLOCK_FRAC, 1.0
    slowest = _at(deployment, workload, cold, low)
    if slowest.power_w > body.sustained_w:
        busy = (body.sustained_w - body.idle_w) / (slowest.power_w - body.idle_w)
        return replace(
            slowest,
            busy_frac=busy,
            output_tokens_per_s=busy * slowest.output_tokens_per_s,
            power_w=body.sustained_w,
        )
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if _at(deployment, workload, cold, middle).power_w > body.sustained_w:
            high = middle
        else:
            low = middle
    return _at(deployment, workload, cold, low)


def _at(deployment: Deployment, workload: Workload, cold: Estimate, clock_frac: float) -> Phase:
    device = lowered(deployment.cluster.device, clock_frac)
    found = estimate(replace(deployment, cluster=replace(deployment.cluster, device=device)), workload)
    return _phase(clock_frac, 1.0, cold if isinstance(found, Infeasible) else found)


def lowered(device: Device, clock_frac: float) -> Device:
    """The device at a part of its clock; on one with a battery the memory's clock follows, as phones' governors do."""
    found = clocked(device, clock_frac)
    if not device.battery_j:
        return found
    rate = clock_frac * device.memory_bandwidth_bytes_per_s
    return replace(found, memory_bandwidth_bytes_per_s=rate, host=replace(device.host, each_way_bytes_per_s=rate))


def _phase(clock_frac: float, busy_frac: float, found: Estimate) -> Phase:
    return Phase(
        clock_frac=clock_frac,
        busy_frac=busy_frac,
        output_tokens_per_s=found.output_tokens_per_s,
        tpot_s=found.tpot_s,
        power_w=found.power_w + found.host_power_w,
    )
