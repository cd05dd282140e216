"""A report as one HTML page that needs nothing else: no script, no network, no fonts; it prints as it reads."""

import re
from importlib import import_module
from importlib.resources import files
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.sources import Fact
from orrery.base.units import si
from orrery.reports.report import Report, Sensitivity, Table
from orrery.reports.swings import moves_table_rows
from orrery.reports.words import format_value, name_and_unit

EXTRA = "report"


def page(report: Report) -> str:
    """The page. Whatever comes from names and notes is escaped; drawings escape their own."""
    import tomli_w

    return _template("report.html").render(
        report=report,
        css=_text("report.css"),
        facts=[_fact(f) for f in report.facts],
        moves=_moves(report.sensitivity) if report.sensitivity else None,
        settings=tomli_w.dumps(dict(report.settings)) if report.settings else "",
    )


def _text(name: str) -> str:
    return files("orrery.reports").joinpath("templates", name).read_text(encoding="utf-8")


def _template(name: str) -> Any:
    try:
        jinja2 = import_module("jinja2")
    except ModuleNotFoundError:
        raise ScenarioError(
            f"report: pages need jinja2: pip install 'orrery-ai[{EXTRA}]'; --json works without."
        ) from None
    env = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=False,
    )
    env.filters["tied"] = tied
    return env.get_template(name)


_GAP = re.compile(r"(?<=\d) (?=(?:%|[µmnkMGTP]?[sBWJ]|days?|tokens|requests|devices?|x)(?![\w]))")


def tied(text: str) -> str:
    """The text with numbers that no line break takes from their units."""
    return _GAP.sub("\u00a0", text)


def _moves(found: Sensitivity) -> Table:
    names = [m.name for m in found.metrics]
    return Table(
        title="Every input in turn, and the figures there",
        num_words=2,
        columns=("input", "set to", *(m.label for m in found.metrics)),
        rows=tuple(moves_table_rows(found, names)),
    )


def _fact(fact: Fact) -> dict[str, str]:
    """Format a fact as text; a link only where it leads to the web."""
    source = fact.source
    url = source.url if source and source.url.startswith(("https://", "http://")) else ""
    name, unit = name_and_unit(fact.name) if isinstance(fact.value, float) else (fact.name, "")
    return {
        "name": name.replace("_", " "),
        "value": _value(fact.value, unit),
        "basis": str(fact.basis),
        "link": url,
        "source": source.title if source else fact.note or "our own assumption",
        "at": fact.at if source else "",
    }


ORIGINS = {
    "device": "fitted on this device",
    "generation": "fitted on its generation",
    "any": "fitted on other devices",
}


def _value(value: float | str | bool, unit: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return ORIGINS.get(value, value)
    if unit == "usd_per_s":
        return f"{format_value(3600.0 * value, 'usd')} an hour"
    return format_value(value, unit) if unit in ("tokens", "") else si(value, unit)
