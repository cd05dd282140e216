"""Uplinks of mobile devices by name, with a trace drawn around each published median."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orrery.base.sources import Fact, read_facts

FILE = Path(__file__).parent / "facts" / "links.toml"
NAMES = ("4g", "5g", "wifi", "satellite")
STEP_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Uplink:
    """The way from a device to a server: its median rate, and how far and how fast the rate moves."""

    name: str
    basis: str  # how the median rate is known
    each_way_bytes_per_s: float
    latency_s: float  # there and back
    spread_ratio: float  # e to one standard deviation of the rate's logarithm
    hold_s: float  # correlation time of the rate

    def trace(self, duration_s: float, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times (s) and rates (bytes/s): a log-normal first-order autoregression around the median.

        x[k + 1] = rho x[k] + sqrt(1 - rho^2) z[k], rho = exp(-step / hold), rate = median x spread^x
        """
        steps = max(1, int(np.ceil(duration_s / STEP_S)))
        noise = np.random.default_rng(seed).standard_normal(steps)
        rho = float(np.exp(-STEP_S / self.hold_s))
        x = np.empty(steps)
        x[0] = noise[0]
        for k in range(1, steps):
            x[k] = rho * x[k - 1] + np.sqrt(1.0 - rho * rho) * noise[k]
        return np.arange(steps, dtype=np.float64) * STEP_S, self.each_way_bytes_per_s * self.spread_ratio**x


@cache
def link_facts() -> Mapping[str, Fact]:
    """Return every fact about uplinks with its source."""
    return read_facts(FILE)[0]


def uplink(name: str) -> Uplink:
    """The uplink of one of ``NAMES``."""
    value = {key: float(fact.value) for key, fact in link_facts().items()}
    return Uplink(
        name=name,
        basis=str(link_facts()[f"{name}_each_way_bytes_per_s"].basis),
        each_way_bytes_per_s=value[f"{name}_each_way_bytes_per_s"],
        latency_s=value[f"{name}_latency_s"],
        spread_ratio=value["spread_ratio"],
        hold_s=value["hold_s"],
    )
