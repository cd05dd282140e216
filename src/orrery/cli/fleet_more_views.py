"""Several services, steady hours of a fleet, and the size that survives a loss, in the terminal."""

import json
from pathlib import Path

import numpy as np

from orrery.base.files import write_atomically
from orrery.base.units import figures, percent, text
from orrery.cli.fleet_views import print_fleet
from orrery.cli.output import console
from orrery.cli.power_limit_views import steady_limit_table
from orrery.cli.sheet import Sheet
from orrery.fleet.service.steady import Hour
from orrery.scenario.fleet.ask import OtherAnswer
from orrery.scenario.fleet.clusters import ClustersAnswer
from orrery.scenario.fleet.graph import GraphAnswer
from orrery.scenario.fleet.mixed import MixedAnswer
from orrery.scenario.fleet.oversubscribe import Oversubscription
from orrery.scenario.fleet.services import ServicesAnswer
from orrery.scenario.fleet.shared import SharedAnswer
from orrery.scenario.fleet.steady import SteadyAnswer
from orrery.scenario.fleet.survive import Survival

FEW_HOURS = 48
"""Hours that are listed one by one; of more, each hour of the day in its mean."""


def print_more(answer: OtherAnswer) -> None:
    """The answer as a person reads it."""
    if isinstance(answer, GraphAnswer):
        _print_graph(answer)
    elif isinstance(answer, ClustersAnswer):
        _print_clusters(answer)
    elif isinstance(answer, Oversubscription):
        _print_oversubscription(answer)
    elif isinstance(answer, MixedAnswer):
        _print_mixed(answer)
    elif isinstance(answer, ServicesAnswer):
        _print_services(answer)
    elif isinstance(answer, Survival):
        _print_survival(answer)
    else:
        _print_hours(answer)


def _print_survival(answer: Survival) -> None:
    out = console()
    what = {"region": "a region", "zone": "a zone", "replica": "one replica"}[answer.kind]
    out.print(
        f"{answer.needed} replicas meet the SLOs at {figures(answer.peak_requests_per_s)} requests/s, and "
        f"{answer.replicas} (N + {answer.spare}) still do while {what} is lost.",
        markup=False,
        highlight=False,
    )
    if answer.by_region:
        parts = ", ".join(f"{count} in {name}" for name, count in answer.by_region.items())
        out.print(f"  {parts}", markup=False, highlight=False)
    calm, hurt = (text(answer.p99_ttft_s[name], "s") for name in ("without", "during"))
    out.print(f"  p99 TTFT: {hurt} in the outage, {calm} without", markup=False, highlight=False)
    for name, share in answer.attained.items():
        out.print(
            f"  {name.replace('_', ' ')}: {percent(share, 2)} of the requests of the outage",
            markup=False,
            highlight=False,
        )


def _print_oversubscription(answer: Oversubscription) -> None:
    """Replicas by every rule, and how late requests are with as many."""
    out = console()
    rated = answer.fits[0].fit.num_rated
    each = text(answer.rated_w, "w")
    out.print(f"{text(answer.power_budget_w, 'w')} hold {rated} replicas of {each}.", markup=False, highlight=False)
    late = tuple(answer.fits[0].late)
    heads = tuple(f"{name.replace('_', ' ')} late" for name in late)
    table = Sheet("rule", "replicas", "more", "mean draw", "p99 draw", "peak draw", *heads, left=1)
    for fit in answer.fits:
        plain = fit.to_json()
        shares = [plain[n] for n in ("more_frac", "mean_drawn_frac", "p99_drawn_frac", "peak_drawn_frac")]
        shares += [fit.late[name] for name in late]
        table.add_row(fit.cap, str(fit.fit.num_servers), *(percent(share, 1) for share in shares))
    out.print(table)


def _print_clusters(answer: ClustersAnswer) -> None:
    """Each cluster, what the first one saves of the others, and that over the price of its devices."""
    out, plain = console(), answer.to_json()
    table = Sheet("cluster", "devices", "machines", "switches", "capital", "a machine", "draw", "$/device-hour", left=1)
    for c in plain["clusters"]:
        counts = (f"{c[name]:,}" for name in ("num_devices", "num_nodes", "num_switches"))
        watts = (text(c[name], "w") for name in ("node_power_w", "power_w"))
        table.add_row(c["name"], *counts, f"${figures(c['capital_usd'])}", *watts, figures(c["device_usd_per_hour"]))
    out.print(table)
    for one in plain["compared"]:
        saved = ", ".join(
            f"{percent(one[f'{name}_saved_frac'], 1)} of the {what}"
            for name, what in (("capital", "capital"), ("power", "watts"), ("usd", "dollars an hour"))
        )
        curve = ", ".join(f"{percent(p['capital_saved_frac'])} at ${figures(p['device_usd'])}" for p in one["curve"])
        for line in (f"Saved beside {one['than']}: {saved}.", f"Capital saved by the price of a device: {curve}."):
            out.print(line, markup=False, highlight=False)


def _print_services(answer: ServicesAnswer) -> None:
    out = console()
    for name, one in answer.services.items():
        out.print(f"{name}: {one.run.setup.service.pools[0].deployment.model.name}", markup=False, highlight=False)
        print_fleet(one, can_change=not isinstance(answer, SharedAnswer))
    if isinstance(answer, SharedAnswer):
        parts = ", ".join(f"{name} {text(s, 's')}" for name, s in answer.more["computed_s"].items())
        out.print(f"Shared replicas computed for {parts}; {answer.run.wakes:,} wakes.", markup=False, highlight=False)
    verdict = {True: "every SLO is met", False: "an SLO is missed", None: "no SLO is given"}[answer.is_met]
    out.print(
        f"All services: {int(answer.total('num_sent')):,} requests, ${figures(answer.total('cost_usd'))}, "
        f"{text(answer.peak_power_w, 'w')} at most; {verdict}.",
        markup=False,
        highlight=False,
    )


def _print_graph(answer: GraphAnswer) -> None:
    """Where each stage runs, each device alone, and prices at which the placement is another one."""
    out = console()
    table = Sheet("stage", "machine", "occupied", "waits", left=2)
    for stage, name in zip(answer.stages, answer.placed.machines, strict=True):
        table.add_row(stage.name, name, text(stage.work[name].busy_s, "s"), text(stage.work[name].wait_s, "s"))
    out.print(table)
    lines = [f"A task costs ${figures(answer.placed.usd)} and takes {text(answer.placed.latency_s, 's')}."]
    for name, one in answer.alone.items():
        each = "too slow or too small" if one is None else f"${figures(one.usd)}, {text(one.latency_s, 's')}"
        lines.append(f"  {name} alone: {each}")
    if answer.saving_frac is not None and answer.is_mixed:
        lines.append(f"The mix saves {percent(answer.saving_frac, 1)} over the best single device.")
    wins = [f"{p.device} at {p.price_ratio:g}x" for p in answer.sweep if p.usd < p.alone_usd * (1.0 - 1e-9)]
    if answer.sweep:
        lines.append(f"Prices at which a mix costs less: {', '.join(wins) or 'none that was tried'}.")
    if answer.rate_requests_per_s:
        lines.append("Machines: " + ", ".join(f"{count} x {name}" for name, count in answer.machines.items()) + ".")
    for line in lines:
        out.print(line, markup=False, highlight=False)


def _print_mixed(answer: MixedAnswer) -> None:
    """The replicas first, then each type's part of its service."""
    table = Sheet("service", "device", "tp", "replicas", "requests", "$/h", left=2)
    for row in answer.rows:
        each = (
            str(row["tp"]),
            str(row["replicas"]),
            percent(row["requests_frac"], 1),
            f"${figures(row['usd_per_hour'])}",
        )
        table.add_row(row["service"], row["device"], *each)
    out = console()
    out.print(table)
    out.print(f"All replicas: ${figures(answer.usd_per_hour)}/h.", markup=False, highlight=False)
    _print_services(answer.parts)


def _print_hours(answer: SteadyAnswer) -> None:
    out = console()
    table = Sheet("hour", "requests/s", "replicas", "TTFT", "TPOT", "power", "$/h", left=1)
    hours = answer.hours
    groups = [[h] for h in hours]
    if len(hours) > FEW_HOURS:
        groups = [[h for k, h in enumerate(hours) if k % 24 == of_day] for of_day in range(24)]
    for k, group in enumerate(groups):
        latencies = (
            "-" if not np.isfinite(v) else text(v, "s") for v in (_mean(group, "ttft_s"), _mean(group, "tpot_s"))
        )
        power = text(_mean(group, "power_w") + _mean(group, "host_power_w"), "w")
        cost = f"${figures(_mean(group, 'usd_per_s') * 3600.0)}"
        rate, replicas = figures(_mean(group, "rate_requests_per_s")), figures(_mean(group, "num_replicas"))
        table.add_row(str(k), rate, replicas, *latencies, power, cost)
    out.print(table)
    if (limits := steady_limit_table(answer.to_json())) is not None:
        out.print(limits)
    out.print(
        f"{answer.num_requests:,.0f} requests, ${figures(answer.cost_usd)}, {text(answer.energy_j, 'j')} and "
        f"{text(answer.host_energy_j, 'j')} of the hosts"
        + (", " + _ttft_words(answer))
        + ("" if answer.carbon_g is None else f", {figures(answer.carbon_g / 1000.0)} kg of CO2"),
        markup=False,
        highlight=False,
    )


def _ttft_words(answer: SteadyAnswer) -> str:
    """The mean TTFT, or in how many hours queues grow without end."""
    if not (overloaded := answer.hours_overloaded):
        return f"mean TTFT {text(answer.mean('ttft_s'), 's')}"
    return (
        f"in {overloaded} of {len(answer.hours)} hours more come than the replicas carry, and their queues grow "
        "without end"
    )


def _mean(hours: list[Hour], name: str) -> float:
    """The mean of a figure over some hours."""
    return float(np.mean([getattr(h, name) for h in hours]))


def write_json(answer: OtherAnswer, path: Path) -> None:
    """Write the answer."""
    write_atomically(path, json.dumps(answer.to_json(), allow_nan=False, indent=2) + "\n")
