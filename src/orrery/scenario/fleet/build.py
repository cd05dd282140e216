"""From a fleet as it was written to what is simulated: pools with their terms, an autoscaler, faults."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.catalog.autoscalers import spot_notice_s
from orrery.catalog.faults import PUBLISHED, fault_facts, published_means_s
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.fleet.ownership import Owned
from orrery.fleet.service.disruptions import Disruptions, Outage
from orrery.fleet.service.registry import scaler_of
from orrery.fleet.service.setup import PURCHASES, FleetService, PoolTerms, label
from orrery.hardware.device import Device
from orrery.planner.money import S_PER_HOUR, tariff_of
from orrery.scenario.cold_start import cold_start_of
from orrery.scenario.fleet.blocks import PoolBlock, RegionBlock
from orrery.scenario.fleet.capacity import capacity_of
from orrery.scenario.fleet.placed import PoolInputs, zones_in
from orrery.scenario.fleet.power import power_cap_of, power_notes
from orrery.scenario.fleet.racks import checked_racks, racks_of
from orrery.scenario.fleet.read import FleetInputs
from orrery.scenario.fleet.regions import device_price, region_map_of
from orrery.scenario.objectives import read_objectives
from orrery.scenario.own_price import own_usd_per_hour
from orrery.scenario.ownership import bought, check_ownership, ownership_note, ownership_terms
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.service import service_for
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service

YEAR_S = 365.25 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Built:
    """A fleet ready to be simulated, and what was assumed."""

    setup: FleetService
    notes: tuple[str, ...]


def built(inputs: FleetInputs, requests: Requests, length_s: float) -> Built | Infeasible:
    """The fleet of some inputs for some requests; Infeasible where a model does not fit."""
    checked_racks(inputs)
    service, notes = service_for(_sized(inputs, inputs.pools[0].block, inputs.scenario, 1))
    for pool in service.pools:
        if isinstance(memory := memory_of(pool.deployment), Infeasible):
            return memory
    terms: list[PoolTerms] = []
    pools: list[Pool] = []
    for k, pool_inputs in enumerate(inputs.pools):
        found = _pool(inputs, pool_inputs, k, service)
        if isinstance(found, Infeasible):
            return found
        for pool, term, more in found:
            pools.append(pool)
            terms.append(term)
            notes = (*notes, *more)
    names = [t.name for t in terms]
    if len(set(names)) < len(names):
        raise ScenarioError(f"pool: {max(names, key=names.count)!r} is there twice; give each a name of its own.")
    owned = [p.deployment.cluster.device.name for p, t in zip(pools, terms, strict=True) if t.purchase == "owned"]
    check_ownership(inputs.scenario, dict.fromkeys(owned))
    limits_s = {
        o.metric: min(p.limit_s for p in read_objectives(inputs.scenario.slo) if p.metric == o.metric)
        for o in read_objectives(inputs.scenario.slo)
    }
    scaler = scaler_of(inputs.autoscaler, inputs.knobs) if inputs.autoscaler else None
    prefill_scaler = scaler_of(inputs.prefill_autoscaler, inputs.prefill_knobs) if inputs.prefill_autoscaler else None
    notes = (*notes, *_scaler_notes(inputs, pools, terms))
    cap = power_cap_of(inputs)
    notes = (*notes, *power_notes(cap, terms))
    if rates := _published(inputs):
        notes = (*notes, _rates_note(rates))
    regions, more = region_map_of(inputs, pools, terms, requests, limits_s)
    notes = (*notes, *more)
    setup = FleetService(
        service=replace(service, pools=tuple(pools), max_queue=inputs.top.max_queue or 0),
        terms=tuple(terms),
        scaler=scaler,
        prefill_scaler=prefill_scaler,
        disruptions=_disruptions(inputs),
        capacity_requests_per_s=capacity_of(pools, ("all", "answers"), requests, limits_s),
        prefill_capacity_requests_per_s=capacity_of(pools, ("prompts",), requests, limits_s),
        limits_s=limits_s,
        horizon_s=length_s,
        power_cap=cap,
        regions=regions,
    )
    return Built(setup=setup, notes=tuple(dict.fromkeys(notes)))


def check_runs(setup: FleetService) -> None:
    """Refuse replicas that nobody starts: a minimum of none, without an autoscaler."""
    both = list(zip(setup.service.own_pools, setup.terms, strict=True))
    for kind, scaler, is_prefill in (
        ("", setup.scaler, False),
        ("prefill_", setup.prefill_scaler, True),
    ):
        mine = [terms for pool, terms in both if (pool.role == "prompts") == is_prefill]
        if mine and scaler is None and not any(t.replicas_min for t in mine):
            raise ScenarioError(
                f"{kind}replicas_min: got 0 and no {kind}autoscaler, so nothing ever runs; write {kind}autoscaler = "
                f"hpa, or {kind}replicas_min = 1."
            )


def _scaler_notes(inputs: FleetInputs, pools: list[Pool], terms: list[PoolTerms]) -> tuple[str, ...]:
    """Pools that nobody scales, although they have a range, and autoscalers of pools that have none."""
    found: list[str] = []
    for kind, scaler, is_prefill in (
        ("autoscaler", inputs.autoscaler, False),
        ("prefill_autoscaler", inputs.prefill_autoscaler, True),
    ):
        mine = [t for p, t in zip(pools, terms, strict=True) if (p.role == "prompts") == is_prefill]
        if not scaler and any(t.replicas_min != t.replicas_max for t in mine) and not inputs.faults:
            found.append(f"{kind}: none is given, so every pool runs its minimum; write {kind} = hpa")
        if scaler and all(t.replicas_min == t.replicas_max for t in mine):
            found.append(f"{kind}: {scaler} has nothing to decide, every pool runs one number; write replicas_max")
    return tuple(found)


def _sized(inputs: FleetInputs, block: PoolBlock, scenario: Scenario, replicas: int) -> Scenario:
    """The same scenario with that many replicas, and those for prompts alone that may run."""
    ends = _range(inputs, block, scenario, "prefill_replicas")
    more = {"prefill_replicas": max(1, ends[1])} if ends else {}
    return merged(scenario, {"replicas": replicas, **more})


def _range(inputs: FleetInputs, block: PoolBlock, scenario: Scenario, name: str) -> tuple[int, int] | None:
    """The fewest and the most replicas of a pool; None where nobody speaks of any."""
    low, high = (
        own if (own := getattr(block, f"{name}_{end}")) is not None else getattr(inputs.top, f"{name}_{end}")
        for end in ("min", "max")
    )
    fixed: int | None = getattr(scenario, name)
    if low is None and high is None:
        return None if fixed is None else (fixed, fixed)
    if fixed is not None:
        raise ScenarioError(f"{name}: excludes {name}_min and {name}_max; keep one of both.")
    low = min(1, high) if low is None else low
    return low, (high if high is not None else max(low, 1))


def _pool(
    inputs: FleetInputs, given: PoolInputs, number: int, base: Service
) -> list[tuple[Pool, PoolTerms, tuple[str, ...]]] | Infeasible:
    """The pools of one table: one, or one for prompts and one for outputs."""
    block, scenario = given.block, given.scenario
    name = block.name or inputs.top.name or (f"pool {number + 1}" if len(inputs.pools) > 1 else "pool")
    low, high = _range(inputs, block, scenario, "replicas") or (1, 1)
    service, notes = service_for(_sized(inputs, block, scenario, high or 1))
    if service.pools[0].deployment.model.name != base.pools[0].deployment.model.name:
        raise ScenarioError(
            f"{label(name)}: serves another model; all pools of a service hold the same one. Give each model a "
            "[[service]]."
        )
    found: list[tuple[Pool, PoolTerms, tuple[str, ...]]] = []
    for pool in service.pools:
        if isinstance(memory := memory_of(pool.deployment), Infeasible):
            return memory
        is_prompts = pool.role == "prompts"
        terms, more = _terms(inputs, given, f"{name} for prompts" if is_prompts else name, pool.deployment)
        ends = (_range(inputs, block, scenario, "prefill_replicas") or (1, 1)) if is_prompts else (low, high)
        found.append((pool, replace(terms, replicas_min=ends[0], replicas_max=ends[1]), (*notes, *more)))
    return found


def _terms(
    inputs: FleetInputs, given: PoolInputs, name: str, deployment: Deployment
) -> tuple[PoolTerms, tuple[str, ...]]:
    """Price, power and start of one replica."""
    block, top, scenario = given.block, inputs.top, given.scenario
    device, devices = deployment.cluster.device, deployment.layout.num_devices
    purchase = (block.purchase or top.purchase or "on-demand").strip()
    if purchase not in PURCHASES:
        raise ScenarioError(f"{label(name)}: purchase: got {purchase!r}; write one of {', '.join(PURCHASES)}.")
    region = next((r for r in inputs.regions if r.name == block.region), None)
    device_usd_per_s, notes = _device_usd_per_s(inputs, given, region, device, label(name))
    start_s = block.cold_start_s if block.cold_start_s is not None else top.cold_start_s
    if start_s is None:
        found = cold_start_of(scenario, deployment)
        start_s = found.start.seconds_s
        stages = f"{found.start.start}, weights from {found.start.path}, the longest stage {found.start.longest.name}"
        notes = (*notes, f"{label(name)}: a start takes {start_s:.3g} s ({stages}); see orrery cold-start")
    terms = PoolTerms(
        name=name,
        replicas_min=1,
        replicas_max=1,
        cold_start_s=start_s,
        purchase=purchase,
        usd_per_s=devices * device_usd_per_s,
        idle_power_w=devices * device.idle_power_w,
        host_power_w=devices * _first_given(block.host_power_w, top.host_power_w, device.host_power_w),
        rated_power_w=devices * (device.power_limit_w + device.host_power_w),
        zones=zones_in(top, block, region),
        racks=racks_of(inputs, block),
        power_priority=block.power_priority or top.power_priority or "",
        region=block.region or "",
    )
    return terms, notes


def _device_usd_per_s(
    inputs: FleetInputs, given: PoolInputs, region: RegionBlock | None, device: Device, name: str
) -> tuple[float, tuple[str, ...]]:
    """Dollars a second of one device: of an owned one with a price, its price and upkeep over its life."""
    scenario, purchase = given.scenario, given.block.purchase or inputs.top.purchase or "on-demand"
    price = bought(scenario).get(device.name)
    if purchase == "owned" and price is not None:
        owned = Owned(name=device.name, price_usd=price, power_w=0.0)
        return owned.usd_per_s(ownership_terms(scenario)), (ownership_note(scenario),)
    own = _usd_per_hour(inputs, given, region, device.name)
    tariff = tariff_of(device, own, None)
    if tariff.usd_per_hour is None:
        raise ScenarioError(f"{name}: no price of {device.name} is known; write usd_per_hour = 2.5.")
    if purchase == "on-demand" or own is not None:
        return tariff.usd_per_hour / S_PER_HOUR, tariff.notes
    what = "device_buy_usd or usd_per_hour" if purchase == "owned" else "usd_per_hour"
    note = f"{name}: its price is that of an on-demand device; write {what} for {purchase}"
    return tariff.usd_per_hour / S_PER_HOUR, (*tariff.notes, note)


def _first_given(*values: float | None) -> float:
    """The first value that somebody gave."""
    return next(value for value in values if value is not None)


def _usd_per_hour(inputs: FleetInputs, given: PoolInputs, region: RegionBlock | None, device: str) -> float | None:
    """Price of a device: the pool's own, else its region's, else the fleet's; None: the catalogue's."""
    own = own_usd_per_hour(given.scenario, device)
    if region is None or own != own_usd_per_hour(inputs.scenario, device):
        return own
    there = device_price(region, device)
    return own if there is None else there


def _disruptions(inputs: FleetInputs) -> Disruptions:
    """Faults as they were written."""
    given = {**_published(inputs), **(inputs.faults.written() if inputs.faults else {})}
    if "spot_mtbi_s" in given:
        given.setdefault("spot_notice_s", spot_notice_s())
    if "retry" in given:
        given["retries"] = given.pop("retry")
    if "spot_mtbi_s" in given and not any((p.block.purchase or inputs.top.purchase) == "spot" for p in inputs.pools):
        raise ScenarioError('faults: spot_mtbi_s: no pool is spot; write purchase = "spot" in one.')
    for k, outage in enumerate(inputs.outages, start=1):
        if (outage.zone is None) == (outage.region is None):
            raise ScenarioError(f"[[outage]] {k}: write the zone or the region that is lost, one of both.")
        for name in ("start_s", "length_s"):
            if getattr(outage, name) is None:
                raise ScenarioError(f"[[outage]] {k}: {name} is missing.")
    outages = tuple(
        Outage(zone=o.zone or "", region=o.region or "", start_s=o.start_s or 0.0, length_s=o.length_s or 0.0)
        for o in inputs.outages
    )
    if "region_mtbf_s" in given and not inputs.regions:
        raise ScenarioError("faults: region_mtbf_s: there are no regions; write [[region]].")
    return Disruptions(outages=outages, **given)


def _published(inputs: FleetInputs) -> dict[str, Any]:
    """Published mean times, where they are asked for; those of spot replicas where there are any."""
    name = inputs.top.fault_rates
    if name is None:
        return {}
    if name != PUBLISHED:
        raise ScenarioError(f"fault_rates: got {name!r}; write {PUBLISHED}, or rates of your own in [faults].")
    is_spot = any((p.block.purchase or inputs.top.purchase) == "spot" for p in inputs.pools)
    return {key: value for key, value in published_means_s().items() if is_spot or key != "spot_mtbi_s"}


def _rates_note(rates: Mapping[str, float]) -> str:
    """Where published rates come from, and what they are in years."""
    facts = fault_facts()
    whole, devices = facts["num_interruptions"], facts["num_devices"]
    title = whole.source.title if whole.source else ""
    text = ", ".join(f"{key} = {value:.3g} ({value / YEAR_S:.3g} years)" for key, value in rates.items())
    return f"fault_rates: {text}; from {whole.value:g} interruptions of {devices.value:,.0f} devices, {title}"
