"""Cost and emissions of a fleet's power by hour: prices and carbon of a table, energy at the meter."""

from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.fleet.hours.shift import Hours
from orrery.fleet.service.rate_curve import HOUR_S
from orrery.fleet.service.result import FRAME, FleetRun
from orrery.fleet.service.setup import FleetService
from orrery.planner.money import J_PER_KWH
from orrery.scenario.answer import to_json
from orrery.scenario.fleet.read import FleetInputs
from orrery.serving.requests import Floats, Ints


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
    if by_hour is not None and is_priced(inputs):
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


def by_hour_of_run(inputs: FleetInputs, run: FleetRun) -> ByHour | None:
    """A run's energy in every hour of the clock; None without a table."""
    if inputs.hours is None:
        return None
    edges_s, rows = _clock(inputs, inputs.hours, run.end_s)
    owned = tuple(k for k, t in enumerate(run.setup.terms) if t.purchase == "owned")
    paid_j = drawn_until_j(run, edges_s, owned)
    return _priced(inputs.hours, pue_ratio(inputs), edges_s, rows, drawn_until_j(run, edges_s), paid_j)


def by_hour_of_steady(inputs: FleetInputs, setup: FleetService, lengths_s: Floats, power_w: Floats) -> ByHour | None:
    """The same of steady hours, which count from the start of the run."""
    if inputs.hours is None:
        return None
    at_s, drawn_j = (np.concatenate(([0.0], np.cumsum(v))) for v in (lengths_s, lengths_s * power_w))
    edges_s, rows = _clock(inputs, inputs.hours, float(at_s[-1]))
    all_j = np.interp(edges_s, at_s, drawn_j)
    paid_j = all_j * float(all(t.purchase == "owned" for t in setup.terms))
    return _priced(inputs.hours, pue_ratio(inputs), edges_s, rows, all_j, paid_j)


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


def _clock(inputs: FleetInputs, hours: Hours, length_s: float) -> tuple[Floats, Ints]:
    """Edges of the clock's hours within a run, from its start, and the row of the table that each hour has.

    Row 0 is midnight (Monday's of a table of a week), and the table goes round.
    """
    start_s = HOUR_S * (inputs.top.start_hour or 0.0)
    first = floor(start_s / HOUR_S + 1e-9)
    last = max(first + 1, ceil((start_s + length_s) / HOUR_S - 1e-9))
    edges_s = np.clip(np.arange(first, last + 1, dtype=np.float64) * HOUR_S - start_s, 0.0, length_s)
    return edges_s, np.arange(first, last) % hours.usd_per_j.size


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
