"""Limits on a fleet's power: what each carries, the rule that lowers clocks near it, and how quick meters and clocks
are.

A budget is of all replicas; ``[[row]]`` and ``[[rack]]`` are breakers of their own, and pools say in which racks their
replicas stand.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.extension_points import knobs_from
from orrery.base.units import percent
from orrery.fleet.power import POWER_CAPS
from orrery.fleet.power.capping import Clocks, Reading
from orrery.fleet.service.power_places import places_of
from orrery.fleet.service.power_readings import LimitReadings, PowerCap, PowerLimit
from orrery.fleet.service.result import FleetRun
from orrery.fleet.service.setup import FleetService, PoolTerms
from orrery.fleet.service.steady import Hour
from orrery.scenario.fleet.blocks import RowBlock
from orrery.scenario.fleet.racks import racks_by_row
from orrery.scenario.fleet.read import FleetInputs, knobs_written
from orrery.scenario.power_row import DEFAULT_CAP
from orrery.serving.requests import Floats

NEEDS_LIMIT = ("power_cap", "power_low_frac", "power_reading_s", "power_delay_s", "power_cap_knob", "power_priority")

OF_LIMITS = frozenset({"power_budget_w", "row", "rack", *NEEDS_LIMIT} - {"power_priority"})
"""Settings of limits; what is left is of the replicas behind them."""

SIMULATED = {
    "graph": "a graph's calls are placed, not simulated",
    "mix": "a mix has no row of its own",
    "survive": "clocks follow readings, which are simulated",
    "share": "models that share replicas are simulated without limits",
}
"""Ways of asking that have no use for a power limit at the top, and why."""


def check_power(settings: Mapping[str, Any]) -> None:
    """Refuse a power limit where nothing would follow it."""
    if settings.get("oversubscribe") and settings.get("steady"):
        raise ScenarioError("oversubscribe: how late requests are is simulated; leave steady out.")
    for name in ("power_budget_w", "row", "rack", "oversubscribe", "power_late", *NEEDS_LIMIT):
        for way, why in SIMULATED.items():
            if settings.get(name) and settings.get(way):
                raise ScenarioError(f"{name}: {why}; leave {way} out.")
    for name in ("oversubscribe", "power_late"):
        if settings.get(name) and settings.get("service"):
            raise ScenarioError(f"{name}: is asked of one service; leave out [[service]].")


def power_cap_of(inputs: FleetInputs) -> PowerCap | None:
    """The limits that are asked for, the whole fleet's first; None where nothing is limited or metered."""
    top = inputs.top
    stands = [*inputs.rows, *inputs.racks]
    if top.power_low_frac is not None and all(p.block.power_priority or top.power_priority for p in inputs.pools):
        raise ScenarioError("power_low_frac: every pool says its power_priority; leave one of both out.")
    if top.power_budget_w is None and all(block.limit_w is None for block, _ in stands):
        _refuse_unused(inputs, is_metered=bool(stands))
        if not stands:
            return None
    knobs = knobs_written("power_cap_knob", top.power_cap_knob, "first_frac=0.8")
    whole = PowerLimit()
    if top.power_budget_w is not None:
        whole = PowerLimit(limit_w=top.power_budget_w, rule=_rule(top.power_cap, knobs))
    places = racks_by_row(inputs)
    rows = (_limit("row", block, more, frozenset(places[block.name or ""]), inputs) for block, more in inputs.rows)
    racks = (_limit("rack", block, more, frozenset({block.name or ""}), inputs) for block, more in inputs.racks)
    given = {
        "low_priority_frac": top.power_low_frac,
        "reading_s": top.power_reading_s,
        "delay_s": top.power_delay_s,
    }
    return PowerCap(limits=(whole, *rows, *racks), **{key: value for key, value in given.items() if value is not None})


def _refuse_unused(inputs: FleetInputs, *, is_metered: bool) -> None:
    """Refuse settings of limits where there is none."""
    given = [n for n in NEEDS_LIMIT if getattr(inputs.top, n) and not (is_metered and n == "power_reading_s")]
    given += [f"pool {p.block.name or ''}: power_priority" for p in inputs.pools if p.block.power_priority]
    if given:
        raise ScenarioError(f"{given[0]}: is for a power limit; write power_budget_w too, or limit_w in a [[row]].")


def _limit(
    kind: str, block: RowBlock, more: Mapping[str, Any], racks: frozenset[str], inputs: FleetInputs
) -> PowerLimit:
    """A row's or a rack's limit; its rule and knobs are those at the top where it does not say its own."""
    name, top = block.name or "", inputs.top
    if block.limit_w is None:
        if given := [*(["power_cap"] if block.power_cap else []), *more]:
            raise ScenarioError(f"{kind} {name}: {given[0]}: is for a limit; write limit_w = 40000 beside it.")
        return PowerLimit(name=name, kind=kind, racks=racks)
    own = {key: str(value) for key, value in more.items()}
    if block.power_cap is None:
        own = {**knobs_written("power_cap_knob", top.power_cap_knob, "first_frac=0.8"), **own}
    rule = _rule(block.power_cap or top.power_cap, own)
    return PowerLimit(name=name, kind=kind, limit_w=block.limit_w, rule=rule, racks=racks)


def _rule(word: str | None, knobs: Mapping[str, str]) -> Callable[[Reading], Clocks]:
    """The rule that a setting names, with its knobs."""
    technique = POWER_CAPS.get(word or DEFAULT_CAP)
    found = knobs_from(technique, knobs)

    def rule(reading: Reading) -> Clocks:
        answer: Clocks = technique.rule(reading, found)
        return answer

    return rule


def power_notes(cap: PowerCap | None, terms: list[PoolTerms]) -> tuple[str, ...]:
    """Assumptions, and pools whose hosts are not counted."""
    if cap is None:
        return ()
    unknown = [t.name for t in terms if not t.host_power_w]
    is_shared = any(not t.power_priority for t in terms)
    share = f"{percent(cap.low_priority_frac)} of the replicas" if is_shared else "replicas of low priority"
    return (
        f"power: the draw is read every {cap.reading_s:g} s, clocks follow after {cap.delay_s:g} s, and "
        f"{share} are slowed first; a step's arithmetic slows with the clock and its memory does not",
        *(f"power: what the hosts of {name} draw is not known; devices alone are counted" for name in unknown),
    )


def power_json(run: FleetRun) -> dict[str, Any]:
    """Readings of the meters as plain data; nothing without a power limit."""
    found = run.power
    if found is None:
        return {}
    whole = found.limits[0]
    return {
        "power": {
            "budget_w": _finite(whole.limit.limit_w),
            **_draw(whole),
            "over_budget_frac": whole.over_frac,
            "capped_s": found.capped_s(run.end_s),
            "num_clock_changes": int(found.changed_s.size),
            "lowest_clock_frac": float(found.clock_frac.min(initial=1.0)),
            "limits": [_limit_json(run, k, one) for k, one in enumerate(found.limits)],
        }
    }


def steady_power_json(setup: FleetService, hours: Sequence[Hour], lengths_s: Floats) -> dict[str, Any]:
    """The hours of a fleet at every limit as plain data, in the words of a run's readings; nothing without limits."""
    capped = [h.capped for h in hours]
    cap, found = setup.power_cap, [c for c in capped if c is not None]
    if cap is None or len(found) < len(capped):
        return {}
    places, part = places_of(cap, setup.terms), lengths_s / lengths_s.sum()
    rows: list[dict[str, Any]] = []
    for k, limit in enumerate(cap.limits):
        drawn_w = np.array([c.drawn_w[k] for c in found])
        rated_w, is_finite = float(places.rated_w[places.is_behind[k]].sum()), np.isfinite(limit.limit_w)
        rows.append(
            {
                "name": limit.name,
                "kind": limit.kind,
                "limit_w": _finite(limit.limit_w),
                "replicas": int(places.is_behind[k].sum()),
                "rated_w": rated_w,
                "oversubscribed_frac": rated_w / limit.limit_w - 1.0 if is_finite else None,
                "mean_w": float(drawn_w @ part),
                "peak_hour_w": float(drawn_w.max()),
                "over_limit_frac": float((drawn_w > limit.limit_w) @ part),
                "throttled_s": float(np.array([c.throttled_frac[k] for c in found]) @ lengths_s),
            }
        )
    lowest = min(c.clock_frac for c in found)
    return {"power": {"budget_w": rows[0]["limit_w"], "lowest_mean_clock_frac": lowest, "limits": rows}}


def _limit_json(run: FleetRun, number: int, one: LimitReadings) -> dict[str, Any]:
    return {
        "name": one.limit.name,
        "kind": one.limit.kind,
        "limit_w": _finite(one.limit.limit_w),
        "replicas": int(one.is_behind.sum()),
        "rated_w": one.rated_w,
        "oversubscribed_frac": one.oversubscribed_frac,
        **_draw(one),
        "over_limit_frac": one.over_frac,
        "throttled_s": one.throttled_s(run.end_s),
        "num_clock_changes": int(one.changed_s.size),
        "lowest_clock_frac": float(one.clock_frac.min(initial=1.0)),
        "hurt": run.hurt_at(number),
    }


def _draw(one: LimitReadings) -> dict[str, float | None]:
    """Mean, 99th percentile and highest of the readings."""
    drawn = one.drawn_w
    if not drawn.size:
        return {"mean_w": None, "p99_w": None, "peak_w": None}
    return {"mean_w": float(drawn.mean()), "p99_w": float(np.quantile(drawn, 0.99)), "peak_w": float(drawn.max())}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
