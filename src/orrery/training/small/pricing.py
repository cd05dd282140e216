"""Cost of a run on a device: kernels one after the other, or the host where it is slower; and the energy of both.

    step = max(sum of kernels, launches x launch_s, host_s)

``host_s`` is what the host needs to bring the next batch. While the device waits for the host it draws its idle power.
"""

from dataclasses import dataclass

import numpy as np

from orrery import kernels
from orrery.hardware.device import Device
from orrery.kernels.energy import energy_j
from orrery.training.small.work import StepWork

LAUNCH_S = 1e-5
"""Time (s) to launch one kernel from an eager framework's host thread; assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Time, energy, operations and bytes of some steps, or of their mean."""

    time_s: float
    device_s: float  # kernels alone
    energy_j: float
    flops: float
    bytes: float
    activation_bytes: float  # the most of any step
    state_bytes: float  # likewise

    def times(self, steps: float) -> "Price":
        """Price of ``steps`` steps, each at this price."""
        return Price(
            time_s=steps * self.time_s,
            device_s=steps * self.device_s,
            energy_j=steps * self.energy_j,
            flops=steps * self.flops,
            bytes=steps * self.bytes,
            activation_bytes=self.activation_bytes,
            state_bytes=self.state_bytes,
        )


def price(work: StepWork, device: Device, *, host_s: float = 0.0, launch_s: float = LAUNCH_S) -> Price:
    """One step."""
    timings = [kernels.predict(op, device) for op in work.ops]
    times, flops, moved = (
        np.array([float(getattr(t, name)) for t in timings]) for name in ("time_s", "flops", "bytes")
    )
    device_s = float(times.sum())
    time_s = max(device_s, launch_s * work.num_launches, host_s)
    busy_j = float(energy_j(device, "fp32", times, flops, moved).sum())
    return Price(
        time_s=time_s,
        device_s=device_s,
        energy_j=busy_j + device.idle_power_w * (time_s - device_s),
        flops=float(flops.sum()),
        bytes=float(moved.sum()),
        activation_bytes=work.activation_bytes,
        state_bytes=work.state_bytes,
    )


def mean(prices: list[Price]) -> Price:
    """A step of each, evenly; memory is that of the largest."""
    n = len(prices)
    return Price(
        time_s=sum(p.time_s for p in prices) / n,
        device_s=sum(p.device_s for p in prices) / n,
        energy_j=sum(p.energy_j for p in prices) / n,
        flops=sum(p.flops for p in prices) / n,
        bytes=sum(p.bytes for p in prices) / n,
        activation_bytes=max(p.activation_bytes for p in prices),
        state_bytes=max(p.state_bytes for p in prices),
    )
