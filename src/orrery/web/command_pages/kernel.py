"""``orrery kernel`` as a page: one operator on devices, its variants side by side."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.calibrate.kernel import kernel
from orrery.drawing import Axis, Series, lines
from orrery.reports.words import format_value
from orrery.scenario.fields_kernel import KERNEL_BY_NAME, OPERATORS, SIZES, SWEEP
from orrery.web.address import Query, without_groups
from orrery.web.both_widths import at_both_widths
from orrery.web.command_pages.command_page import CommandPage, Plain, Section, Table, fields_from, flags
from orrery.web.export import Cell
from orrery.web.forms import Field

START = {"op": "gemm", "device": "h100-sxm,mi300x", "m": "4096", "n": "4096", "k": "4096"}
LABELS = {
    "op": "Operator",
    "batch": "Batch",
    "device": "Devices (comma-separated)",
    "format": "Formats",
    "sweep": "Sweep",
}
HERE_ONLY = frozenset({"measure", "tensors"})
"""Settings that read files or run kernels on this machine: not for a page."""

ROWS_SHOWN = 80
_NAMES = re.compile(r"[a-z][a-z_0-9]*")


def settings(query: Query) -> dict[str, Any]:
    """The settings of the operator; those that would run or read something here are left out."""
    found: dict[str, Any] = {}
    for name, setting in KERNEL_BY_NAME.items():
        values = [v.strip() for v in query.getlist(name) if v.strip()]
        if not values or name in HERE_ONLY:
            continue
        if setting.kind == "words":
            found[name] = [part for value in values for part in value.split()]
        else:
            found[name] = without_groups(values[-1]) if setting.kind in ("count", "number") else values[-1]
    return found


def answer(inputs: Plain) -> dict[str, Any]:
    """The worker's answer: what the command prints with ``--json``."""
    for name in ("chain", "model", "device"):
        if any(
            part.strip().startswith((".", "/", "~")) or part.strip().endswith((".txt", ".json", ".toml"))
            for part in str(inputs.get(name, "")).split(",")
        ):
            raise ScenarioError(f"{name}: a path; write a name here.")
    return kernel(**inputs).to_json()


def sections(plain: Plain) -> tuple[Section, ...]:
    """The rows as a table, the curves of a sweep, and what cannot run."""
    found: list[dict[str, Any]] = plain["results"]
    fastest = min(found, key=lambda r: r["time_s"])
    swept = tuple(plain["sweep"])
    columns = (
        "Device",
        *(name.replace("_", " ") for name in swept),
        "Variant",
        "Format",
        "Kernels of",
        "Time",
        "80 % interval",
        "Bound by",
        "FLOP/s",
        "Bytes/s",
    )
    table = Table(
        caption=f"{len(found):,} row{'s' if len(found) != 1 else ''}"
        + (f", the first {ROWS_SHOWN}" if len(found) > ROWS_SHOWN else ""),
        columns=columns,
        rows=tuple(_cells(r, swept) for r in found[:ROWS_SHOWN]),
        marked=frozenset({found.index(fastest)}) if len(found) > 1 and not swept else frozenset(),
    )
    head = Section(
        title=f"{plain['op']} on {', '.join(dict.fromkeys(r['device'] for r in found))}",
        verdict=_verdict(fastest) if not swept else "",
        table=table,
        svg=at_both_widths(partial(_curves, plain, swept[0])) if swept else "",
        reasons=tuple(dict.fromkeys(f"{r['device']} {r['variant']} {r['format']}: {r['because']}" for r in found))[:12],
    )
    declined = tuple(
        f"{' '.join(w for w in (d['device'], d['variant'], d['format'], d['engine']) if w)}: {d['reason']}"
        for d in plain["declined"]
    )
    return (head, *([Section(title=f"Declined ({len(declined)})", reasons=declined)] if declined else []))


def _verdict(fastest: Plain) -> str:
    return (
        f"{format_value(fastest['time_s'], 's')} on {fastest['device']}, {fastest['variant']} in {fastest['format']}; "
        f"bound by {fastest['bound_by']}"
    )


def _cells(r: Plain, swept: Sequence[str]) -> tuple[str, ...]:
    ends = r["intervals"].get("time_s")
    return (
        r["device"],
        *(f"{r['sizes'][name]:,}" for name in swept),
        r["variant"],
        r["format"],
        r["engine"] or "-",
        format_value(r["time_s"], "s"),
        f"{format_value(ends['low_80'], 's')} to {format_value(ends['high_80'], 's')}" if ends else "not known",
        r["bound_by"],
        format_value(r["flops_per_s"], "flops") + "/s" if r["flops_per_s"] else "-",
        format_value(r["bytes_per_s"], "bytes") + "/s",
    )


def _curves(plain: Plain, over: str) -> str:
    """Times over the swept size with their intervals."""
    curves: dict[str, list[dict[str, Any]]] = {}
    telling = [w for w in ("device", "variant", "format", "engine") if len({r[w] for r in plain["results"]}) > 1]
    for r in plain["results"]:
        curves.setdefault(" ".join(r[word] for word in telling[:2]) or r["variant"], []).append(r)
    series = [
        Series(
            name,
            [float(r["sizes"][over]) for r in rows],
            [r["time_s"] for r in rows],
            *_band(rows),
        )
        for name, rows in curves.items()
    ]
    x, y = Axis(over.replace("_", " "), "", is_log=True), Axis("time", "s", is_log=True)
    return lines(series, x, y, title=f"{plain['op']} over {over.replace('_', ' ')}", says="Bands are 80 % intervals.")


def _band(rows: Sequence[Plain]) -> tuple[list[float], list[float]]:
    ends = [r["intervals"].get("time_s") for r in rows]
    if not all(ends):
        return [], []
    return [e["low_80"] for e in ends], [e["high_80"] for e in ends]


def rows(plain: Plain) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """A row for each variant and size."""
    sizes = list(dict.fromkeys(name for r in plain["results"] for name in r["sizes"]))
    header = ("device", "op", "variant", "format", "engine", *sizes, "time_s", "low_80_s", "high_80_s", "bound_by")
    cells: list[Sequence[Cell]] = []
    for r in plain["results"]:
        ends: dict[str, Any] = r["intervals"].get("time_s") or {}
        cells.append(
            [
                *(r[k] for k in ("device", "op", "variant", "format", "engine")),
                *(r["sizes"].get(name) for name in sizes),
                r["time_s"],
                ends.get("low_80"),
                ends.get("high_80"),
                r["bound_by"],
            ]
        )
    return header, cells


def command(inputs: Plain) -> str:
    """The line that asks it."""
    return f"orrery kernel {inputs.get('op', '')} {flags({k: v for k, v in inputs.items() if k != 'op'})}"


def sizes_of(operator: str) -> tuple[str, ...]:
    """Sizes that an operator reads, in its own order."""
    known = {s.name for s in SIZES}
    return tuple(dict.fromkeys(word for word in _NAMES.findall(OPERATORS.get(operator, "")) if word in known))


def _first(inputs: Plain) -> tuple[Field, ...]:
    names = ("device", *sizes_of(str(inputs.get("op", "gemm"))), "format")
    operator = Field(name="op", label="Operator", value=str(inputs.get("op", "")), help="The operator.", example="gemm")
    return (operator, *fields_from([KERNEL_BY_NAME[name] for name in names], inputs, LABELS), *_swept(inputs))


def _swept(inputs: Plain) -> tuple[Field, ...]:
    return fields_from([SWEEP], {**inputs, "sweep": " ".join(inputs.get("sweep", []))}, LABELS)


def _folded(inputs: Plain) -> tuple[Field, ...]:
    first = {f.name for f in _first(inputs)} | HERE_ONLY
    rest = [s for s in KERNEL_BY_NAME.values() if s.name not in first and (s not in SIZES or s.name in inputs)]
    return fields_from(rest, inputs, LABELS)


PAGE = CommandPage(
    name="kernel",
    title="How fast is one kernel?",
    lead="One operator on one or several devices: its time with its 80 % interval, what binds it, and its variants "
    "side by side, at one shape or swept.",
    menu=(45, "Kernel"),
    page="kernel.md",
    first=_first,
    folded=_folded,
    settings=settings,
    names=frozenset(KERNEL_BY_NAME) - HERE_ONLY,
    start=START,
    command=command,
    sections=sections,
    rows=rows,
    choices={"op": tuple(OPERATORS)},
)
