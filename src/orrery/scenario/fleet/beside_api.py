"""The requests that a fleet served, priced on a public API, and the load from which the fleet's machines pay."""

from dataclasses import asdict, dataclass
from math import inf
from typing import Any

import numpy as np

from orrery.base.units import percent
from orrery.fleet.money import S_PER_MONTH, Demand, Machines, Terms, compare
from orrery.fleet.service.result import FleetRun
from orrery.scenario.answer import to_json
from orrery.scenario.money import api_price_of
from orrery.scenario.schema import Scenario

MONTHS = 1
"""A run's money, stretched to a month and back, needs no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideApi:
    """The served requests' cost by the fleet and by an API; the load is that at which both cost the same."""

    num_requests: int
    fleet_usd: float
    api_usd: float
    fleet_million_output_usd: float
    api_million_output_usd: float
    served_requests_per_s: float
    break_even_requests_per_s: float  # with the replicas that were paid for; infinite: the API always costs less
    sustained_requests_per_s: float | None  # by those replicas; None where pools differ

    @property
    def break_even_frac(self) -> float | None:
        """Share of what the paid replicas sustain from which they cost less than the API."""
        return self.break_even_requests_per_s / self.sustained_requests_per_s if self.sustained_requests_per_s else None

    @property
    def used_frac(self) -> float | None:
        """Share of what the paid replicas sustain that was served."""
        return self.served_requests_per_s / self.sustained_requests_per_s if self.sustained_requests_per_s else None

    @property
    def sentence(self) -> str:
        """Return from which load the machines pay."""
        at, part, used = self.break_even_requests_per_s, self.break_even_frac, self.used_frac
        if at == inf or (part is not None and part > 1.0):
            return "it costs less at any load that these replicas sustain"
        if part is None or used is None:
            return f"it costs more from {at:.3g} requests/s; {self.served_requests_per_s:.3g} were served"
        return (
            f"it costs more from {at:.3g} requests/s ({percent(part)} of what these replicas sustain; "
            f"{percent(used)} is used)"
        )

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data; what is never reached is null."""
        more = {"break_even_frac": self.break_even_frac, "used_frac": self.used_frac, "sentence": self.sentence}
        return to_json({**asdict(self), **more})


def beside_api(scenario: Scenario, run: FleetRun, electricity_usd: float) -> BesideApi | None:
    """Price a run's served requests on the scenario's API; None where none is asked for, or nothing was served.

    The month of ``fleet.money.compare`` is the run, repeated: all paid replicas are one machine whose rent is their
    price; electricity is taken at the run's mean price, and what is drawn above idle grows with the load.
    """
    served = np.isfinite(run.outcome.finish_s)
    count, length_s = int(served.sum()), run.end_s
    api, _ = api_price_of(scenario.api_price)
    if api is None or not count or length_s <= 0.0:
        return None
    rate, sustained = count / length_s, sustained_requests_per_s(run)
    demand = Demand(
        requests_per_s=rate,
        input_tokens=float(run.requests.input_tokens[served].mean()),
        output_tokens=float(run.requests.output_tokens[served].mean()),
        cached_frac=scenario.cached_frac or 0.0,
        busy_frac=1.0,
    )
    joules = run.energy_j + run.host_energy_j
    machines = Machines(
        num_devices=1,
        power_w=joules / length_s,
        idle_power_w=(joules - run.energy_above_idle_j) / length_s,
        used_frac=1.0,
    )
    terms = Terms(
        rent_usd_per_s=run.cost_usd / length_s,
        spot_usd_per_s=None,
        device_usd=None,
        life_months=1,
        upkeep_frac=0.0,
        people_usd=0.0,
        electricity_usd_per_j=electricity_usd / joules if joules > 0.0 else 0.0,
        pue_ratio=1.0,
        is_power_in_rent=False,
    )
    ways = {way.name: way for way in compare(demand, machines, terms, api, MONTHS)}
    return BesideApi(
        num_requests=count,
        fleet_usd=ways["rent"].month_usd * length_s / S_PER_MONTH,
        api_usd=ways["api"].month_usd * length_s / S_PER_MONTH,
        fleet_million_output_usd=ways["rent"].million_output_usd,
        api_million_output_usd=ways["api"].million_output_usd,
        served_requests_per_s=rate,
        break_even_requests_per_s=ways["rent"].break_even_frac * rate,
        sustained_requests_per_s=sustained,
    )


def sustained_requests_per_s(run: FleetRun) -> float | None:
    """Requests/s that the replicas that were paid for sustain on average; None where pools are not alike."""
    pools = run.setup.service.pools
    kinds = {(p.role, p.deployment.cluster.device.name, p.deployment.layout.num_devices) for p in pools}
    each = run.setup.capacity_requests_per_s
    return each * sum(run.paid_s) / run.end_s if len(kinds) == 1 and each > 0.0 else None
