"""``orrery what-if`` as a page: a deployment without a technique and with it."""

from collections.abc import Sequence
from typing import Any

from orrery.base.units import percent
from orrery.reports.words import format_value
from orrery.scenario.fields import BY_NAME
from orrery.scenario.levers import levers
from orrery.scenario.schema import read_scenario
from orrery.scenario.setting import DEPLOYMENTS
from orrery.scenario.what_if import EVERY, what_if
from orrery.scenario.what_if.break_even import BreakEven
from orrery.scenario.what_if.metrics import BY_NAME as METRICS
from orrery.scenario.what_if.metrics import CHOICES
from orrery.web.address import Query, read_by, settings_of
from orrery.web.command_pages.command_page import CommandPage, Plain, Section, Table, fields_from, flags
from orrery.web.export import Cell
from orrery.web.forms import Field

ALWAYS = ("model", "device", "tp", "input_tokens", "output_tokens", "concurrency")
FOLDED = (
    "weights",
    "kv",
    "engine",
    "pp",
    "dp",
    "ep",
    "rate",
    "trace",
    "num_requests",
    "devices",
    "max_devices",
    "global_batch",
    "micro_batch",
    "seq_len",
    "acceptance",
    "kv_kept_tokens",
    "usd_per_hour",
)
START = {
    "technique": "token-split",
    "model": "llama-3.1-70b",
    "device": "h100-sxm",
    "tp": "4",
    "input_tokens": "1024",
    "output_tokens": "256",
    "concurrency": "32",
}


DEPLOYED = read_by(DEPLOYMENTS)


def settings(query: Query) -> dict[str, Any]:
    """Settings of the deployment, with ``technique`` and ``metric``."""
    found = {k: v for k, v in settings_of(query).items() if k in DEPLOYED}
    named = {name: value for name in ("technique", "metric") if (value := query.get(name, "").strip())}
    return {**named, **found}


def answer(inputs: Plain) -> dict[str, Any]:
    """The worker's answer: what the command prints with ``--json``."""
    plain = dict(inputs)
    names = str(plain.pop("technique", "")).replace(",", " ").split() or [EVERY]
    metric = str(plain.pop("metric", ""))
    found = what_if(names, read_scenario(plain), metric=metric)
    return found.to_json()


def sections(plain: Plain) -> tuple[Section, ...]:
    """One section for each technique by name; of all of them a ranking, and those without effect."""
    results: list[dict[str, Any]] = plain["results"]
    if len(results) <= FEW:
        return tuple(map(_section, results))
    fitting = [r for r in results if r["outcome"] == "makes it fit"]
    rest = [r for r in results if r["outcome"] != "makes it fit"]
    ranked = _ranking(rest)
    if not fitting:
        return ranked
    return (_fitting(fitting), *(ranked if ranked[0].table else ranked[1:]))


FEW = 6
"""Techniques up to which each has its own section."""


def _fitting(results: Sequence[dict[str, Any]]) -> Section:
    """Techniques with which a deployment fits that does not fit as it is."""
    names = [m for m in METRICS if any(r["with"].get(m) is not None for r in results)]
    rows = tuple((r["technique"], *(format_value(r["with"].get(m), METRICS[m].unit) for m in names)) for r in results)
    columns = ("Technique", *(METRICS[m].words for m in names))
    return Section(
        title="The deployment does not fit its devices; with these it does",
        table=Table(caption=f"{len(rows)} techniques make it fit", columns=columns, rows=rows),
    )


def _section(r: dict[str, Any]) -> Section:
    turns = [f"Break-even, {_turn(name, r['break_even'][name])}." for name in r["break_even"] or ()]
    words = f"{r['gains']} Costs: {r['costs']}" if r["gains"] else ""
    measured = [f"Measure: {what}." for what in r["must_be_measured"]]
    reasons = (r["because"], words, *turns, *measured)
    return Section(
        title=r["technique"],
        verdict=_verdict(r),
        table=_sides(r) if r["without"] and r["with"] and r["difference"] else None,
        reasons=tuple(one for one in reasons if one),
        command=r["command"],
    )


def _verdict(r: dict[str, Any]) -> str:
    d = r["difference"].get(r["metric"])
    if r["outcome"] != "changes" or not d:
        return str(r["verdict"])
    return f"{METRICS[r['metric']].words}: {_change(d['frac'])}{_between(d)}; {r['verdict']}"


def _between(d: Plain) -> str:
    if d["low_80"] is None or d["high_80"] is None or not d["frac"]:
        return ""
    return f" (80 %: {_change(d['low_80'])} to {_change(d['high_80'])})"


def _turn(name: str, plain: Plain) -> BreakEven:
    """Where the technique begins or ceases to help, in the words of the command."""
    found: dict[str, Any] = dict(plain)
    return BreakEven(input=name, **found)


def _sides(r: dict[str, Any]) -> Table:
    rows = tuple(
        (
            METRICS[name].words,
            format_value(r["without"].get(name), METRICS[name].unit),
            format_value(r["with"].get(name), METRICS[name].unit),
            _change(d["frac"]),
            f"{_change(d['low_80'])} to {_change(d['high_80'])}" if d["low_80"] is not None and d["frac"] else "",
        )
        for name, d in r["difference"].items()
    )
    return Table(
        caption="Same seeds on both sides", columns=("", "Without", "With", "Difference", "80 % interval"), rows=rows
    )


def _ranking(results: Sequence[dict[str, Any]]) -> tuple[Section, ...]:
    moved = [r for r in results if r["outcome"] == "changes" and r["metric"] in r["difference"]]
    rows = tuple(
        (
            r["technique"],
            format_value(r["without"].get(r["metric"]), METRICS[r["metric"]].unit),
            format_value(r["with"].get(r["metric"]), METRICS[r["metric"]].unit),
            _change(r["difference"][r["metric"]]["frac"]),
            _between(r["difference"][r["metric"]]).strip(" ()").removeprefix("80 %: "),
            str(r["verdict"]),
        )
        for r in moved
    )
    columns = ("Technique", "Without", "With", "Difference", "80 % interval", "Verdict")
    first = Section(
        title=f"Ranked by {METRICS[moved[0]['metric']].words}" if moved else "No technique changes this deployment",
        verdict=_best(moved),
        table=Table(caption=f"{len(moved)} techniques change it", columns=columns, rows=rows) if rows else None,
        reasons=_in_use(moved),
    )
    rest = [r for r in results if r not in moved]
    return (first, Section(title=f"Without effect or not tried ({len(rest)})", reasons=_reasons(rest)))


def _in_use(moved: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Techniques whose side without is not the deployment as it is."""
    found = {
        words: [r["technique"] for r in moved if r["state"] == state]
        for state, words in (("in use", "In use here"), ("default", "In use by default"))
    }
    return tuple(f"{words}; without is with it off: {', '.join(names)}." for words, names in found.items() if names)


def _best(moved: Sequence[dict[str, Any]]) -> str:
    return f"{moved[0]['technique']}: {_verdict(moved[0])}" if moved else ""


def _reasons(results: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    found: dict[str, list[str]] = {}
    for r in results:
        found.setdefault(str(r["because"]).removeprefix("no effect on this deployment: "), []).append(r["technique"])
    return tuple(f"{', '.join(names)}: {because}" for because, names in found.items())


def rows(plain: Plain) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """A row for each technique and metric."""
    header = ("technique", "outcome", "verdict", "metric", "without", "with", "difference_frac", "low_80", "high_80")
    cells: list[Sequence[Cell]] = []
    for r in plain["results"]:
        head = [r["technique"], r["outcome"], r["verdict"]]
        for name, d in r["difference"].items():
            cells.append(
                [*head, name, r["without"].get(name), r["with"].get(name), d["frac"], d["low_80"], d["high_80"]]
            )
        if not r["difference"]:
            cells.append([*head, r["metric"], None, None, None, None, None])
    return header, cells


def command(inputs: Plain) -> str:
    """The line that asks it."""
    plain = dict(inputs)
    names = str(plain.pop("technique", "")).replace(",", " ")
    return f"orrery what-if {names or '--all'} {flags(plain)}"


def _form(names: Sequence[str], inputs: Plain) -> tuple[Field, ...]:
    return fields_from([BY_NAME[name] for name in names if name in BY_NAME], inputs, {})


def _first(inputs: Plain) -> tuple[Field, ...]:
    technique = Field(
        name="technique",
        label="Technique (blank: all, ranked)",
        value=str(inputs.get("technique", "")),
        help="Names as in orrery show techniques, several with commas; blank ranks every technique.",
        example="all, ranked",
        suggested="techniques",
    )
    metric = Field(
        name="metric", label="Ranked by", value=str(inputs.get("metric", "")), help="The figure.", example="throughput"
    )
    return (technique, *_form(ALWAYS, inputs), metric)


def _change(frac: float | None) -> str:
    """``+12.3 %``; a dash where it is unknown."""
    return "-" if frac is None else "none" if frac == 0.0 else percent(frac, 1, is_signed=True)


PAGE = CommandPage(
    name="what-if",
    title="What would a technique bring?",
    lead="Your deployment without a technique and with it: the difference with its 80 % interval, from where it helps, "
    "and what must be measured. Errors that both sides share cancel.",
    menu=(25, "What if"),
    page="what-if.md",
    first=_first,
    folded=lambda inputs: _form(FOLDED, inputs),
    settings=settings,
    names=DEPLOYED | {"technique", "metric"},
    start=START,
    command=command,
    sections=sections,
    rows=rows,
    choices={"metric": ("", *CHOICES)},
    suggested={"techniques": tuple(levers())},
)
