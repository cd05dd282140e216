"""Goal of a plan: the objectives it must meet, the traffic it must carry, and the quantity to optimise."""

from dataclasses import dataclass, fields
from math import inf
from typing import Literal

from orrery.planner.budget import Budget
from orrery.serving.workload import Traffic

Best = Literal["cost", "throughput", "latency", "energy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objectives:
    """Limits on mean latencies, as the closed form knows means; percentiles take the simulator."""

    ttft_s: float = inf
    tpot_s: float = inf
    e2el_s: float = inf

    def limits(self) -> tuple[tuple[str, float], ...]:
        """(metric, limit) of every objective that was set."""
        return tuple((f.name, limit) for f in fields(self) if (limit := getattr(self, f.name)) < inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Quantity that the best plan optimises within the objectives: cheapest for the traffic, of most tokens a
    second and device, of the shortest requests on all devices, or of the least energy an output token, machines
    included.
    """

    objectives: Objectives
    traffic: Traffic
    max_devices: int
    best: Best = "cost"
    max_usd_per_hour: float = inf
    max_power_w: float = inf

    @property
    def budget(self) -> Budget:
        """The most that a plan may use."""
        return Budget(
            max_devices=self.max_devices, max_usd_per_hour=self.max_usd_per_hour, max_power_w=self.max_power_w
        )
