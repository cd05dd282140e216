"""The report of a fleet over its days: the answer, the money and the risk first, then the pictures of the run."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from orrery import __version__
from orrery.reports.fleet_pictures import charts
from orrery.reports.fleet_regions import region_figures, region_numbers, region_tables
from orrery.reports.report import Command, Figure, Number, Report, Section, Table
from orrery.reports.words import format_value
from orrery.scenario.fleet.answer import FleetAnswer, event_counts

CAUSES = {
    "shed": "refused, or beyond a budget",
    "fault": "their replica was lost",
    "preemption": "preempted: the KV cache was full",
    "cold-start": "waited while a replica started",
    "power-cap": "were slowed by a power cap",
    "queue": "waited in a queue",
    "slow": "too slow in their batch",
}

NO_NETWORK = "Clients and the network to them are not simulated."
NETWORK = "Round trips are medians that do not move; a user's own access comes on top."

LIMITS = (
    "Times of steps come from the same rules as `orrery estimate`. The run is one draw of arrivals and failures: write "
    "another seed to see how far that moves it.",
)


def fleet_report(answer: FleetAnswer) -> Report:
    """Return the report of a simulated run."""
    model = answer.run.setup.service.pools[0].deployment.model.name
    days = format_value(answer.run.end_s / 3600.0, "")
    return replace(
        fleet_frame(answer.inputs.written, answer.notes),
        title=f"Serving {model}: a fleet over {days} hours",
        question=(f"How many replicas of {model} run when, what do they cost, and whom do they serve in time?",),
        headline=_headline(answer),
        summary=_summary(answer),
        numbers=_numbers(answer),
        where=_where(answer),
        facts=answer.facts,
        limits=(*LIMITS, NO_NETWORK if answer.by_region is None else NETWORK),
    )


def fleet_frame(settings: Mapping[str, Any], notes: tuple[str, ...]) -> Report:
    """A report of a fleet to be filled in: its settings and assumptions, and the command that asks again."""
    again = Command(about="Ask the same question again, with the settings below", line="orrery fleet FLEET.toml")
    return Report(
        kind="fleet",
        title="",
        author="",
        made=f"{datetime.now(UTC):%Y-%m-%d}",
        version=__version__,
        question=(),
        settings=dict(settings),
        infeasible=None,
        headline="",
        summary=(),
        numbers=(),
        alternatives=None,
        sensitivity=None,
        where=None,
        assumptions=notes,
        facts=(),
        accuracy=None,
        limits=LIMITS,
        commands=(again,),
    )


def _headline(answer: FleetAnswer) -> str:
    """Whether the SLOs are met, with how many replicas, for how much."""
    verdict = {True: "Every SLO is met", False: "An SLO is missed", None: "No SLO is given"}
    mean = mean_replicas(answer)
    peak = int(answer.run.paid.sum(axis=1).max())
    return (
        f"{verdict[answer.is_met]}; replicas paid for: {format_value(mean, '')} on average, {peak} at most, "
        f"for {format_value(answer.cost_usd, 'usd')}."
    )


def mean_replicas(answer: FleetAnswer) -> float:
    """Replicas that were paid for, on average over the run."""
    return sum(answer.run.paid_s) / answer.run.end_s if answer.run.end_s else 0.0


def _summary(answer: FleetAnswer) -> tuple[str, ...]:
    """The served requests, those hurt by each cause, and the remedy."""
    served = answer.run.fates["served"]
    found = [f"{served:,} of {answer.num_sent:,} requests were served."]
    if hurt := {cause: count for cause, count in answer.hurt.items() if count}:
        causes = "; ".join(f"{count:,} {CAUSES[cause]}" for cause, count in hurt.items())
        found.append(f"{sum(hurt.values()):,} requests were hurt: {causes}.")
    if answer.change is not None:
        found.append(f"The smallest change that meets the SLOs: {answer.change.text}, {answer.change.difference}.")
    elif answer.beyond_budgets:
        found.append(f"No change of the fleet meets the SLOs. {answer.beyond_budgets}")
    elif answer.has_searched:
        found.append("No small change meets the SLOs.")
    if answer.nearest is not None:
        found.append(answer.nearest.sentence)
    return tuple(found)


def _numbers(answer: FleetAnswer) -> tuple[Number, ...]:
    run = answer.run
    ttft_s = run.ttft_s[np.isfinite(run.ttft_s)]
    p99_s = float(np.quantile(ttft_s, 0.99)) if ttft_s.size else None
    rows: tuple[tuple[str, str, float | None, str], ...] = (
        ("cost_usd", "Cost of the run", answer.cost_usd, "usd"),
        (
            "usd_per_million_output_tokens",
            "Cost of a million output tokens",
            answer.usd_per_million_output_tokens,
            "usd",
        ),
        ("attained_frac", "Requests within all limits", answer.attained_frac, "frac"),
        ("p99_ttft_s", "99th percentile of TTFT", p99_s, "s"),
        ("energy_j", "Energy of devices and hosts", run.energy_j + run.host_energy_j, "j"),
        ("busy_frac", "Busy share of the paid time", run.busy_frac, "frac"),
    )
    known = (Number(name=n, label=label, value=v, unit=unit) for n, label, v, unit in rows if v is not None)
    return (*known, *region_numbers(answer))


def pool_rows(answer: FleetAnswer) -> tuple[tuple[str, ...], ...]:
    """A row a pool: what it is, how many replicas ran, and their cost."""
    return tuple(
        (
            f"{p['name']} ({p['purchase']}, {p['devices_per_replica']} x {p['device']})",
            f"{p['replicas_min']} to {p['replicas_max']}",
            format_value(p["mean_replicas"], ""),
            str(p["peak_replicas"]),
            format_value(p["cold_start_s"], "s"),
            format_value(p["cost_usd"], "usd"),
        )
        for p in answer.to_json()["pools"]
    )


def slo_rows(answer: FleetAnswer) -> tuple[tuple[str, ...], ...]:
    """A row an SLO: whether it is met, its limit, and what was reached."""
    return tuple(
        (
            name.replace("_", " "),
            "met" if o["is_met"] else "missed",
            format_value(o["limit_s"], "s"),
            format_value(o["value_s"], "s") if np.isfinite(o["value_s"]) else "-",
            format_value(o["attained_frac"], "frac"),
        )
        for name, o in answer.slo.items()
    )


def _where(answer: FleetAnswer) -> Section:
    """Pools, objectives and events, and the run over its hours."""
    events = tuple((what, f"{count:,}") for what, count in event_counts(answer.run).items())
    listed = (
        Table(
            title="Pools",
            columns=("pool", "replicas", "mean", "peak", "cold start", "cost"),
            rows=pool_rows(answer),
        ),
        Table(
            title="SLOs",
            columns=("SLO", "verdict", "limit", "reached", "requests within"),
            rows=slo_rows(answer),
            num_words=2,
        ),
        *region_tables(answer),
        Table(title="Events of replicas", columns=("event", "times"), rows=events),
    )
    return Section(
        heading="The run over its hours",
        tables=tuple(t for t in listed if t.rows),
        figures=(
            *region_figures(answer),
            *(Figure(title=title, summary=title + ".", svg=svg) for title, svg in charts(answer).items()),
        ),
    )
