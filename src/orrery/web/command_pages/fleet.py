"""``orrery fleet`` as a page: a service over hours or days, with replicas that start, stop and fail."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.drawing import Axis, Series, lines
from orrery.reports.words import format_value
from orrery.scenario.fields import BY_NAME
from orrery.scenario.fields_fleet import FLEET_SETTINGS
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.jobs import DAY
from orrery.web.address import Query, read_by, settings_of
from orrery.web.both_widths import at_both_widths
from orrery.web.command_pages.command_page import CommandPage, Plain, Section, Table, command_line, fields_from
from orrery.web.command_pages.fleet_regions import region_sections
from orrery.web.export import Cell
from orrery.web.forms import Field

OWN = {s.name: s for s in FLEET_SETTINGS}
CLOSED = frozenset({"batch", "concurrency", "users", "think_s"})
"""Settings of closed loops: a fleet takes arrivals."""

FIRST = ("model", "device", "tp", "input_tokens", "output_tokens", "rate", "slo")
FIRST_OWN = ("days", "replicas_min", "replicas_max", "autoscaler", "rate_curve", "cold_start_s")
FOLDED = (
    "weights",
    "kv",
    "engine",
    "queue",
    "router",
    "lora_adapters",
    "lora_rank",
    "lora_popularity",
    "max_loras",
    "usd_per_hour",
    "spare_frac",
    "electricity",
    "seed",
)
LABELS = {
    "slo": "SLOs, ms",
    "days": "Days",
    "replicas_min": "Replicas, at least",
    "replicas_max": "Replicas, at most",
    "cold_start_s": "Cold start, s",
    "rate": "Mean requests/s",
    "cache_moves": "Caches move between regions",
    "region_rtt_ms": "Round trip between regions, ms",
    "egress_usd_per_gb": "$/GB that leaves a region",
}
S_PER_HOUR, S_PER_MINUTE = 3600.0, 60.0
ARRIVALS = "arrivals_per_s"
SHORT_S = 2 * S_PER_HOUR
"""A run of less is told in minutes."""
SWITCHED = {**dict.fromkeys(("true", "1", "on", "yes"), True), **dict.fromkeys(("false", "0", "off", "no"), False)}
CAUSES = {
    "shed": "refused or beyond a budget",
    "fault": "their replica was lost",
    "preemption": "preempted (KV cache full)",
    "cold-start": "waited while a replica started",
    "power-cap": "were slowed by a power cap",
    "queue": "waited in a queue",
    "slow": "too slow in their batch",
}

EVENTS = {
    "start": "Replicas started",
    "ready": "Replicas that became ready",
    "drain": "Replicas drained",
    "release": "Replicas released",
}


SERVED = read_by({"simulate", "fleet"}) - CLOSED


def settings(query: Query) -> dict[str, Any]:
    """Settings of the deployment and of the fleet."""
    found = {k: v for k, v in settings_of(query).items() if k in SERVED}
    for name, setting in OWN.items():
        values = [v.strip() for v in query.getlist(name) if v.strip()]
        if values:
            found[name] = values if setting.kind == "words" else values[-1]
    return found


def answer(inputs: Plain) -> dict[str, Any]:
    """The worker's answer: what the command prints with ``--json``."""
    typed = {name: _typed(name, value) for name, value in inputs.items()}
    return simulate_fleet(**typed).to_json()


def _typed(name: str, value: Any) -> Any:
    kind = (OWN.get(name) or BY_NAME[name]).kind
    if kind != "switch":
        return value
    if str(value).lower() not in SWITCHED:
        raise ScenarioError(f"{name}: got {str(value)[:40]!r}; write true or false.")
    return SWITCHED[str(value).lower()]


def sections(plain: Plain) -> tuple[Section, ...]:
    """Money and attainment first, then why requests missed their SLOs, the pools, and the run over time."""
    if "infeasible" in plain:
        return (Section(title="Infeasible configuration", verdict=plain["infeasible"]["smallest_change"]),)
    if "series" not in plain:
        return _other_sections(plain)
    return (
        Section(
            title="Result",
            verdict=_verdict(plain),
            table=_figures(plain),
            svg=_at_both(plain, "Replicas", ("serving", "paid")),
        ),
        Section(title="Pools", table=_pools(plain), svg=_at_both(plain, "Requests/s", (ARRIVALS,))),
        *region_sections(plain),
        Section(
            title="Time to first token, 99th percentile",
            svg=_at_both(plain, "TTFT", ("p99_ttft_s",), "s"),
            table=_slo(plain),
        ),
    )


def _other_sections(plain: Plain) -> tuple[Section, ...]:
    """Answers that are no single run: steady hours, a size that survives, a mix of devices, a graph of calls,
    replicas under a budget."""
    figures = tuple((name.replace("_", " "), f"{v:.6g}") for name, v in plain.items() if _is_number(v))
    found = [Section(title="Result", table=Table(caption="In SI units", columns=("", "Value"), rows=figures))]
    for name in ("mix", "stages", "regions", "limits", "hours", "oversubscribe", "clusters"):
        rows: list[dict[str, Any]] = (plain.get("power", {}) if name == "limits" else plain).get(name) or []
        if rows:
            columns = tuple(c for c, value in rows[0].items() if not isinstance(value, list | dict))
            cells = tuple(tuple(_cell(row[c]) for c in columns) for row in rows)
            heads = tuple(c.replace("_", " ") for c in columns)
            found.append(Section(title=name.capitalize(), table=Table(caption=name, columns=heads, rows=cells)))
    return tuple(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if _is_number(value) else "-" if value is None else str(value)


def _verdict(plain: Plain) -> str:
    per = plain["usd_per_million_output_tokens"]
    attained = (
        ""
        if plain["attained_frac"] is None
        else f"; {percent(plain['attained_frac'], 2)} of the requests within all SLOs"
    )
    unit_s, unit = _unit_of(plain["duration_s"])
    cost = f"{format_value(plain['cost_usd'], 'usd')} for {plain['duration_s'] / unit_s:.3g} {unit}"
    each = "" if per is None else f" ({format_value(per, 'usd')} per M output tokens)"
    return cost + each + attained


def _unit_of(duration_s: float) -> tuple[float, str]:
    """The unit of time of a run."""
    return (S_PER_MINUTE, "minutes") if duration_s < SHORT_S else (S_PER_HOUR, "hours")


def _figures(plain: Plain) -> Table:
    rows = [("Requests", f"{plain['num_requests']:,}")]
    rows += [
        (f"SLO missed: {CAUSES.get(cause, cause)}", f"{count:,}") for cause, count in plain["hurt"].items() if count
    ]
    rows += [
        ("TTFT, mean", format_value(plain["ttft_s"]["mean"], "s")),
        ("TPOT, mean", format_value(plain["tpot_s"]["mean"], "s")),
        ("Energy of devices", format_value(plain["energy_j"], "j")),
        ("Utilization of paid replicas", percent(plain["busy_frac"], 1)),
    ]
    rows += [(EVENTS.get(what, f"Replicas: {what}"), f"{count:,}") for what, count in plain["scale_events"].items()]
    return Table(caption="One simulated run", columns=("", "Value"), rows=tuple(rows))


def _pools(plain: Plain) -> Table:
    columns = ("Pool", "Replicas", "Mean", "Peak", "Cold start", "Cost")
    rows = tuple(
        (
            f"{p['name']} ({p['purchase']}, {p['devices_per_replica']} x {p['device']})",
            f"{p['replicas_min']} to {p['replicas_max']}",
            f"{p['mean_replicas']:.3g}",
            f"{p['peak_replicas']}",
            format_value(p["cold_start_s"], "s"),
            format_value(p["cost_usd"], "usd"),
        )
        for p in plain["pools"]
    )
    return Table(caption="Replicas that were paid for", columns=columns, rows=rows)


def _slo(plain: Plain) -> Table | None:
    rows = tuple(
        (
            _slo_name(name),
            format_value(o["value_s"], "s"),
            format_value(o["limit_s"], "s"),
            percent(o["attained_frac"], 2),
            "met" if o["is_met"] else "missed",
        )
        for name, o in plain["slo"].items()
    )
    return (
        Table(caption="SLOs over the run", columns=("SLO", "Value", "Limit", "Attained", "Verdict"), rows=rows)
        if rows
        else None
    )


def _slo_name(name: str) -> str:
    """``p99_ttft`` as p99 TTFT."""
    head, _, metric = name.rpartition("_")
    return f"{head} {metric.upper()}".strip()


def _series_name(name: str) -> str:
    """``p99_ttft_s`` as p99 TTFT, ``arrivals_per_s`` as arrivals."""
    bare = name.removesuffix("_s").removesuffix("_per")
    return _slo_name(bare) if bare.endswith(("ttft", "tpot", "itl", "e2el")) else bare.replace("_", " ")


def _at_both(plain: Plain, title: str, names: Sequence[str], unit: str = "") -> str:
    return at_both_widths(partial(_curve, plain, title, names, unit))


def _curve(plain: Plain, title: str, names: Sequence[str], unit: str) -> str:
    unit_s, unit_name = _unit_of(plain["duration_s"])
    times = [s / unit_s for s in plain["series"]["start_s"]]
    found: list[Series] = []
    for name in names:
        pairs = [(x, y) for x, y in zip(times, plain["series"][name], strict=True) if y is not None]
        if name == ARRIVALS and len(pairs) > 2 and not pairs[-1][1]:
            pairs.pop()  # what the last requests take beyond the traffic's end is no hour without traffic
        found.append(
            Series(
                _series_name(name),
                [x for x, _ in pairs],
                [y for _, y in pairs],
            )
        )
    return lines(found, Axis(f"Time ({unit_name})"), Axis(title, unit, low=0.0), title=f"{title} over the run")


def rows(plain: Plain) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """The curves over the run."""
    series = plain.get("series", {})
    return tuple(series), [list(row) for row in zip(*series.values(), strict=True)]


def _first(inputs: Plain) -> tuple[Field, ...]:
    each = [*(BY_NAME[name] for name in FIRST), *(OWN[name] for name in FIRST_OWN)]
    return fields_from(each, inputs, LABELS)


def _folded(inputs: Plain) -> tuple[Field, ...]:
    named = [BY_NAME[name] for name in FOLDED if name in BY_NAME]
    return fields_from([*named, *(s for name, s in OWN.items() if name not in FIRST_OWN)], inputs, LABELS)


PAGE = CommandPage(
    name="fleet",
    title="How many replicas, when, over a day?",
    lead="A service over hours or days, request by request, with replicas that start, stop and fail: money, energy, "
    "SLO attainment, and why requests missed their SLOs.",
    menu=(28, "Fleet"),
    page="fleet.md",
    first=_first,
    folded=_folded,
    settings=settings,
    names=SERVED | {*OWN},
    start=DAY,
    command=command_line("fleet"),
    sections=sections,
    rows=rows,
)
