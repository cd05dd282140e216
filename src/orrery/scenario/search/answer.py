"""The answer of a search: a network for each device, fronts with bands, and what was proven."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orrery.scenario.answer import to_json
from orrery.scenario.search.blocks import Served


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network: its choices and totals."""

    alternatives: Mapping[str, str]
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The worst and best goal over seeds with at most so much of the other metric."""

    against: float
    low: float
    high: float
    num_seeds: int  # that have such a network at all


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceResult:
    """One device: the best network beside the reference, its front, and how it does on the other devices.

    ``bound``: no network of the space does better by sums; ``goals``: the best of every seed that met the limits.
    """

    device: str
    best: Network
    reference_name: str
    reference: Mapping[str, float]
    limits: Mapping[str, float]
    front: tuple[Network, ...]
    band: tuple[Band, ...]
    goals: tuple[float, ...]
    num_failed: int  # seeds that met no network within the limits
    bound: float | None
    is_proven: bool
    num_evaluated: int
    searched_latency_s: float  # of all networks that were evaluated one by one, added up; 0 where none were
    latency_s_on: Mapping[str, float]
    served: Served | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchAnswer:
    """A network for each device, out of one space."""

    space: str
    method: str
    goal: str
    against: str
    num_choices: int
    num_networks: float
    devices: tuple[DeviceResult, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]
    paths_bytes: Mapping[str, float] | None = None  # of results, with one, two and all paths in memory

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        return to_json(
            {
                "space": self.space,
                "method": self.method,
                "objective": [self.goal, self.against],
                "num_choices": self.num_choices,
                "num_networks": self.num_networks,
                "paths_bytes": self.paths_bytes,
                "devices": self.devices,
                "settings": self.settings,
                "notes": self.notes,
            }
        )
