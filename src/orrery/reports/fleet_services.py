"""The report of several services over their days: all of them first, then each beside the others."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from orrery.drawing import Axis, Series, lines
from orrery.reports.fleet import CAUSES, LIMITS, NO_NETWORK, fleet_frame, mean_replicas, pool_rows, slo_rows
from orrery.reports.fleet_pictures import CHARTS
from orrery.reports.report import Figure, Number, Report, Section, Table
from orrery.reports.words import format_value
from orrery.scenario.fleet.answer import FleetAnswer
from orrery.scenario.fleet.mixed import MixedAnswer
from orrery.scenario.fleet.services import ServicesAnswer
from orrery.scenario.fleet.shared import SharedAnswer

OF_REPLICAS = frozenset({"serving", "waiting"})
"""Curves of replicas, whoever they serve."""


def services_report(answer: ServicesAnswer | MixedAnswer) -> Report:
    """Return the report of several services, side by side, on shared replicas or on a mix of devices."""
    parts = answer.parts if isinstance(answer, MixedAnswer) else answer
    each = parts.services
    hours = max(a.run.end_s for a in each.values()) / 3600.0
    settings = {"service": [{"name": name, **a.inputs.written} for name, a in each.items()]}
    return replace(
        fleet_frame(settings, answer.notes),
        title=f"Serving {_names(each)}: a fleet over {format_value(hours, '')} hours",
        question=(f"What does it cost to serve {_names(each)}, and whom do they serve in time?",),
        headline=_headline(parts),
        summary=_summary(parts),
        numbers=_numbers(parts),
        where=_where(answer, each),
        facts=tuple(dict.fromkeys(fact for a in each.values() for fact in a.facts)),
        limits=(*LIMITS, NO_NETWORK),
    )


def _names(each: Iterable[str]) -> str:
    *first, last = each
    return f"{', '.join(first)} and {last}" if first else last


def _headline(parts: ServicesAnswer) -> str:
    """Whether every service meets its SLOs, and what all cost."""
    cost = format_value(parts.total("cost_usd"), "usd")
    missed = [name for name, a in parts.services.items() if a.is_met is False]
    if missed:
        return f"{_names(missed)} {'misses' if len(missed) == 1 else 'miss'} an SLO; all services cost {cost}."
    return f"{'Every SLO is met' if parts.is_met else 'No SLO is given'}; all services cost {cost}."


def _summary(parts: ServicesAnswer) -> tuple[str, ...]:
    """Requests of all, and of each service those hurt; who computed how long where replicas are shared."""
    served = sum(a.run.fates["served"] for a in parts.services.values())
    found = [f"{served:,} of {int(parts.total('num_sent')):,} requests were served."]
    for name, a in parts.services.items():
        hurt = {cause: count for cause, count in a.hurt.items() if count}
        if hurt:
            causes = "; ".join(f"{count:,} {CAUSES[cause]}" for cause, count in hurt.items())
            found.append(f"{name}: {sum(hurt.values()):,} requests were hurt: {causes}.")
        if a.change is not None:
            found.append(f"{name}: the smallest change that meets its SLOs: {a.change.text}, {a.change.difference}.")
    if isinstance(parts, SharedAnswer):
        took = ", ".join(f"{name} {format_value(s, 's')}" for name, s in parts.more["computed_s"].items())
        found.append(f"All stand on the same replicas, which computed for {took}; {parts.run.wakes:,} wakes.")
    return tuple(found)


def _numbers(parts: ServicesAnswer) -> tuple[Number, ...]:
    runs = [a.run for a in parts.services.values()]
    cost, tokens = parts.total("cost_usd"), parts.total("output_tokens")
    per = cost / tokens * 1e6 if tokens else None
    joules = sum(r.energy_j + r.host_energy_j for r in runs)
    rows = (
        ("cost_usd", "Cost of all services", cost, "usd"),
        ("usd_per_million_output_tokens", "Cost of a million output tokens", per, "usd"),
        ("energy_j", "Energy of devices and hosts", joules, "j"),
        ("peak_power_w", "Most that all draw at once", parts.peak_power_w, "w"),
    )
    return tuple(Number(name=n, label=label, value=v, unit=unit) for n, label, v, unit in rows if v is not None)


def _where(answer: ServicesAnswer | MixedAnswer, each: Mapping[str, FleetAnswer]) -> Section:
    """Services, their pools and objectives, and their runs over the hours, a line each."""
    tables = [
        Table(
            title="Services",
            columns=("service", "model", "requests", "in time", "p99 TTFT", "replicas", "cost", "energy"),
            rows=tuple(_row(name, a) for name, a in each.items()),
            num_words=2,
        )
    ]
    if isinstance(answer, MixedAnswer):
        tables.append(_mix(answer))
    heads = ("service", "pool", "replicas", "mean", "peak", "cold start", "cost")
    tables.append(Table(title="Pools", columns=heads, rows=_of_each(each, pool_rows), num_words=2))
    heads = ("service", "SLO", "verdict", "limit", "reached", "requests within")
    tables.append(Table(title="SLOs", columns=heads, rows=_of_each(each, slo_rows), num_words=3))
    return Section(
        heading="The services over their hours",
        tables=tuple(t for t in tables if t.rows),
        figures=tuple(
            _figure(title, axis, curves[0][1], each, is_one=isinstance(answer, SharedAnswer))
            for title, axis, curves in CHARTS
        ),
    )


def _row(name: str, a: FleetAnswer) -> tuple[str, ...]:
    ttft_s = a.run.ttft_s[np.isfinite(a.run.ttft_s)]
    return (
        name,
        a.run.setup.service.pools[0].deployment.model.name,
        f"{a.num_sent:,}",
        "-" if a.attained_frac is None else format_value(a.attained_frac, "frac"),
        format_value(float(np.quantile(ttft_s, 0.99)), "s") if ttft_s.size else "-",
        format_value(mean_replicas(a), ""),
        format_value(a.cost_usd, "usd"),
        format_value(a.run.energy_j + a.run.host_energy_j, "j"),
    )


def _mix(answer: MixedAnswer) -> Table:
    """Replicas that the integer program rents."""
    rows = tuple(
        (
            str(r["service"]),
            str(r["device"]),
            str(r["tp"]),
            str(r["replicas"]),
            format_value(r["requests_frac"], "frac"),
            f"{format_value(r['usd_per_hour'], 'usd')}/h",
        )
        for r in answer.rows
    )
    heads = ("service", "device", "tp", "replicas", "requests", "rent")
    return Table(title="Rented replicas", columns=heads, rows=rows, num_words=2)


def _of_each(
    each: Mapping[str, FleetAnswer], rows_of: Callable[[FleetAnswer], Iterable[tuple[str, ...]]]
) -> tuple[tuple[str, ...], ...]:
    """Rows of every service, with its name before them."""
    return tuple((name, *row) for name, a in each.items() for row in rows_of(a))


def _figure(title: str, axis: Axis, key: str, each: Mapping[str, FleetAnswer], *, is_one: bool) -> Figure:
    """One curve of every service; replicas and queues that are shared (``is_one``) are one curve."""
    shown = {"all services": next(iter(each.values()))} if is_one and key in OF_REPLICAS else each
    drawn = [Series(name, (a.series["start_s"] / 3600.0).tolist(), a.series[key].tolist()) for name, a in shown.items()]
    about = f"{title} of all services." if shown is not each else f"{title}, a line for each service."
    return Figure(title=title, summary=about, svg=lines(drawn, Axis("Time (hours)"), axis, title=title))
