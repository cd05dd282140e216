"""``orrery calibrate compare`` as a page: why measured runs are slower than predicted."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orrery.base.units import percent
from orrery.calibrate.compare.compare import compare_tables
from orrery.calibrate.runs.read import read_runs
from orrery.calibrate.runs.settings import BY_NAME as RUN_SETTINGS
from orrery.evidence.tables import Table as Measured
from orrery.scenario.jobs import SLOW
from orrery.scenario.show import readable
from orrery.web.address import Query
from orrery.web.command_pages.command_page import CommandPage, Plain, Section, Table, flags, form_of
from orrery.web.export import Cell
from orrery.web.forms import Field
from orrery.web.named import FILES, grounded

FIRST = ("model", "device", "tp", "weights", "engine", "engine_version")
TABLE = "runs.csv"
LATENCIES = ("ttft", "tpot", "itl")
MIN_EVIDENCE_FRAC = 0.01
"""Evidence from which a cause has a row; the first three always have one."""


def settings(query: Query) -> dict[str, Any]:
    """Settings of the runs, with ``runs``: the table, and ``files``: uploaded results."""
    found: dict[str, Any] = {
        name: value for name in (*RUN_SETTINGS, "runs") if (value := query.get(name, "").strip().replace("\r\n", "\n"))
    }
    files = [part for value in query.getlist("files") for part in value.replace(",", " ").split()]
    return {**found, "files": files} if files else found


def answer(inputs: Plain) -> dict[str, Any]:
    """The worker's answer: what the command prints with ``--json``."""
    stated = {name: str(value) for name, value in inputs.items() if name in RUN_SETTINGS}
    with TemporaryDirectory() as folder:
        paths = [Path(path) for path in inputs.get("files", ())]
        if text := inputs.get("runs"):
            (table := Path(folder) / TABLE).write_text(f"{text}\n", encoding="utf-8")
            paths.append(table)
        measured = read_runs(paths, stated)
    _check(measured, stated)
    return compare_tables([measured]).to_json()


def _check(measured: Measured, stated: Mapping[str, str]) -> None:
    """Refuse names in the table that are paths of this machine; those of settings were looked at before."""
    for name in FILES & measured.columns.keys():
        for cell in set(measured.columns[name]) - {"", stated.get(name, "")}:
            grounded({name: cell}, Path())


def sections(plain: Plain) -> tuple[Section, ...]:
    """The verdict with every number beside its prediction, the causes, and what to look at next."""
    return tuple(_sections(plain))


def _sections(plain: Plain) -> Iterator[Section]:
    is_named = plain["nothing_frac"] < 0.5 and bool(plain["suspects"])
    columns = ("Run", "Metric", "Measured", "Predicted", "Slower by", *(("With the cause",) if is_named else ()))
    cells = tuple(
        (
            c["run"],
            _metric(c["metric"]),
            readable(c["metric"], c["measured"]),
            readable(c["metric"], c["predicted"]),
            percent(c["slower_frac"], is_signed=True),
            *((percent(c["with_cause_frac"], is_signed=True),) if is_named else ()),
        )
        for c in plain["cells"]
    )
    yield Section(
        title=str(plain["verdict"]).capitalize(),
        verdict=plain["summary"],
        table=Table(caption="Every measured number beside its prediction", columns=columns, rows=cells),
        reasons=tuple(f"Declined {rows}: {reason}" for reason, rows in plain["declined"].items()),
    )
    if is_named:
        yield _causes(plain)
        yield _next(plain)
    if assumed := plain["assumed"]:
        yield Section(title="Assumed", reasons=tuple(f"{what} ({rows} runs)" for what, rows in assumed.items()))


def _causes(plain: Plain) -> Section:
    suspects: list[dict[str, Any]] = plain["suspects"]
    first = suspects[0]
    same = first["not_told_from"]
    rows = tuple(
        (_cause(s["cause"]), percent(s["evidence_frac"]), percent(s["explained_frac"]), s["severity_said"])
        for n, s in enumerate(suspects)
        if n < 3 or s["evidence_frac"] >= MIN_EVIDENCE_FRAC
    )
    return Section(
        title="Causes",
        verdict=f"{first['title']}. {first['shows']}",
        table=Table(caption="The likeliest first", columns=("Cause", "Evidence", "Explains", "Severity"), rows=rows),
        reasons=(
            *([f"These runs cannot tell it from {', '.join(map(_cause, same)).casefold()}."] if same else []),
            *(f"For: {_said(line)}." for line in first["speaks_for"]),
            *(f"Against: {_said(line)}." for line in first["speaks_against"]),
            *([f"Ruled out: {', '.join(map(_cause, plain['excluded'])).casefold()}."] if plain["excluded"] else []),
        ),
    )


def _next(plain: Plain) -> Section:
    """Checks on the machine, and the run that tells the first two causes apart."""
    suspects = [plain["suspects"][0], *([plain["second"]] if plain["second"] else [])]
    rows = [(_cause(s["cause"]), line) for s in suspects for line in s["checks"]]
    if run := plain["next_run"]:
        ends = (("first", "first_value"), ("second", "second_value"))
        apart = ", ".join(f"{readable(run['metric'], run[v])} if {_cause(run[n]).casefold()}" for n, v in ends)
        rows.append(("Run that tells them apart", f"{run['what']} ({_metric(run['metric'])}: {apart})"))
    return Section(
        title="Next checks", table=Table(caption="On the machine itself", columns=("Cause", "Check"), rows=tuple(rows))
    )


def _metric(name: str) -> str:
    """``ttft_s`` as TTFT, ``output_tokens_per_s`` as Output tokens per s."""
    bare = name.removesuffix("_s")
    words = bare.upper() if bare in LATENCIES else name.replace("_", " ")
    return words[:1].upper() + words[1:]


def _said(line: str) -> str:
    """A sentence of the command with metrics as people say them."""
    return re.sub(rf"\b({'|'.join(LATENCIES)})_s\b", lambda found: found[1].upper(), line)


def _cause(name: str) -> str:
    """``slow-memory`` as Slow memory."""
    return name.replace("-", " ").capitalize()


def rows(plain: Plain) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """A row for each measured number."""
    header = ("run", "metric", "measured", "predicted", "slower_frac", "with_cause_frac", "is_inside")
    return header, [[c[name] for name in header] for c in plain["cells"]]


def command(inputs: Plain) -> str:
    """The lines that ask it, the table included."""
    stated = {name: value for name, value in inputs.items() if name in RUN_SETTINGS}
    files = [shlex.quote(str(name)) for name in inputs.get("files", ())]
    table = f"printf '%s\\n' {shlex.quote(str(inputs['runs']))} > {TABLE}\n" if "runs" in inputs else ""
    return f"{table}orrery calibrate compare {' '.join([*files, *([TABLE] if table else [])])} {flags(stated)}".strip()


_named, _folded = form_of(RUN_SETTINGS, FIRST, {})


def _first(inputs: Plain) -> tuple[Field, ...]:
    table = Field(
        name="runs",
        label="Measured runs (CSV)",
        value=str(inputs.get("runs", "")),
        help="A measured table: the first line names the columns, SI units; a line for each run.",
        example="kind,mode,concurrency,input_tokens,output_tokens,ttft_s,tpot_s",
        num_lines=6,
    )
    files = Field(
        name="files",
        label="Result files",
        value=", ".join(inputs.get("files", ())),
        help="Uploaded results of vllm bench, guidellm, AIPerf and others, or tables, comma-separated.",
        example="upload:NAME",
        suggested="results",
    )
    return (*_named(inputs), files, table)


PAGE = CommandPage(
    name="diagnose",
    title="Why am I slow?",
    lead="Measured runs against their prediction: each known fault is fitted to them, and the faults are ranked by how "
    "well each explains what is lost. Runs at several loads tell more than one.",
    menu=(29, "Diagnose"),
    page="slower-than-predicted.md",
    first=_first,
    folded=_folded,
    settings=settings,
    names=frozenset({*RUN_SETTINGS, "runs", "files"}),
    start=SLOW,
    command=command,
    sections=sections,
    rows=rows,
    uploaded=frozenset({"files"}),
)
