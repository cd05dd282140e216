"""The answer of a fleet: money, energy, attainment over time, what ran when, and who was hurt by what."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from orrery.base.sources import Fact
from orrery.base.units import figures, percent
from orrery.catalog.autoscalers import facts_of
from orrery.fleet.service.result import FRAME, FleetRun
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.attainment import needed_frac
from orrery.scenario.fleet.beside_api import BesideApi, beside_api
from orrery.scenario.fleet.by_hour import ByHour, by_hour_of_run, electricity_usd, pue_ratio
from orrery.scenario.fleet.by_region import AgainstNearest, ByRegion, by_region_of
from orrery.scenario.fleet.jobs import job_regions, jobs_of, peak_power_w, region_jobs_of
from orrery.scenario.fleet.power import power_json
from orrery.scenario.fleet.read import FleetInputs
from orrery.scenario.fleet.regret import Regret
from orrery.scenario.fleet.traffic import FleetTraffic, tenants_of
from orrery.scenario.objectives import read_objectives
from orrery.scenario.shift import ShiftAnswer
from orrery.serving.requests import Floats

PERCENTS = (50.0, 90.0, 95.0, 99.0)
MAX_BINS = 288
"""Points of a curve over the run: five minutes of a day."""

MAX_EVENTS = 2000
"""Events that JSON lists; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Settings that would meet the SLOs, and what they would cost."""

    text: str
    settings: Mapping[str, Any]
    cost_usd: float
    added_usd: float

    @property
    def difference(self) -> str:
        """Cost added or saved by the change."""
        return f"${figures(abs(self.added_usd))} {'less' if self.added_usd < 0.0 else 'more'}"


@dataclass(frozen=True, slots=False, kw_only=True, eq=False)
class FleetAnswer:
    """One fleet over its days."""

    inputs: FleetInputs
    traffic: FleetTraffic
    run: FleetRun
    notes: tuple[str, ...]
    seconds: float  # generation, simulation and metrics
    regret: Regret | None = None  # against the cheapest schedule that knows the future
    steady: Mapping[str, float | None] | None = None  # how far hourly steady states are from the run
    change: Change | None = None  # the smallest that would meet the SLOs
    has_searched: bool = False  # whether one was searched
    nearest: AgainstNearest | None = None  # beside every request in its nearest region

    # -- requests -----------------------------------------------------------------------------------------------------

    @property
    def num_sent(self) -> int:
        """Requests that came, those included that the gateway shed."""
        return self.traffic.split.shed.size

    @property
    def num_shed(self) -> int:
        """Requests that the gateway shed, beyond their tenant's budget."""
        return int(self.traffic.split.shed.sum())

    @cached_property
    def attained_frac(self) -> float | None:
        """Share of the requests that came which were served within every limit; None without limits."""
        return float(self.run.within.sum()) / self.num_sent if self.run.setup.limits_s else None

    @cached_property
    def hurt(self) -> Mapping[str, int]:
        """Requests that missed a limit or were not served, by cause."""
        found = {cause: int(which.sum()) for cause, which in self.run.hurt.items()}
        return {**found, "shed": found["shed"] + self.num_shed}

    @cached_property
    def slo(self) -> Mapping[str, Mapping[str, Any]]:
        """Every objective: its limit, what was measured, and whether it is met."""
        found: dict[str, dict[str, Any]] = {}
        for o in read_objectives(self.inputs.scenario.slo):
            value = np.where(np.isnan(values := self.run.latency_s(o.metric)), np.inf, values)
            within = float((value <= o.limit_s).sum()) / self.num_sent
            need = o.share_frac or needed_frac(self.inputs.scenario)
            everyone = np.concatenate((value, np.full(self.num_shed, np.inf)))
            at = float(np.quantile(everyone, need, method="inverted_cdf"))
            found[o.name] = {
                "limit_s": o.limit_s,
                "needed_frac": need,
                "attained_frac": within,
                "value_s": at,
                "is_met": within >= need - 1e-12,
            }
        return found

    @property
    def is_met(self) -> bool | None:
        """Whether every objective is met, and enough requests meet all of those for each; None without any."""
        if not self.slo:
            return None
        each = [o.metric for o in read_objectives(self.inputs.scenario.slo) if not o.percent]
        is_enough = not each or (self.attained_frac or 0.0) >= needed_frac(self.inputs.scenario) or len(each) == 1
        return is_enough and all(o["is_met"] for o in self.slo.values())

    @property
    def beyond_budgets(self) -> str:
        """A sentence where tenants' budgets alone shed too many requests for an objective; empty elsewhere."""
        shed_frac = self.num_shed / self.num_sent
        if not any(1.0 - shed_frac < o["needed_frac"] - 1e-12 for o in self.slo.values()):
            return ""
        return f"The tenants' budgets shed {percent(shed_frac, 2)} of the requests, which no replica changes."

    # -- money and energy ---------------------------------------------------------------------------------------------

    @property
    def electricity_usd(self) -> float:
        """Electricity of devices and hosts, where it is priced apart."""
        return electricity_usd(self.inputs, self.run.energy_j + self.run.host_energy_j, self.by_hour)

    @cached_property
    def by_hour(self) -> ByHour | None:
        """Energy at the meter, its price and CO2, by the clock's hours; None without a table of hours."""
        return by_hour_of_run(self.inputs, self.run)

    @cached_property
    def by_region(self) -> ByRegion | None:
        """Regions and origins; None where the fleet stands in no regions."""
        return by_region_of(self.run)

    @property
    def carbon_g(self) -> float | None:
        """CO2 of the fleet's power; None without a table of hours."""
        return None if self.by_hour is None else float(self.by_hour.carbon_g.sum())

    @cached_property
    def jobs(self) -> ShiftAnswer | InfeasibleAnswer | None:
        """Batch work in the hours of the run; None where there is none."""
        if self.run.setup.regions is not None:
            return region_jobs_of(self.inputs, self.run)
        return jobs_of(self.inputs, self.by_hour)

    @property
    def cost_usd(self) -> float:
        """Price of the replicas, and electricity."""
        return self.run.cost_usd + self.electricity_usd

    @property
    def output_tokens(self) -> int:
        """Tokens of the requests that were served."""
        return int(self.run.requests.output_tokens[np.isfinite(self.run.outcome.finish_s)].sum())

    @property
    def usd_per_million_output_tokens(self) -> float | None:
        """Cost of a million output tokens."""
        return self.cost_usd / self.output_tokens * 1e6 if self.output_tokens else None

    @cached_property
    def api(self) -> BesideApi | None:
        """The served requests priced on a public API; None where none is asked for."""
        return beside_api(self.inputs.scenario, self.run, self.electricity_usd)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Defaults of the autoscalers in use, each once."""
        scalers = (self.run.setup.scaler, self.run.setup.prefill_scaler)
        return tuple(f for name in dict.fromkeys(s.name for s in scalers if s) for f in facts_of(name))

    # -- over time ----------------------------------------------------------------------------------------------------

    @cached_property
    def series(self) -> Mapping[str, Floats]:
        """Curves over the run: one value a stretch of equal length."""
        return series_of(self)

    def to_json(self) -> dict[str, Any]:
        """The answer in SI units."""
        run = self.run
        latency = {
            metric: {f"p{p:g}": _quantile(run.latency_s(metric), p) for p in PERCENTS}
            | {"mean": _mean(run.latency_s(metric))}
            for metric in ("ttft", "tpot", "e2el")
        }
        return to_json(
            {
                "num_requests": self.num_sent,
                **{f"num_{name}": count for name, count in run.fates.items()},
                "num_shed": self.num_shed,
                "duration_s": run.end_s,
                "slo_is_met": self.is_met,
                "attained_frac": self.attained_frac,
                "slo": self.slo,
                "hurt": self.hurt,
                "ttft_s": latency["ttft"],
                "tpot_s": latency["tpot"],
                "e2el_s": latency["e2el"],
                "cost_usd": self.cost_usd,
                "electricity_usd": self.electricity_usd,
                "usd_per_million_output_tokens": self.usd_per_million_output_tokens,
                **(
                    {}
                    if self.by_hour is None
                    else {
                        "carbon_g": self.carbon_g,
                        "pue_ratio": pue_ratio(self.inputs),
                        "by_hour": self.by_hour.to_json(),
                    }
                ),
                **({} if self.by_region is None else self.by_region.to_json()),
                **({} if self.nearest is None else {"against_nearest": self.nearest}),
                **({} if self.api is None else {"api": self.api.to_json()}),
                **({} if self.jobs is None else {"jobs": self.jobs.to_json()}),
                **self._job_regions(),
                "peak_power_w": peak_power_w(run),
                **power_json(run),
                "energy_j": run.energy_j,
                "host_energy_j": run.host_energy_j,
                "busy_frac": run.busy_frac,
                **(
                    {"adapter_loads": run.adapter_loads, "adapter_load_s": run.adapter_load_s}
                    if run.requests.adapter.size
                    else {}
                ),
                "output_tokens": self.output_tokens,
                "capacity_requests_per_s": run.setup.capacity_requests_per_s,
                "pools": [
                    {
                        "name": t.name,
                        "purchase": t.purchase,
                        "devices_per_replica": p.deployment.layout.num_devices,
                        "device": p.deployment.cluster.device.name,
                        "replicas_min": t.replicas_min,
                        "replicas_max": t.replicas_max,
                        "cold_start_s": t.cold_start_s,
                        "mean_replicas": paid_s / run.end_s if run.end_s else 0.0,
                        "peak_replicas": int(run.paid[:, k].max()),
                        "cost_usd": paid_s * t.usd_per_s,
                    }
                    for k, (p, t, paid_s) in enumerate(
                        zip(run.setup.service.own_pools, run.setup.terms, run.paid_s, strict=True)
                    )
                ],
                "regret": self.regret and self.regret.to_json(),
                "against_steady": self.steady,
                "smallest_change": self.change,
                "tenants": self.tenants(),
                "scale_events": event_counts(run),
                "events": list(run.events[:MAX_EVENTS]),
                "series": dict(self.series),
                "facts": [f.cite() for f in self.facts],
                "seconds": self.seconds,
                "settings": dict(self.inputs.written),
                "notes": list(self.notes),
            }
        )

    def _job_regions(self) -> dict[str, Any]:
        """Energy of the jobs by region; nothing without jobs or regions."""
        if not isinstance(self.jobs, ShiftAnswer) or self.run.setup.regions is None:
            return {}
        return {"job_regions": job_regions(self.jobs, self.run)}

    def tenants(self) -> list[dict[str, Any]]:
        """Outcome of each tenant's requests."""
        split, found = self.traffic.split, list[dict[str, Any]]()
        for k, tenant in enumerate(tenants_of(self.inputs)):
            mine = split.requests.client == k
            sent = int((split.tenant == k).sum())
            found.append(
                {
                    "name": tenant.name,
                    "num_requests": sent,
                    "num_shed": int((split.shed & (split.tenant == k)).sum()),
                    "attained_frac": float(self.run.within[mine].sum()) / sent if sent else None,
                    "p99_ttft_s": _quantile(self.run.ttft_s[mine], 99.0),
                }
            )
        return found


def answer_of(
    inputs: FleetInputs, traffic: FleetTraffic, run: FleetRun, notes: tuple[str, ...], seconds: float
) -> FleetAnswer:
    """The answer of a run."""
    return FleetAnswer(inputs=inputs, traffic=traffic, run=run, notes=tuple(dict.fromkeys(notes)), seconds=seconds)


def event_counts(run: FleetRun) -> dict[str, int]:
    """How often each kind of event happened."""
    found: dict[str, int] = {}
    for event in run.events:
        found[event.what] = found.get(event.what, 0) + 1
    return found


def series_of(answer: FleetAnswer) -> dict[str, Any]:
    """Load, replicas, latencies, attainment, power and money by stretches of equal length."""
    run = answer.run
    pace_s = run.setup.pace_s
    end_s = max(run.end_s, pace_s)
    width_s = pace_s * max(1, math.ceil(end_s / MAX_BINS / pace_s))
    bins = max(1, math.ceil(end_s / width_s - 1e-9))
    edges_s = np.arange(bins + 1) * width_s
    frames = {name: run.frames[:, k] for k, name in enumerate(FRAME)}
    at_s = frames["now_s"]
    of_frame = np.minimum((at_s / width_s).astype(np.int64), bins - 1)
    counts = np.maximum(np.bincount(of_frame, minlength=bins), 1)

    def mean(values: Floats) -> Floats:
        return np.bincount(of_frame, weights=values, minlength=bins) / counts

    length_s = np.minimum(edges_s[1:], end_s) - edges_s[:-1]
    idle_w = sum(mean(run.paid[:, k]) * (t.idle_power_w + t.host_power_w) for k, t in enumerate(run.setup.terms))
    above_w = np.diff(np.interp(edges_s, at_s, frames["energy_j"])) / np.maximum(length_s, 1e-9)
    usd_per_h = sum(mean(run.paid[:, k]) * t.usd_per_s * 3600.0 for k, t in enumerate(run.setup.terms))
    when = np.clip((np.nan_to_num(run.arrive_s, nan=0.0) / width_s).astype(np.int64), 0, bins - 1)
    shed = np.clip((answer.traffic.split.shed_s / width_s).astype(np.int64), 0, bins - 1)
    came = np.bincount(when, minlength=bins) + np.bincount(shed, minlength=bins)
    good = np.bincount(when, weights=run.within, minlength=bins)
    of_regions = {
        f"{region.name}_requests_per_s": np.bincount(when[run.outcome.region == k], minlength=bins)
        / np.maximum(length_s, 1e-9)
        for k, region in enumerate(run.setup.regions.regions if run.setup.regions else ())
    }
    return {
        "start_s": edges_s[:-1],
        "arrivals_per_s": came / np.maximum(length_s, 1e-9),
        "serving": mean(frames["serving"]),
        "starting": mean(frames["starting"]),
        "lost": mean(frames["lost"]),
        "paid": mean(frames["paid"]),
        "waiting": mean(frames["waiting"]),
        "running": mean(frames["running"]),
        "p99_ttft_s": _by_bin(run.ttft_s, when, bins, 99.0),
        "p99_tpot_s": _by_bin(run.tpot_s, when, bins, 99.0),
        "attained_frac": np.where(came > 0, good / np.maximum(came, 1), np.nan),
        "power_w": np.asarray(idle_w + above_w),
        "usd_per_hour": np.asarray(usd_per_h),
        **of_regions,
    }


def _by_bin(values: Floats, when: Any, bins: int, percent: float) -> Floats:
    """A percentile of each stretch; nan where nothing came."""
    order = np.argsort(when, kind="stable")
    edges = np.searchsorted(when[order], np.arange(bins + 1))
    ordered = values[order]
    return np.array([_quantile(ordered[a:b], percent) or np.nan for a, b in pairwise(edges.tolist())])


def _quantile(values: Floats, percent: float) -> float | None:
    """A percentile of what is there."""
    found = values[np.isfinite(values)]
    return float(np.quantile(found, percent / 100.0)) if found.size else None


def _mean(values: Floats) -> float | None:
    found = values[np.isfinite(values)]
    return float(found.mean()) if found.size else None
