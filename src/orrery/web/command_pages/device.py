"""A device of one's own as a page: its file from a data sheet's figures, and what a model does on it."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orrery.base.units import text
from orrery.catalog.devices import describe, get_device
from orrery.catalog.own_device import own_device
from orrery.reports.words import format_value
from orrery.scenario.ask import estimate
from orrery.scenario.fields import BY_NAME
from orrery.scenario.fields_device import MAIN_FACTS, OWN_DEVICE_SETTINGS
from orrery.scenario.jobs import OWN_DEVICE
from orrery.scenario.schema import read_scenario
from orrery.scenario.show import heading, readable
from orrery.web.address import Query, query_of, settings_of
from orrery.web.command_pages.command_page import CommandPage, Plain, Section, Table, flags, form_of
from orrery.web.export import Cell
from orrery.web.named import grounded

OWN = {s.name: s for s in OWN_DEVICE_SETTINGS}
LOAD = ("model", "weights", "kv", "engine", "tp", "input_tokens", "output_tokens", "concurrency")
FIRST = (
    "like",
    "title",
    "memory_capacity_bytes",
    "memory_bandwidth_bytes_per_s",
    "dense_bf16_flops_per_s",
    "power_limit_w",
    "model",
    "input_tokens",
    "output_tokens",
    "concurrency",
)
LABELS = {
    "like": "Resembles",
    "title": "Name",
    "memory_capacity_bytes": "Memory",
    "memory_bandwidth_bytes_per_s": "Memory bandwidth",
    "dense_bf16_flops_per_s": "Dense peak, BF16",
    "dense_fp8_flops_per_s": "Dense peak, FP8",
    "dense_int8_flops_per_s": "Dense peak, INT8",
    "dense_fp4_flops_per_s": "Dense peak, FP4",
    "power_limit_w": "Power limit",
    "idle_power_w": "Idle power",
    "host_each_way_bytes_per_s": "Link to the host, each way",
    "scaleup_each_way_bytes_per_s": "Link between devices, each way",
    "vector_flops_per_s": "Vector peak, FP32",
    "num_compute_units": "Compute units (SMs, CUs)",
    "compute_clock_hz": "Boost clock",
    "last_level_cache_bytes": "Last-level cache",
}
FILE = "my-device.toml"
SHOWN = (
    ("Time per output token", "tpot_s", "s"),
    ("Time to first token", "ttft_s", "s"),
    ("Output throughput", "output_tokens_per_s", "tokens_per_s"),
    ("Power", "power_w", "w"),
)


def settings(query: Query) -> dict[str, Any]:
    """Facts of the device, and the deployment on it."""
    facts = {name: value for name in OWN if (value := query.get(name, "").strip())}
    return facts | {name: value for name, value in settings_of(query).items() if name in LOAD}


def file_of(inputs: Plain) -> str:
    """The text of the device file that the settings describe."""
    facts = {name: str(inputs[name]) for name in MAIN_FACTS if name in inputs}
    grounded({"device": _like(inputs)}, Path())
    return own_device(_like(inputs), facts, str(inputs.get("title", "My accelerator")))


def answer(inputs: Plain) -> dict[str, Any]:
    """The facts of the device, and what ``orrery estimate --json`` prints for the deployment on it."""
    toml, load = file_of(inputs), {name: inputs[name] for name in LOAD if name in inputs}
    with TemporaryDirectory() as folder:
        (path := Path(folder) / FILE).write_text(toml, encoding="utf-8")
        facts = [
            {"fact": row.fact, "value": readable(row.fact, row.value), "is_stated": str(row.basis) == "stated"}
            for row in describe(get_device(path))
        ]
        found = estimate(read_scenario({**load, "device": str(path)})).to_json() if "model" in load else {}
    notes = found.get("notes", ())
    if found:
        found["settings"]["device"] = FILE
    return {"file": toml, "facts": facts, "estimate": found, "notes": notes, "inputs": dict(inputs)}


def sections(plain: Plain) -> tuple[Section, ...]:
    """The estimate of the model on it first, then the facts, stated ones before assumed ones."""
    return tuple(_sections(plain))


def _sections(plain: Plain) -> Iterator[Section]:
    inputs = plain["inputs"]
    title = str(inputs.get("title", "My accelerator"))
    keep = (f"/{PAGE.name}/keep", "Keep the file and plan with it", tuple((k, str(v)) for k, v in inputs.items()))
    get = (
        f"/{PAGE.name}/file?{query_of({name: inputs[name] for name in OWN if name in inputs})}",
        "Download the device file",
    )
    if found := plain["estimate"]:
        yield Section(title=f"{inputs['model']} on {title}", verdict=_verdict(found), table=_table(found))
    facts = sorted(plain["facts"], key=lambda row: not row["is_stated"])
    rows = tuple(
        (_words(r["fact"]), r["value"], "stated" if r["is_stated"] else f"as on {_like(inputs)}") for r in facts
    )
    yield Section(
        title="Device file",
        table=Table(caption="Stated facts first", columns=("Fact", "Value", "Basis"), rows=rows[:12]),
        link=get,
        form=keep,
        reasons=(
            f"{len(rows)} facts; the file has all of them with their basis. Intervals widen, because the constants "
            "were measured on other devices.",
            "On the machine itself, orrery calibrate device --out my-device.toml measures them instead.",
        ),
    )


def _words(fact: str) -> str:
    """``memory_bandwidth_bytes_per_s`` as Memory bandwidth."""
    words = heading(fact.removeprefix("num_"))
    return words[:1].upper() + words[1:]


def _like(inputs: Plain) -> str:
    return str(inputs.get("like", OWN_DEVICE["like"]))


def _verdict(found: Plain) -> str:
    if lacking := found.get("infeasible"):
        need, have = (text(lacking[name], "bytes") for name in ("need", "have"))
        return f"It does not fit: {lacking['what']} needs {need}, has {have}. {lacking['smallest_change']}"
    return f"{1 / found['tpot_s']:,.3g} tokens/s/user, {found['output_tokens_per_s']:,.4g} tokens/s in all"


def _table(found: Plain) -> Table | None:
    if "infeasible" in found:
        return None
    rows = tuple(
        (label, format_value(found[name], unit), _interval(found["intervals"].get(name), unit))
        for label, name, unit in SHOWN
        if found.get(name) is not None
    )
    return Table(caption="Estimate", columns=("", "Mean", "80 % interval"), rows=rows)


def _interval(ends: Plain | None, unit: str) -> str:
    return f"{format_value(ends['low_80'], unit)} to {format_value(ends['high_80'], unit)}" if ends else ""


def rows(plain: Plain) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """A row for each fact."""
    return ("fact", "value", "is_stated"), [[r["fact"], r["value"], r["is_stated"]] for r in plain["facts"]]


def command(inputs: Plain) -> str:
    """The lines that write the file and ask the estimate."""
    facts = [("--fact", f"{name}={inputs[name]}") for name in MAIN_FACTS if name in inputs]
    stated = [("--title", str(inputs["title"]))] if "title" in inputs else []
    make = shlex.join(("orrery", "show", "device", _like(inputs), "--as-file", FILE, *chain(*stated, *facts)))
    load = {name: inputs[name] for name in LOAD if name in inputs}
    return f"{make}\norrery estimate --device {FILE} {flags(load)}" if "model" in load else make


_first, _folded = form_of({**OWN, **{name: BY_NAME[name] for name in LOAD}}, FIRST, LABELS)

PAGE = CommandPage(
    name="my-device",
    title="My own GPU",
    lead="A device that is not in the catalogue: figures of its data sheet become a device file, and a model is "
    "estimated on it. What you leave blank is assumed to be as on the device that it resembles.",
    menu=(55, "My GPU"),
    page="add-a-device.md",
    first=_first,
    folded=_folded,
    settings=settings,
    names=frozenset({*OWN, *LOAD}),
    start=OWN_DEVICE,
    command=command,
    sections=sections,
    rows=rows,
)
