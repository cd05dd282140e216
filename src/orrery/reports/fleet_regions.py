"""Regions and origins of a fleet in its report: tables, the picture of who serves when, and what the router changes."""

import numpy as np

from orrery.drawing import Axis, Series, lines
from orrery.reports.report import Figure, Number, Table
from orrery.reports.words import format_value
from orrery.scenario.fleet.answer import FleetAnswer
from orrery.scenario.fleet.by_region import Latencies


def region_tables(answer: FleetAnswer) -> tuple[Table, ...]:
    """One row a region and one an origin; none without regions."""
    found = answer.by_region
    if found is None:
        return ()
    regions = tuple(
        (
            r.name,
            f"{r.num_requests:,}",
            format_value(r.guests_frac, "frac"),
            _share(r.attained_frac),
            _slow(r.latencies),
            format_value(r.num_replicas, ""),
            format_value(r.cost_usd, "usd"),
            format_value(r.energy_j, "j"),
            "-" if r.carbon_g is None else f"{format_value(r.carbon_g / 1e3, '')} kg",
        )
        for r in found.regions
    )
    origins = tuple(
        (
            o.name,
            f"{o.num_requests:,}",
            _share(o.attained_frac),
            _slow(o.latencies),
            format_value(o.elsewhere_frac, "frac"),
        )
        for o in found.origins
    )
    heads = ("region", "requests", "guests", "in time", "p99 TTFT", "replicas", "cost", "energy", "CO2")
    return (
        Table(title="Regions", columns=heads, rows=regions),
        Table(title="Origins", columns=("origin", "requests", "in time", "p99 TTFT", "elsewhere"), rows=origins),
    )


def region_figures(answer: FleetAnswer) -> tuple[Figure, ...]:
    """Requests that each region serves over the run; none without regions."""
    regions = answer.run.setup.regions
    if regions is None:
        return ()
    title = "Requests/s by region"
    hours = (answer.series["start_s"] / 3600.0).tolist()
    curves = [Series(r.name, hours, answer.series[f"{r.name}_requests_per_s"].tolist()) for r in regions.regions]
    svg = lines(curves, Axis("Time (hours, UTC)"), Axis("Requests/s", low=0.0), title=title)
    return (Figure(title=title, summary=f"{title}.", svg=svg),)


def region_numbers(answer: FleetAnswer) -> tuple[Number, ...]:
    """CO2 and the share that is served elsewhere, where they are known."""
    found: list[Number] = []
    if answer.carbon_g is not None:
        found.append(
            Number(name="carbon_g", label="CO2 of devices and hosts, kg", value=answer.carbon_g / 1e3, unit="")
        )
    if answer.by_region is not None:
        value = answer.by_region.elsewhere_frac
        found.append(
            Number(name="elsewhere_frac", label="Requests not in their nearest region", value=value, unit="frac")
        )
    return tuple(found)


def _share(value: float | None) -> str:
    return "-" if value is None else format_value(value, "frac")


def _slow(latencies: Latencies) -> str:
    value = latencies.ttft_s["p99"]
    return "-" if value is None or not np.isfinite(value) else format_value(value, "s")
