"""The draw at every power limit of a fleet, as a person reads it."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from orrery.base.units import percent, text
from orrery.cli.sheet import Sheet
from orrery.fleet.service.result import FleetRun


def power_rows(run: FleetRun) -> list[tuple[str, str, str]]:
    """The draw of the whole fleet; nothing where nobody metered it."""
    power = run.power
    if power is None or not power.at_s.size:
        return []
    whole, capped = power.limits[0], text(power.capped_s(run.end_s), "s")
    most = text(float(whole.drawn_w.max()), "w")
    if math.isinf(whole.limit.limit_w):
        return [("power", most, f"at most; clocks lowered for {capped}")]
    limit = text(whole.limit.limit_w, "w")
    rest = f"clocks lowered for {capped}, above the budget {percent(whole.over_frac, 1)}"
    return [("power", most, f"at most, of {limit}; {rest}")]


def limit_table(run: FleetRun) -> Sheet | None:
    """Rows and racks, a line each; None where there are none."""
    power = run.power
    if power is None or len(power.limits) < 2 or not power.at_s.size:
        return None
    table = Sheet("", "replicas", "limit", "rated", "p99", "peak", "above it", "throttled", "hurt", left=1)
    for number, one in enumerate(power.limits[1:], start=1):
        has_limit = math.isfinite(one.limit.limit_w)
        over_frac = one.oversubscribed_frac
        rated = text(one.rated_w, "w") + ("" if over_frac is None else f" ({percent(over_frac, is_signed=True)})")
        table.add_row(
            f"{one.limit.kind} {one.limit.name}",
            str(int(one.is_behind.sum())),
            text(one.limit.limit_w, "w") if has_limit else "-",
            rated,
            *(text(float(w), "w") for w in (np.quantile(one.drawn_w, 0.99), one.drawn_w.max())),
            percent(one.over_frac, 1) if has_limit else "-",
            text(one.throttled_s(run.end_s), "s"),
            f"{run.hurt_at(number):,}",
        )
    return table


def steady_limit_table(plain: Mapping[str, Any]) -> Sheet | None:
    """The fleet's, rows' and racks' limits over steady hours, a line each; None where there are none."""
    if "power" not in plain:
        return None
    table = Sheet("", "replicas", "limit", "rated", "mean", "peak hour", "hours above it", "throttled", left=1)
    for one in plain["power"]["limits"]:
        has_limit = one["limit_w"] is not None
        table.add_row(
            one["kind"] if one["kind"] == one["name"] else f"{one['kind']} {one['name']}",
            str(one["replicas"]),
            text(one["limit_w"], "w") if has_limit else "-",
            text(one["rated_w"], "w")
            + (f" ({percent(one['oversubscribed_frac'], is_signed=True)})" if has_limit else ""),
            *(text(one[name], "w") for name in ("mean_w", "peak_hour_w")),
            percent(one["over_limit_frac"], 1) if has_limit else "-",
            text(one["throttled_s"], "s"),
        )
    return table
