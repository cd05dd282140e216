"""Replicas that fail, are taken away or slow down: the law, and the moments drawn from it.

Each cause is a Poisson process: a replica of n devices fails n times as often as one device, a link's failure takes a
replica that spans several nodes, a spot replica is interrupted at the pool's rate, a zone is lost at its rate with
every replica in it. A replica that is lost while it is off or starting comes back by the same way as one that serves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream

Cause = Literal["device", "node", "link", "spot", "zone", "region", "slow"]

NEVER_S = float("inf")
MAX_EVENTS = 1_000_000
"""More disruptions than a run could ever hold; such a rate is a slip of the unit."""


MEANS = ("device_mtbf_s", "node_mtbf_s", "link_mtbf_s", "spot_mtbi_s", "zone_mtbf_s", "region_mtbf_s", "slow_mtbf_s")
"""Fields of ``Disruptions`` that are mean times between events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A zone that is lost at a known time, or a region with all its zones."""

    zone: str = ""
    region: str = ""
    start_s: float
    length_s: float

    @property
    def cause(self) -> Cause:
        """As events name it."""
        return "region" if self.region else "zone"

    def hits(self, replica: "Exposure") -> bool:
        """Whether a replica stands there."""
        return replica.region == self.region if self.region else replica.zone == self.zone


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruptions:
    """Rates of what goes wrong; infinite mean times mean that it never does."""

    device_mtbf_s: float = NEVER_S
    node_mtbf_s: float = NEVER_S
    link_mtbf_s: float = NEVER_S  # of one device's link to other nodes
    repair_s: float = 3600.0  # until a failed replica's devices can be used again
    spot_mtbi_s: float = NEVER_S  # mean time between interruptions of one spot replica
    spot_notice_s: float = 0.0  # a warning before: the replica takes no new requests
    spot_away_s: float = 600.0  # until as much capacity is offered again
    slow_mtbf_s: float = NEVER_S  # mean time between slow spells of one device
    slow_length_s: float = 3600.0
    slow_ratio: float = 1.5  # steps take so many times as long
    zone_mtbf_s: float = NEVER_S  # mean time between losses of one zone
    zone_away_s: float = 7200.0
    region_mtbf_s: float = NEVER_S  # mean time between losses of one region, with all its zones
    region_away_s: float = 7200.0
    outages: tuple[Outage, ...] = ()
    retries: bool = True  # requests of a lost replica go back to the router

    def __post_init__(self) -> None:
        for name in (*MEANS, "slow_ratio"):
            if not getattr(self, name) > 0.0:
                raise ScenarioError(f"{name} = {getattr(self, name):g}; write a number above 0.")
        for name in ("repair_s", "spot_notice_s", "spot_away_s", "slow_length_s", "zone_away_s", "region_away_s"):
            if not 0.0 <= getattr(self, name) < NEVER_S:
                raise ScenarioError(f"{name} = {getattr(self, name):g}; write seconds from 0.")

    @property
    def any(self) -> bool:
        """Whether anything can go wrong."""
        return bool(self.outages) or min(getattr(self, name) for name in MEANS) < NEVER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """A replica as disruptions see it."""

    num_devices: int
    num_nodes: int
    is_spot: bool
    zone: str
    region: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """One thing that goes wrong with one replica."""

    at_s: float
    replica: int
    cause: Cause
    length_s: float
    notice_s: float = 0.0


def drawn(law: Disruptions, replicas: Sequence[Exposure], horizon_s: float, seed: int) -> tuple[Disruption, ...]:
    """Draw what goes wrong up to ``horizon_s``, in order of time; each replica and cause has its own stream."""
    found: list[Disruption] = []
    for k, r in enumerate(replicas):
        rates: tuple[tuple[Cause, float, float, float], ...] = (
            ("device", r.num_devices / law.device_mtbf_s, law.repair_s, 0.0),
            ("node", r.num_nodes / law.node_mtbf_s, law.repair_s, 0.0),
            ("link", r.num_devices / law.link_mtbf_s if r.num_nodes > 1 else 0.0, law.repair_s, 0.0),
            ("spot", 1.0 / law.spot_mtbi_s if r.is_spot else 0.0, law.spot_away_s, law.spot_notice_s),
            ("slow", r.num_devices / law.slow_mtbf_s, law.slow_length_s, 0.0),
        )
        for cause, rate_per_s, length_s, notice_s in rates:
            if rate_per_s * horizon_s > MAX_EVENTS:
                raise ScenarioError(f"faults: {cause}: {rate_per_s * horizon_s:.3g} for one replica; check the unit.")
            if rate_per_s > 0.0:
                found += [
                    Disruption(at_s=at_s, replica=k, cause=cause, length_s=length_s, notice_s=notice_s)
                    for at_s in _poisson(rate_per_s, horizon_s, stream(seed, f"faults/{cause}/{k}"))
                ]
    for outage in (*law.outages, *_drawn_outages(law, replicas, horizon_s, seed)):
        found += [
            Disruption(at_s=outage.start_s, replica=k, cause=outage.cause, length_s=outage.length_s)
            for k, r in enumerate(replicas)
            if outage.hits(r) and outage.start_s <= horizon_s
        ]
    return tuple(sorted(found, key=lambda d: (d.at_s, d.replica, d.cause)))


def _drawn_outages(law: Disruptions, replicas: Sequence[Exposure], horizon_s: float, seed: int) -> list[Outage]:
    """Losses of whole zones and regions at their rates, each with its own stream."""
    found: list[Outage] = []
    for kind, mtbf_s, away_s in (
        ("zone", law.zone_mtbf_s, law.zone_away_s),
        ("region", law.region_mtbf_s, law.region_away_s),
    ):
        for name in sorted({getattr(r, kind) for r in replicas}) if mtbf_s < NEVER_S else ():
            if horizon_s / mtbf_s > MAX_EVENTS:
                raise ScenarioError(f"faults: {kind}: {horizon_s / mtbf_s:.3g} losses of one {kind}; check the unit.")
            moments = _poisson(1.0 / mtbf_s, horizon_s, stream(seed, f"faults/{kind}/{name}"))
            found += [Outage(**{kind: name}, start_s=at_s, length_s=away_s) for at_s in moments]
    return found


def _poisson(rate_per_s: float, horizon_s: float, draws: np.random.Generator) -> list[float]:
    """Moments of a Poisson process up to the horizon."""
    found: list[float] = []
    at_s = draws.standard_exponential() / rate_per_s
    while at_s <= horizon_s:
        found.append(float(at_s))
        at_s += draws.standard_exponential() / rate_per_s
    return found
