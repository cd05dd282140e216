"""Time and power of a server's batch of requests: prompts, then answers, at a full or lowered clock.

A lower clock lowers every rate of arithmetic with it and leaves the memory alone, so prompts take longer and answers
hardly do. What is drawn above idle follows clock times voltage squared, and voltage falls with the clock from 1 to
``least_voltage_frac`` at rest.
"""

from dataclasses import dataclass, replace

from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.execution.power import steps_power_w
from orrery.hardware.device import Device
from orrery.serving.runs import static_run

MIN_VOLTAGE_FRAC = 0.6
"""Lowest share of the full voltage, as a clock goes to zero: a usual span of such chips' regulators. Assumed."""

DECODE_ENTRY, PROMPT_ENTRY = 1, 3
"""Where a static run keeps the middle of its decode steps, and its prompt step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """One batch on one server: how long each phase takes, and what the whole server draws in it."""

    prompt_s: float
    prompt_w: float
    decode_s: float
    decode_w: float
    idle_w: float

    @property
    def batch_s(self) -> float:
        """Start to end."""
        return self.prompt_s + self.decode_s


def span_frac(clock_ratio: float) -> float:
    """Power above idle at a part of the clock, as a part of that at full clock: clock times voltage squared."""
    return clock_ratio * (MIN_VOLTAGE_FRAC + (1.0 - MIN_VOLTAGE_FRAC) * clock_ratio) ** 2


def clocked(device: Device, clock_ratio: float) -> Device:
    """The device at a part of its clock: arithmetic slower by it, and less drawn above idle."""
    if clock_ratio == 1.0:
        return device
    span_w = (device.power_limit_w - device.idle_power_w) * span_frac(clock_ratio)
    return replace(
        device,
        dense_flops_per_s={name: rate * clock_ratio for name, rate in device.dense_flops_per_s.items()},
        vector_flops_per_s=device.vector_flops_per_s * clock_ratio,
        compute_clock_hz=device.compute_clock_hz * clock_ratio,
        power_limit_w=device.idle_power_w + span_w,
    )


def phases(
    deployment: Deployment,
    batch: float,
    input_tokens: float,
    output_tokens: float,
    host_w: float,
    clock_ratio: float = 1.0,
) -> Phases | Infeasible:
    """A batch of equal requests on one server that draws ``host_w`` besides its devices."""
    device = clocked(deployment.cluster.device, clock_ratio)
    lowered = replace(deployment, cluster=replace(deployment.cluster, device=device))
    memory = memory_of(lowered)
    if isinstance(memory, Infeasible):
        return memory
    run = static_run(lowered, memory, batch, input_tokens, output_tokens)
    decode_w, prompt_w = (
        steps_power_w(lowered, run.ticks.done, (entry,), float(run.ticks.time_s[entry]))
        for entry in (DECODE_ENTRY, PROMPT_ENTRY)
    )
    count = deployment.layout.num_devices
    return Phases(
        prompt_s=run.latency_s * run.prompt_share,
        prompt_w=host_w + count * prompt_w,
        decode_s=run.latency_s * (1.0 - run.prompt_share),
        decode_w=host_w + count * decode_w,
        idle_w=host_w + count * device.idle_power_w,
    )
