"""``orrery compare`` as a page: any number of designs, each beside the first, with paired errors."""

from collections.abc import Iterator, Sequence
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.catalog.named_files import is_own_file
from orrery.reports.words import format_value
from orrery.scenario.compare import changed, compare
from orrery.scenario.fields import BY_NAME
from orrery.scenario.what_if.metrics import BY_NAME as METRICS
from orrery.web.address import Query, settings_of
from orrery.web.command_pages.command_page import CommandPage, Plain, Section, Table, fields_from, flags
from orrery.web.export import Cell
from orrery.web.forms import Field

ALWAYS = ("model", "device", "tp", "input_tokens", "output_tokens", "concurrency")
FOLDED = ("weights", "activations", "kv", "engine", "engine_version", "pp", "dp", "ep", "usd_per_hour", "max_num_seqs")
NAMED = ("model", "device")
"""Settings that are names here and never files."""

START = {
    "model": "llama-3.1-70b",
    "device": "h100-sxm",
    "tp": "4",
    "input_tokens": "1024",
    "output_tokens": "256",
    "concurrency": "32",
    "with": "device=h200-sxm; weights=fp8 kv=fp8; tp=8",
}


def settings(query: Query) -> dict[str, Any]:
    """Settings of the first design, with ``with``: what the others have, between semicolons."""
    found = {k: v for k, v in settings_of(query).items() if k in (*ALWAYS, *FOLDED)}
    variants = query.get("with", "").strip()
    return {**found, "with": variants} if variants else found


def answer(inputs: Plain) -> dict[str, Any]:
    """The worker's answer: what the command prints with ``--json``."""
    base = {name: value for name, value in inputs.items() if name != "with"}
    designs = [base, *(changed(base, text) for text in _variants(inputs))]
    for design in designs:
        if unknown := sorted(design.keys() - {*ALWAYS, *FOLDED}):
            raise ScenarioError(f"with: {unknown[0]!r} cannot be changed here; write {', '.join((*ALWAYS, *FOLDED))}.")
        for name in NAMED:
            written = str(design.get(name, ""))
            if is_own_file(written) or written.startswith((".", "/", "~")):
                raise ScenarioError(f"{name}: a path; write a name here.")
    return compare(designs).to_json()


def _variants(inputs: Plain) -> list[str]:
    return [text.strip() for text in str(inputs.get("with", "")).split(";") if text.strip()]


def sections(plain: Plain) -> tuple[Section, ...]:
    """Figures of all designs, then how far each is from the first."""
    return tuple(_sections(plain["designs"]))


def _sections(designs: Sequence[dict[str, Any]]) -> Iterator[Section]:
    shown = [m for m in METRICS.values() if any(d.get(m.name) is not None for d in designs)]
    if shown:
        rows = tuple((m.words, *(format_value(d.get(m.name), m.unit) for d in designs)) for m in shown)
        caption = f"{len(designs)} designs on the same traffic"
        columns = ("Figure", *(d["name"] for d in designs))
        yield Section(title="Results", table=Table(caption=caption, columns=columns, rows=rows))
    first = designs[0]["name"]
    for d in designs:
        if why := d.get("infeasible"):
            yield Section(title=d["name"], verdict="Infeasible configuration", reasons=(_why(why),))
        elif d["difference"]:
            rows = tuple((METRICS[name].words, apart["words"]) for name, apart in d["difference"].items())
            table = Table(caption=f"Beside {first}; errors of both cancel", columns=("Figure", "Difference"), rows=rows)
            yield Section(title=d["name"], table=table)


def _why(infeasible: Plain) -> str:
    need, have = (format_value(infeasible[name], str(infeasible["unit"])) for name in ("need", "have"))
    return f"{infeasible['what']}: needs {need}, has {have}. {infeasible['smallest_change']}"


def rows(plain: Plain) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """A row for each design and figure."""
    header = (
        "design",
        "figure",
        "unit",
        "value",
        "low_80",
        "high_80",
        "difference_frac",
        "apart_low_80",
        "apart_high_80",
    )
    cells: list[Sequence[Cell]] = []
    for d in plain["designs"]:
        for name, metric in METRICS.items():
            if d.get(name) is None:
                continue
            around, apart = d["intervals"].get(name, {}), d["difference"].get(name, {})
            ends = (around.get("low_80"), around.get("high_80"))
            cells.append(
                [d["name"], name, metric.unit, d[name], *ends, *(apart.get(k) for k in ("frac", "low_80", "high_80"))]
            )
    return header, cells


def command(inputs: Plain) -> str:
    """The line that asks it."""
    base = {name: value for name, value in inputs.items() if name != "with"}
    return " ".join((f"orrery compare {flags(base)}", *(f'--with "{text}"' for text in _variants(inputs))))


def _first(inputs: Plain) -> tuple[Field, ...]:
    others = Field(
        name="with",
        label="Other designs",
        value=str(inputs.get("with", "")),
        help="What each other design has in place of the first's settings: NAME=VALUE, designs between semicolons.",
        example="device=h200-sxm; weights=fp8 kv=fp8",
    )
    return (*fields_from([BY_NAME[name] for name in ALWAYS], inputs, {}), others)


PAGE = CommandPage(
    name="designs",
    title="Which design is better?",
    lead="Any number of designs on the same traffic: what each does, and how far it is from the first, with the 80 % "
    "interval that is left when errors of both cancel.",
    menu=(21, "Designs"),
    page="compare.md",
    first=_first,
    folded=lambda inputs: fields_from([BY_NAME[name] for name in FOLDED], inputs, {}),
    settings=settings,
    names=frozenset({*ALWAYS, *FOLDED, "with"}),
    start=START,
    command=command,
    sections=sections,
    rows=rows,
)
