"""The power cap of a fleet: its limit, the rule that lowers clocks, and how quick meter and clocks are."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.technique import Technique
from orrery.fleet.power import POWER_CAPS
from orrery.fleet.service.power_readings import PowerCap
from orrery.fleet.service.result import FleetRun
from orrery.fleet.service.setup import PoolTerms
from orrery.scenario.fleet.blocks import FleetTop
from orrery.scenario.power_row import power_cap_name

NEEDS_BUDGET = ("power_cap", "power_low_frac", "power_reading_s", "power_delay_s")

SIMULATED = {
    "graph": "a graph's calls are placed, not simulated",
    "mix": "a mix has no row of its own",
    "steady": "clocks follow readings, which are simulated",
    "survive": "clocks follow readings, which are simulated",
    "service": "each service has a row of its own: write it in every [[service]]",
}
"""Ways of asking that have no use for a power cap at the top, and why."""


def check_power(settings: Mapping[str, Any]) -> None:
    """Refuse a power cap where nothing would follow it."""
    for name in ("power_budget_w", "power_cap_knob", *NEEDS_BUDGET):
        for way, why in SIMULATED.items():
            if settings.get(name) and settings.get(way):
                raise ScenarioError(f"{name}: {why}; leave {name if way == 'service' else way} out.")


def power_cap_of(top: FleetTop) -> PowerCap | None:
    """The cap that is asked for; None without a budget."""
    if top.power_budget_w is None:
        for name in NEEDS_BUDGET:
            if getattr(top, name) is not None:
                raise ScenarioError(f"{name}: is for a power budget; write power_budget_w too.")
        if top.power_cap_knob:
            raise ScenarioError("power_cap_knob: is for a power budget; write power_budget_w too.")
        return None
    technique = POWER_CAPS.get(power_cap_name(top.power_cap))
    knobs = technique.knobs(**_knobs(technique, top.power_cap_knob))
    given = {
        "low_priority_frac": top.power_low_frac,
        "reading_s": top.power_reading_s,
        "delay_s": top.power_delay_s,
    }
    return PowerCap(
        limit_w=top.power_budget_w,
        rule=lambda reading: technique.rule(reading, knobs),
        **{key: value for key, value in given.items() if value is not None},
    )


def _knobs(technique: Technique, texts: tuple[str, ...]) -> dict[str, float]:
    known = {f.name for f in fields(technique.knobs)}
    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name.strip() not in known:
            raise ScenarioError(f"power_cap_knob: {technique.word} has no {name!r}; it has {', '.join(sorted(known))}.")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise ScenarioError(f"power_cap_knob: got {text!r}; write {name}=0.8.") from None
    return found


def power_notes(cap: PowerCap | None, terms: list[PoolTerms]) -> tuple[str, ...]:
    """Assumptions, and pools whose hosts are not counted."""
    if cap is None:
        return ()
    unknown = [t.name for t in terms if not t.host_power_w]
    return (
        f"power: the draw is read every {cap.reading_s:g} s, clocks follow after {cap.delay_s:g} s, and "
        f"{cap.low_priority_frac:.0%} of the replicas are slowed first; a step's arithmetic slows with the clock and "
        "its memory does not",
        *(f"power: what the hosts of {name} draw is not known; devices alone are counted" for name in unknown),
    )


def power_json(run: FleetRun) -> dict[str, Any]:
    """Readings of the meter as plain data; nothing without a power cap."""
    found = run.power
    if found is None:
        return {}
    return {
        "power": {
            "budget_w": found.limit_w,
            "mean_w": float(found.drawn_w.mean()) if found.drawn_w.size else None,
            "peak_w": float(found.drawn_w.max()) if found.drawn_w.size else None,
            "over_budget_frac": found.over_frac,
            "capped_s": found.capped_s(run.end_s),
            "num_clock_changes": int(found.changed_s.size),
            "lowest_clock_frac": float(found.clock_frac.min(initial=1.0)),
        }
    }
