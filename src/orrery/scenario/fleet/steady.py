"""A fleet hour by hour in steady state: the answer of ``steady = true``, and how far it is from a simulated run."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.execution.memory import Infeasible
from orrery.fleet.service.rate_curve import DAY_S, HOUR_S, hourly_means
from orrery.fleet.service.result import FleetRun
from orrery.fleet.service.setup import FleetService
from orrery.fleet.service.steady import Hour, steady_hours
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.answer import FleetAnswer
from orrery.scenario.fleet.build import built, check_runs
from orrery.scenario.fleet.by_hour import ByHour, by_hour_of_steady, check_hours, electricity_usd, pue_ratio
from orrery.scenario.fleet.by_region import nearest_of
from orrery.scenario.fleet.origins import origin_curves
from orrery.scenario.fleet.power import steady_power_json
from orrery.scenario.fleet.read import FleetInputs
from orrery.scenario.fleet.steady_regions import RegionalHours, all_regions, regional_by_hour, regional_hours
from orrery.scenario.fleet.traffic import mean_rate
from orrery.scenario.requests import requests_for
from orrery.scenario.schema import merged
from orrery.serving.batching import BALANCES
from orrery.serving.requests import Floats, Requests
from orrery.serving.simulation.rules import ROUTERS

SAMPLE = 4000
"""Requests that are drawn for their mean lengths."""

FULL_FRAC = 0.7
"""Share of the highest rate above which waves of equal requests have delayed first tokens by more than a tenth."""


@dataclass(frozen=True, slots=False, kw_only=True, eq=False)
class SteadyAnswer:
    """Every hour of a fleet in steady state."""

    inputs: FleetInputs
    setup: FleetService
    hours: tuple[Hour, ...]
    length_s: float
    notes: tuple[str, ...]
    regional: RegionalHours | None = None

    @cached_property
    def lengths_s(self) -> Floats:
        """Length of each hour; the last one may be cut."""
        starts_s = np.array([h.start_s for h in self.hours])
        return np.minimum(HOUR_S, self.length_s - starts_s)

    def total(self, value: str) -> float:
        """The integral of a rate of every hour."""
        return float(sum(getattr(h, value) * s for h, s in zip(self.hours, self.lengths_s.tolist(), strict=True)))

    @property
    def cost_usd(self) -> float:
        """Price of the replicas, and electricity."""
        joules = self.energy_j + self.host_energy_j
        return self.total("usd_per_s") + electricity_usd(self.inputs, joules, self.by_hour)

    @cached_property
    def by_hour(self) -> ByHour | None:
        """Energy at the meter, its price and CO2, by the clock's hours; None without a table of hours."""
        if self.regional is not None:
            return all_regions(self.by_region_hours)
        power_w = np.array([h.power_w + h.host_power_w for h in self.hours])
        return by_hour_of_steady(self.inputs, self.setup, self.lengths_s, power_w)

    @cached_property
    def by_region_hours(self) -> dict[str, ByHour]:
        """The same of every region with a table of hours."""
        if self.regional is None or self.setup.regions is None:
            return {}
        return regional_by_hour(self.setup, self.setup.regions, self.regional, self.lengths_s)

    @property
    def carbon_g(self) -> float | None:
        """CO2 of the fleet's power; None without a table of hours."""
        return None if self.by_hour is None else float(self.by_hour.carbon_g.sum())

    @property
    def energy_j(self) -> float:
        """Energy of the devices."""
        return self.total("power_w")

    @property
    def host_energy_j(self) -> float:
        """Energy of the machines around them."""
        return self.total("host_power_w")

    @property
    def num_requests(self) -> float:
        """Requests that come."""
        return self.total("rate_requests_per_s")

    @property
    def hours_overloaded(self) -> int:
        """Hours in which more requests come than the replicas sustain."""
        return sum(not np.isfinite(h.ttft_s) for h in self.hours)

    def mean(self, metric: str) -> float:
        """A mean latency over all requests."""
        weights = [h.rate_requests_per_s * s for h, s in zip(self.hours, self.lengths_s.tolist(), strict=True)]
        total = sum(weights)
        return sum(w * getattr(h, metric) for w, h in zip(weights, self.hours, strict=True) if w) / total

    def to_json(self) -> dict[str, Any]:
        """The answer in SI units."""
        return to_json(
            {
                "steady": True,
                "num_requests": self.num_requests,
                "duration_s": self.length_s,
                "cost_usd": self.cost_usd,
                "energy_j": self.energy_j,
                "host_energy_j": self.host_energy_j,
                "mean_ttft_s": self.mean("ttft_s"),
                "mean_tpot_s": self.mean("tpot_s"),
                "capacity_requests_per_s": self.setup.capacity_requests_per_s,
                "hours_overloaded": self.hours_overloaded,
                **(
                    {}
                    if self.by_hour is None
                    else {
                        "carbon_g": self.carbon_g,
                        "pue_ratio": pue_ratio(self.inputs),
                        "by_hour": self.by_hour.to_json(),
                    }
                ),
                **self._regions_json(),
                **steady_power_json(self.setup, self.hours, self.lengths_s),
                "hours": [_hour_json(h) for h in self.hours],
                "settings": dict(self.inputs.written),
                "notes": list(self.notes),
            }
        )

    def _regions_json(self) -> dict[str, Any]:
        """Regions as plain data; nothing without them."""
        if self.regional is None or self.setup.regions is None:
            return {}
        rows: list[dict[str, Any]] = []
        for name, hours in self.regional.by_region.items():
            own = SteadyAnswer(inputs=self.inputs, setup=self.setup, hours=hours, length_s=self.length_s, notes=())
            priced = self.by_region_hours.get(name)
            rows.append(
                {
                    "name": name,
                    "num_requests": own.num_requests,
                    "rent_usd": own.total("usd_per_s"),
                    "electricity_usd": 0.0 if priced is None else float(priced.usd.sum()),
                    "energy_j": own.energy_j + own.host_energy_j,
                    "carbon_g": None if priced is None else float(priced.carbon_g.sum()),
                    "num_replicas": own.total("num_replicas") / self.length_s,
                    "hours": [_hour_json(h) for h in hours],
                }
            )
        nearest = nearest_of(self.setup.regions)
        return {
            "region_router": self.setup.regions.router.name,
            "elsewhere_frac": self.regional.elsewhere_frac(nearest),
            "regions": rows,
        }


def _hour_json(hour: Hour) -> dict[str, Any]:
    """An hour as plain data; its clock where something limits or meters power."""
    clock = {} if hour.capped is None else {"clock_frac": hour.capped.clock_frac}
    return {f.name: getattr(hour, f.name) for f in fields(hour) if f.name != "capped"} | clock


def steady_answer(inputs: FleetInputs, running: Floats | None = None) -> SteadyAnswer | InfeasibleAnswer:
    """The fleet of some inputs, hour by hour; with ``running`` replicas (regions, hours) where they are known."""
    if not inputs.top.days:
        raise ScenarioError("steady: needs a length; write days = 7 beside it.")
    if inputs.has_prefill:
        raise ScenarioError("steady: takes replicas for both phases; leave out those for prompts alone, or steady.")
    length_s = inputs.top.days * DAY_S
    sample = requests_for(merged(inputs.scenario, {"num_requests": SAMPLE}))
    found = built(inputs, sample, length_s)
    if isinstance(found, Infeasible):
        return InfeasibleAnswer(infeasible=found, notes=(), settings=dict(inputs.written))
    if running is None:
        check_runs(found.setup)
    rate, notes = mean_rate(inputs.scenario)
    num_hours = int(np.ceil(length_s / HOUR_S - 1e-9))
    curves = origin_curves(inputs, length_s, inputs.scenario.seed or 0)
    hourly = np.array([hourly_means(row) for row in curves])[:, :num_hours] * rate
    means = float(sample.input_tokens.mean()), float(sample.output_tokens.mean())
    regions = found.setup.regions
    regional = None if regions is None else regional_hours(found.setup, regions, hourly, means, running)
    if regional is not None:
        hours = regional.whole
    else:
        hours = steady_hours(found.setup, hourly[0], *means, None if running is None else running[0])
    text = "steady: every hour at its mean rate; queues that outlast it, bursts, cold starts and failures are left out"
    if found.setup.power_cap is not None:
        text += ", and so are readings of power that vary around an hour's mean"
    return SteadyAnswer(
        inputs=inputs,
        setup=found.setup,
        hours=hours,
        length_s=length_s,
        regional=regional,
        notes=(*found.notes, *check_hours(inputs, found.setup), *notes, text, *_wave_notes(found.setup, sample, hours)),
    )


def _wave_notes(setup: FleetService, sample: Requests, hours: tuple[Hour, ...]) -> tuple[str, ...]:
    """A note where equal requests come and go in waves, which steady hours do not have: those that began together end
    together, and a router that sends each where fewest are fills the gap that they leave with prompts at once."""
    balances = BALANCES in ROUTERS.get(setup.service.router).traits
    is_equal = sample.output_tokens.min() == sample.output_tokens.max()
    full = [h for h in hours if h.used_frac > FULL_FRAC and h.num_replicas > 1.0]
    if not (balances and is_equal and full):
        return ()
    return (
        f"steady: outputs are all of {sample.output_tokens[0]} tokens, so under {setup.service.router} they come and "
        f"go in waves; in the {len(full)} hours above {percent(FULL_FRAC)} of what the replicas sustain, mean TTFT is "
        "up to three times what is said here; outputs that differ (output_tokens_std) have none",
    )


def _running(run: FleetRun) -> Floats:
    """Mean number of replicas that ran, by region and hour."""
    edges_s = np.append(np.arange(0.0, run.end_s, HOUR_S), run.end_s)
    found = np.zeros((run.setup.num_regions, edges_s.size - 1))
    for span in run.spans:
        passed_s = np.clip(edges_s, span.start_s, min(span.end_s, run.end_s))
        found[run.setup.region_numbers[span.pool]] += np.diff(passed_s)
    return found / np.diff(edges_s)


def against_steady(answer: FleetAnswer) -> dict[str, float | None] | None:
    """Differences between hourly steady states of as many replicas and a simulated run, as fractions of its
    figures.

    None for a run without days, whose requests may also wait for one another, and for pools of their own for prompts.
    """
    if not answer.inputs.top.days or answer.run.requests.after.size or answer.inputs.has_prefill:
        return None
    steady = steady_answer(answer.inputs, _running(answer.run))
    if isinstance(steady, InfeasibleAnswer):
        return None
    run = answer.run

    def apart(found: float, simulated: float) -> float | None:
        return found / simulated - 1.0 if simulated > 0.0 and np.isfinite(found) else None

    ttft_s, tpot_s = (v[np.isfinite(v)] for v in (run.ttft_s, run.tpot_s))
    return {
        "cost_frac": apart(steady.cost_usd, answer.cost_usd),
        "energy_frac": apart(steady.energy_j, run.energy_j),
        "mean_ttft_frac": apart(steady.mean("ttft_s"), float(ttft_s.mean())) if ttft_s.size else None,
        "mean_tpot_frac": apart(steady.mean("tpot_s"), float(tpot_s.mean())) if tpot_s.size else None,
        "hours_overloaded": float(steady.hours_overloaded),
    }
