"""A fleet's answer in the terminal and in files: figures, curves over the run as blocks, CSV and pictures."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from orrery.base.files import write_atomically
from orrery.base.units import figures, percent, text
from orrery.cli.fleet_region_views import print_regions
from orrery.cli.output import console
from orrery.cli.power_limit_views import limit_table, power_rows
from orrery.cli.sheet import Sheet
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.answer import FleetAnswer, event_counts
from orrery.scenario.fleet.jobs import job_regions
from orrery.serving.requests import Floats

BLOCKS = " ▁▂▃▄▅▆▇█"
CURVES = (
    ("load", "arrivals_per_s", "requests/s"),
    ("replicas", "paid", ""),
    ("waiting", "waiting", "requests"),
    ("p99 TTFT", "p99_ttft_s", "s"),
    ("attained", "attained_frac", "frac"),
    ("power", "power_w", "w"),
    ("money", "usd_per_hour", "$/h"),
)
"""Label, curve and unit of each line in the terminal."""

CAUSE_TEXT = {
    "shed": "refused or beyond a budget",
    "fault": "their replica was lost",
    "preemption": "preempted (KV cache full)",
    "cold-start": "waited while a replica started",
    "power-cap": "were slowed by a power cap",
    "queue": "waited in a queue",
    "slow": "too slow in their batch",
}


def print_fleet(answer: FleetAnswer, *, can_change: bool = True) -> None:
    """The answer as a person reads it; ``can_change``: --change is no refused flag there."""
    out, run = console(), answer.run
    table = Sheet("", "", has_header=False)
    table.add_column("", justify="left", wraps=True)
    for row in _rows(answer):
        table.add_row(*row)
    out.print(table)
    pools = Sheet("pool", "replicas", "mean", "peak", "cold start", "cost", left=1)
    for pool in answer.to_json()["pools"]:
        ends = f"{pool['replicas_min']} to {pool['replicas_max']}"
        name = f"{pool['name']} ({pool['purchase']}, {pool['devices_per_replica']} x {pool['device']})"
        cost = f"${figures(pool['cost_usd'])}"
        start = text(pool["cold_start_s"], "s")
        pools.add_row(name, ends, figures(pool["mean_replicas"]), str(pool["peak_replicas"]), start, cost)
    out.print(pools)
    if (limits := limit_table(run)) is not None:
        out.print(limits)
    if tenants := answer.tenants():
        _print_tenants(tenants)
    print_regions(answer)
    width = max(20, min(96, out.width - 40))
    is_utf = (out.encoding or "").casefold() in ("utf-8", "utf8")
    for label, key, unit in CURVES:
        out.print(_curve(label, answer.series[key], unit, width, is_utf), markup=False, highlight=False)
    out.print(f"{'':<10}0{text(run.end_s, 's'):>{width - 1}}", markup=False, highlight=False)
    if answer.is_met is False and can_change:
        out.print(change_text(answer), markup=False, highlight=False)


def _print_tenants(tenants: list[dict[str, Any]]) -> None:
    """Each tenant's requests: how many the gateway shed, and how the others fared."""
    table = Sheet("tenant", "requests", "shed", "in time", "p99 TTFT", left=1)
    for one in tenants:
        in_time = "-" if one["attained_frac"] is None else percent(one["attained_frac"], 2)
        ttft = "-" if one["p99_ttft_s"] is None else text(one["p99_ttft_s"], "s")
        table.add_row(one["name"], f"{one['num_requests']:,}", f"{one['num_shed']:,}", in_time, ttft)
    console().print(table)


def _rows(answer: FleetAnswer) -> list[tuple[str, str, str]]:
    run, fates = answer.run, answer.run.fates
    more = ", ".join(f"{count:,} {name}" for name, count in {**fates, "shed": answer.num_shed}.items() if count)
    rows = [("requests", f"{answer.num_sent:,}", more)]
    for name, o in answer.slo.items():
        verdict = "met" if o["is_met"] else "missed"
        value = "-" if not np.isfinite(o["value_s"]) else text(o["value_s"], "s")
        limit = (
            f"{verdict}: {percent(o['attained_frac'], 2)} within {text(o['limit_s'], 's')}, "
            f"{o['needed_frac']:.4g} needed"
        )
        rows.append((name.replace("_", " "), value, limit))
    if answer.attained_frac is not None:
        rows.append(("within all limits", percent(answer.attained_frac, 2), "of the requests that came"))
    rows += [("hurt", f"{count:,}", CAUSE_TEXT[cause]) for cause, count in answer.hurt.items() if count]
    each = answer.usd_per_million_output_tokens
    per_token = "" if each is None else f"${figures(each)} a million output tokens"
    rows.append(("cost", f"${figures(answer.cost_usd)}", per_token))
    if (api := answer.api) is not None:
        each = figures(api.api_million_output_usd)
        rows.append(("the API", f"${figures(api.api_usd)}", f"${each} a million output tokens; {api.sentence}"))
    hosts = f"and {text(run.host_energy_j, 'j')} of the hosts" if run.host_energy_j else ""
    rows.append(("energy", text(run.energy_j, "j"), hosts))
    rows += power_rows(run)
    rows += _jobs(answer)
    if answer.carbon_g is not None:
        paid = f"; ${figures(answer.electricity_usd)} of electricity, in the cost" if answer.electricity_usd else ""
        rows.append(("CO2", f"{figures(answer.carbon_g / 1000.0)} kg", f"of devices and hosts, by the hours{paid}"))
    rows.append(("busy", percent(run.busy_frac, 1), "of the paid replicas' time"))
    if run.requests.adapter.size:
        rows.append(
            ("adapters loaded", f"{run.adapter_loads:,}", f"steps waited {text(run.adapter_load_s, 's')} for them")
        )
    if answer.regret is not None:
        text_of = "more replica-time than the cheapest schedule that knows the future"
        if answer.regret.regret_frac < 0.0:
            text_of = "the cheapest schedule in which no request waits for a start takes more replica-time"
        if each := answer.regret.phases:
            text_of += (
                f" ({', '.join(f'{name} {percent(one.regret_frac, 1, is_signed=True)}' for name, one in each.items())})"
            )
        rows.append(("regret", percent(answer.regret.regret_frac, 1, is_signed=True), text_of))
    if answer.steady is not None and answer.steady["cost_frac"] is not None:
        parts = ", ".join(
            f"{k.removesuffix('_frac').replace('_', ' ')} {percent(v, 1, is_signed=True)}"
            for k, v in answer.steady.items()
            if v and k != "hours_overloaded"
        )
        rows.append(("hourly steady states", "", f"beside this run: {parts or 'the same'}"))
    if found := event_counts(run):
        rows.append(("scale events", f"{sum(found.values()):,}", ", ".join(f"{n} {what}" for what, n in found.items())))
    return rows


def _jobs(answer: FleetAnswer) -> list[tuple[str, str, str]]:
    """Batch work beside the service: what it costs in the best hours, and as early as it can."""
    jobs = answer.jobs
    if jobs is None:
        return []
    if isinstance(jobs, InfeasibleAnswer):
        return [("jobs", "do not fit", str(jobs.infeasible))]
    texts = [f"${figures(s.usd)} and {figures(s.carbon_g / 1e3)} kg of CO2" for s in (jobs.best, jobs.early)]
    rows = [("jobs", texts[0], f"in the best hours; as early as possible {texts[1]}")]
    for name, parts in job_regions(jobs, answer.run).items():
        where = ", ".join(f"{text(joules, 'j')} in {region}" for region, joules in parts.items() if joules > 1.0)
        rows.append((f"job {name}", where, "by region"))
    return rows


def change_text(answer: FleetAnswer) -> str:
    """The smallest change that would meet the missed SLOs."""
    if answer.change is not None:
        return f"Smallest change that meets the SLOs: {answer.change.text}, {answer.change.difference}."
    if answer.beyond_budgets:
        return f"No change of the fleet meets the SLOs. {answer.beyond_budgets}"
    if answer.has_searched:
        scaled = " nor another setting of the autoscaler" if answer.inputs.autoscaler else ""
        return f"No small change meets the SLOs: {'neither' if scaled else 'not'} more replicas{scaled}."
    return "The SLOs are missed; --change searches the smallest change that meets them."


def _curve(label: str, values: Floats, unit: str, width: int, is_utf: bool) -> str:
    """One line of blocks from zero to the highest value, which stands behind it."""
    finite = values[np.isfinite(values)]
    top = float(finite.max()) if finite.size else 0.0
    place = np.minimum((np.arange(values.size) * width // max(1, values.size)), width - 1)
    cells: list[str] = []
    letters = BLOCKS if is_utf else " .:-=+*#@"
    for k in range(width):
        mine = values[place == k] if values.size >= width else values[[k * values.size // width]]
        mine = mine[np.isfinite(mine)]
        if not mine.size or top <= 0.0:
            cells.append(" ")
            continue
        level = float(mine.max()) / top
        cells.append(letters[max(1 if level > 0 else 0, round(level * (len(letters) - 1)))])
    shown = percent(top, 1) if unit == "frac" else f"${figures(top)}/h" if unit == "$/h" else text(top, unit)
    return f"{label:<10}{''.join(cells)} {shown if finite.size else '-'}"


def series_csv(answer: FleetAnswer) -> str:
    """The curves over the run: a row a stretch."""
    names = list(answer.series)
    rows = [",".join(names)]
    for values in zip(*(answer.series[n].tolist() for n in names), strict=True):
        rows.append(",".join("" if not np.isfinite(v) else f"{v:.9g}" for v in values))
    return "\n".join(rows) + "\n"


def write_fleet(answer: FleetAnswer, path: Path) -> None:
    """Write the answer, its curves, or its pictures, as the name ends."""
    suffix = path.suffix.casefold()
    if suffix == ".json":
        written = json.dumps(answer.to_json(), allow_nan=False, indent=2) + "\n"
    else:
        written = series_csv(answer) if suffix == ".csv" else pictures(answer)
    write_atomically(path, written)


def pictures(answer: FleetAnswer) -> str:
    """The run as charts below each other: load, replicas, latency, power and money."""
    from orrery.reports.fleet_pictures import charts

    return _below_each_other(list(charts(answer).values()))


def _below_each_other(charts: list[str]) -> str:
    """Several drawings in one."""
    placed: list[str] = []
    top, width = 0.0, 0.0
    for chart in charts:
        found = re.match(r'<svg [^>]*viewBox="0 0 ([\d.]+) ([\d.]+)" width="100%"', chart)
        if found is None:
            continue
        size = f'width="{found[1]}" height="{found[2]}"'
        placed.append(chart.replace('width="100%"', f'y="{top:g}" {size}', 1))
        top, width = top + float(found[2]), max(width, float(found[1]))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {top:g}" width="100%" role="group">'
    return head + "".join(placed) + "</svg>"
