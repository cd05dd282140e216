"""``orrery plan --disaggregate`` as a page: joint, split and separate prefill and decode."""

from collections.abc import Sequence
from typing import Any

from orrery.reports.words import format_value
from orrery.scenario.disaggregate import plan_disaggregated
from orrery.scenario.fields import BY_NAME
from orrery.scenario.objectives import METRICS
from orrery.scenario.schema import read_scenario
from orrery.web.address import Query, query_of
from orrery.web.command_pages.command_page import CommandPage, Plain, Section, Table, command_line, fields_from
from orrery.web.export import Cell
from orrery.web.forms import Field
from orrery.web.question.inputs import PLANNED, form_values, plan_settings

START = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "max_devices": "4",
    "input_tokens": "4000",
    "output_tokens": "100",
    "num_requests": "500",
    "slo": ["ttft:2000", "tpot:12"],
}
FIRST = ("model", "device", "max_devices", "input_tokens", "output_tokens", "trace")
FOLDED = (
    *("rate", "num_requests", "attainment", "prefill_device", "decode_device", "weights", "kv", "engine"),
    *("usd_per_hour", "max_usd_per_hour", "power_budget_w", "clock_frac"),
    *("layerwise_transfer", "max_prefill_queue"),
)
LATENCIES = {"ttft": "Time to first token, ms", "tpot": "Time per output token, ms"}


def settings(query: Query) -> dict[str, Any]:
    """Settings of a plan; the form's latencies become SLOs."""
    return {k: v for k, v in plan_settings(query).items() if k in PLANNED}


def answer(inputs: Plain) -> dict[str, Any]:
    """The worker's answer: what the command prints with ``--json``."""
    return plan_disaggregated(read_scenario(inputs)).to_json()


def sections(plain: Plain) -> tuple[Section, ...]:
    """The conclusion, then the designs, best first."""
    designs: list[dict[str, Any]] = plain["designs"]
    holding = [d for d in designs if d["holds"]] or designs[:1]
    columns = (
        "Way",
        "Prefill",
        "Decode",
        "Devices",
        "Requests/s",
        "Per device",
        "p99 TTFT",
        "p99 TPOT",
        "$/hour",
        "Rated draw",
        "Limited by",
    )
    best = holding[0] if holding else None
    table = Table(
        caption=f"{len(holding)} of {len(designs)} simulated designs hold the SLOs",
        columns=columns,
        rows=tuple(map(_cells, holding)),
        marked=frozenset({0}),
    )
    link = f"/runs/new?kind=capacity&{query_of(best['settings'])}" if best else ""
    return (
        Section(
            title="Joint, split or separate",
            verdict=plain["conclusion"],
            table=table,
            link=(link, "Simulate the best design again") if link else ("", ""),
        ),
    )


def _cells(d: Plain) -> tuple[str, ...]:
    return (
        f"{d['way']} ({d['link']})" if d["link"] else d["way"],
        d["prefill"] or "-",
        d["decode"],
        str(d["num_devices"]),
        format_value(d["requests_per_s"], ""),
        format_value(d["requests_per_s_per_device"], ""),
        format_value(d["p99_ttft_s"], "s"),
        format_value(d["p99_tpot_s"], "s"),
        format_value(d["usd_per_hour"], "usd"),
        format_value(d["rated_power_w"], "w"),
        d["limited_by"],
    )


COLUMNS = (
    "way",
    "prefill",
    "decode",
    "link",
    "num_devices",
    "requests_per_s",
    "requests_per_s_per_device",
    "holds",
    "attained_frac",
    "ttft_s",
    "tpot_s",
    "p99_ttft_s",
    "p99_tpot_s",
    "usd_per_hour",
    "rated_power_w",
    "limited_by",
)


def rows(plain: Plain) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """A row for each design."""
    return COLUMNS, [[d[name] for name in COLUMNS] for d in plain["designs"]]


def _first(inputs: Plain) -> tuple[Field, ...]:
    values = form_values(inputs)
    limits = tuple(
        Field(
            name=name,
            label=label,
            value=values.get(name, ""),
            help=f"Limit of the {label}.",
            example="no limit",
            is_number=True,
        )
        for name, label in LATENCIES.items()
    )
    return (*fields_from([BY_NAME[name] for name in FIRST], inputs, {"device": "Devices (comma-separated)"}), *limits)


PAGE = CommandPage(
    name="disaggregate",
    title="Should I disaggregate?",
    lead="Joint replicas, devices split between the phases, and separate prefill and decode pools, each simulated to "
    "the highest rate at which the SLOs hold; and whether separate pools pay per device.",
    menu=(26, "Disaggregate"),
    page="disaggregate.md",
    first=_first,
    folded=lambda inputs: fields_from([BY_NAME[name] for name in FOLDED], inputs, {}),
    settings=settings,
    names=PLANNED | {*METRICS},
    start=START,
    command=command_line("plan --disaggregate"),
    sections=sections,
    rows=rows,
)
