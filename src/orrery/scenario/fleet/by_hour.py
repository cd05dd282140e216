"""Cost and emissions of a fleet's power by hour: prices and carbon of a table, energy at the meter."""

from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.fleet.hours.shift import Hours
from orrery.fleet.regions.region_map import RegionMap
from orrery.fleet.service.rate_curve import HOUR_S
from orrery.fleet.service.result import FRAME, FleetRun
from orrery.fleet.service.setup import FleetService
from orrery.planner.money import J_PER_KWH
from orrery.scenario.answer import to_json
from orrery.scenario.fleet.read import FleetInputs
from orrery.serving.requests import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Start of a run in the week of UTC, and how far the clock of a table of hours is ahead of it.

    Row 0 of a table is midnight (Monday's of a table of a week), and the table goes round.
    """

    start_s: float
    offset_s: float = 0.0

    def edges(self, hours: Hours, length_s: float) -> tuple[Floats, Ints]:
        """Moments of a run at which an hour of either clock begins, and the row of the table between them."""
        parts = {0.0, self.offset_s % HOUR_S}
        found = np.unique(np.concatenate([self._hours(length_s, ahead_s) for ahead_s in sorted(parts)]))
        middle_s = (found[1:] + found[:-1]) / 2.0 + self.start_s + self.offset_s
        return found, np.floor(middle_s / HOUR_S).astype(np.int64) % hours.usd_per_j.size

    def _hours(self, length_s: float, ahead_s: float = 0.0) -> Floats:
        """Edges of the hours of a clock within a run, from its start."""
        start_s = self.start_s + ahead_s
        first = floor(start_s / HOUR_S + 1e-9)
        last = max(first + 1, ceil((start_s + length_s) / HOUR_S - 1e-9))
        return np.clip(np.arange(first, last + 1, dtype=np.float64) * HOUR_S - start_s, 0.0, length_s)

    def whole_hours(self, found: "ByHour", length_s: float) -> "ByHour":
        """The same by the hours of UTC, where the table's own begin in between."""
        first = np.searchsorted(found.start_s, self._hours(length_s)[:-1])
        if first.size == found.start_s.size:
            return found
        length = np.add.reduceat(found.length_s, first)

        def mean(values: Floats) -> Floats:
            return np.asarray(np.add.reduceat(values * found.length_s, first) / length)

        return ByHour(
            start_s=found.start_s[first],
            energy_j=np.add.reduceat(found.energy_j, first),
            usd=np.add.reduceat(found.usd, first),
            carbon_g=np.add.reduceat(found.carbon_g, first),
            length_s=length,
            usd_per_j=mean(found.usd_per_j),
            joule_carbon_g=mean(found.joule_carbon_g),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByHour:
    """One value an hour of the clock, from that in which the run starts."""

    start_s: Floats  # from the start of the run
    energy_j: Floats  # at the meter: devices and hosts, times the PUE
    usd: Floats  # of owned pools; 0 where a rent contains electricity
    carbon_g: Floats
    length_s: Floats
    usd_per_j: Floats  # at the meter
    joule_carbon_g: Floats

    @property
    def whole_hours(self) -> NDArray[np.bool_]:
        """Which hours the run has whole: its first and last ones may be cut."""
        return self.length_s >= HOUR_S * (1.0 - 1e-9)

    def to_json(self) -> dict[str, Any]:
        """The hours as plain data."""
        return to_json({name: getattr(self, name) for name in ("start_s", "energy_j", "usd", "carbon_g")})


def electricity_usd(inputs: FleetInputs, joules: float, by_hour: ByHour | None) -> float:
    """Electricity of devices and hosts, where it is priced apart: at one price, or at those of the hours."""
    if by_hour is not None and (inputs.regions or is_priced(inputs)):
        return float(by_hour.usd.sum())
    return joules / J_PER_KWH * (inputs.scenario.electricity or 0.0) * pue_ratio(inputs)


def pue_ratio(inputs: FleetInputs) -> float:
    """Power usage effectiveness: the site's power over that of devices and hosts; 1 where none is stated."""
    return inputs.scenario.pue or 1.0


def is_priced(inputs: FleetInputs) -> bool:
    """Whether the table of hours has prices."""
    return inputs.hours is not None and bool(inputs.hours.usd_per_j.any())


def check_hours(inputs: FleetInputs, setup: FleetService) -> tuple[str, ...]:
    """Notes on who pays for electricity; ScenarioError where the hours' prices cannot be applied."""
    scenario = inputs.scenario
    if setup.regions is not None:
        return _check_regions(inputs, setup, setup.regions)
    if inputs.hours is None:
        is_idle = scenario.pue is not None and scenario.electricity is None
        return ("pue: not used; write electricity or hours",) if is_idle else ()
    notes = () if scenario.pue is not None else ("pue: 1 (nothing said)",)
    if not is_priced(inputs):
        return notes
    if scenario.electricity is not None:
        raise ScenarioError("electricity: the table of hours has prices already; leave one of both out.")
    owned = {t.purchase == "owned" for t in setup.terms}
    if owned == {True, False} and inputs.top.steady:
        raise ScenarioError(
            "hours: usd_per_kwh is paid by owned pools, and steady hours do not keep apart what pools draw above idle; "
            "write purchase = owned for all of them, leave the column out, or leave out steady."
        )
    if owned == {False}:
        notes = (*notes, "hours: usd_per_kwh is not used: no pool is owned, and a rent contains electricity")
    return notes


def _check_regions(inputs: FleetInputs, setup: FleetService, regions: RegionMap) -> tuple[str, ...]:
    """The same of regions, each with its own hours."""
    if inputs.hours is not None:
        raise ScenarioError("hours: every region has its own; write hours in each [[region]].")
    if inputs.scenario.electricity is not None:
        raise ScenarioError("electricity: every region has its own; write usd_per_kwh in each [[region]].")
    notes: list[str] = []
    for region in regions.regions:
        mine = {t.purchase == "owned" for t in setup.terms if t.region == region.name}
        has_price = region.hours is not None and bool(region.hours.usd_per_j.any())
        if has_price and mine == {True, False} and inputs.top.steady:
            raise ScenarioError(
                f"region {region.name}: its price of electricity is paid by owned pools, and steady hours do not keep "
                "apart what pools draw above idle; write purchase = owned for all of them, or leave out steady."
            )
        if has_price and mine == {False}:
            notes.append(f"region {region.name}: its price of electricity is not used: a rent contains electricity")
    return tuple(notes)


def by_hour_of_run(inputs: FleetInputs, run: FleetRun) -> ByHour | None:
    """A run's energy in every hour of the clock; None without a table."""
    if run.setup.regions is not None:
        return together([found for found in by_region_of_run(run).values() if found is not None])
    if inputs.hours is None:
        return None
    clock = Clock(start_s=HOUR_S * (inputs.top.start_hour or 0.0))
    owned = tuple(k for k, t in enumerate(run.setup.terms) if t.purchase == "owned")
    return _of_pools(run, inputs.hours, pue_ratio(inputs), clock, None, owned)


def by_region_of_run(run: FleetRun) -> dict[str, ByHour | None]:
    """A run's energy in every region, in every hour of UTC; None where a region has no table."""
    found: dict[str, ByHour | None] = {}
    regions = run.setup.regions
    for region in regions.regions if regions else ():
        mine = tuple(k for k, t in enumerate(run.setup.terms) if t.region == region.name)
        owned = tuple(k for k in mine if run.setup.terms[k].purchase == "owned")
        clock = Clock(start_s=regions.start_s if regions else 0.0, offset_s=region.utc_offset_s)
        hours = region.hours
        found[region.name] = hours and _of_pools(run, hours, region.pue_ratio, clock, mine, owned)
    return found


def _of_pools(
    run: FleetRun, hours: Hours, pue: float, clock: Clock, pools: tuple[int, ...] | None, owned: tuple[int, ...]
) -> ByHour:
    """Energy of some pools (all: None), and the part that owned ones pay for."""
    edges_s, rows = clock.edges(hours, run.end_s)
    drawn_j, paid_j = drawn_until_j(run, edges_s, pools), drawn_until_j(run, edges_s, owned)
    return clock.whole_hours(_priced(hours, pue, edges_s, rows, drawn_j, paid_j), run.end_s)


def by_hour_of_steady(inputs: FleetInputs, setup: FleetService, lengths_s: Floats, power_w: Floats) -> ByHour | None:
    """The same of steady hours, which count from the start of the run."""
    if inputs.hours is None:
        return None
    clock = Clock(start_s=HOUR_S * (inputs.top.start_hour or 0.0))
    is_paid = all(t.purchase == "owned" for t in setup.terms)
    return steady_by_hour(inputs.hours, pue_ratio(inputs), clock, lengths_s, power_w, is_paid=is_paid)


def steady_by_hour(
    hours: Hours, pue: float, clock: Clock, lengths_s: Floats, power_w: Floats, *, is_paid: bool
) -> ByHour:
    """Price and carbon of a power that is constant over each of some stretches."""
    at_s, drawn_j = (np.concatenate(([0.0], np.cumsum(v))) for v in (lengths_s, lengths_s * power_w))
    edges_s, rows = clock.edges(hours, float(at_s[-1]))
    all_j = np.interp(edges_s, at_s, drawn_j)
    found = _priced(hours, pue, edges_s, rows, all_j, all_j * float(is_paid))
    return clock.whole_hours(found, float(at_s[-1]))


def together(found: list[ByHour]) -> ByHour | None:
    """Several regions in one: sums, and means of price and carbon by the energy they were met with; None of none."""
    if not found:
        return None
    first = found[0]

    def total(name: str) -> Floats:
        return np.asarray(sum(getattr(f, name) for f in found), dtype=np.float64)

    energy_j = total("energy_j")
    parts = [np.where(energy_j > 0.0, f.energy_j / np.maximum(energy_j, 1e-300), 1.0 / len(found)) for f in found]
    return ByHour(
        start_s=first.start_s,
        energy_j=energy_j,
        usd=total("usd"),
        carbon_g=total("carbon_g"),
        length_s=first.length_s,
        usd_per_j=np.asarray(sum(p * f.usd_per_j for p, f in zip(parts, found, strict=True))),
        joule_carbon_g=np.asarray(sum(p * f.joule_carbon_g for p, f in zip(parts, found, strict=True))),
    )


def drawn_until_j(run: FleetRun, at_s: Floats, pools: tuple[int, ...] | None = None) -> Floats:
    """Joules of devices and hosts up to moments of a run, of all pools or of some: idle power by replica, and what
    steps add between samples."""
    counted = list(range(len(run.setup.terms)) if pools is None else pools)
    total = np.zeros(at_s.size)
    for pool in counted:
        t = run.setup.terms[pool]
        watts = t.idle_power_w + t.host_power_w
        if t.purchase == "owned":
            total += t.replicas_max * watts * at_s
            continue
        for span in run.spans:
            if span.pool == pool and span.start_s < run.end_s:
                total += watts * (np.clip(at_s, span.start_s, min(span.end_s, run.end_s)) - span.start_s)
    spent_j: Floats = run.spent_j[:, counted].sum(axis=1)
    above = np.interp(at_s, run.frames[:, FRAME.index("now_s")], spent_j[:-1])
    return np.asarray(total + np.where(at_s < run.end_s, above, spent_j[-1]), dtype=np.float64)


def _priced(hours: Hours, pue: float, edges_s: Floats, rows: Ints, drawn_j: Floats, paid_j: Floats) -> ByHour:
    """Price and carbon of what is drawn between edges, where only a part of it is paid for apart."""
    metered_j = np.diff(drawn_j) * pue
    return ByHour(
        start_s=edges_s[:-1],
        energy_j=metered_j,
        usd=np.diff(paid_j) * pue * hours.usd_per_j[rows],
        carbon_g=metered_j * hours.carbon_g[rows],
        length_s=np.diff(edges_s),
        usd_per_j=hours.usd_per_j[rows],
        joule_carbon_g=hours.carbon_g[rows],
    )
