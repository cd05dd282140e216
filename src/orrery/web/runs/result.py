"""The result of a run: what its page shows, and the files that it hands out."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from orrery.web.address import Query
from orrery.web.both_widths import at_both_widths
from orrery.web.export import as_csv, as_html, as_json, as_svg
from orrery.web.runs import pictures, served, tables
from orrery.web.work import Work
from orrery.web.work.run import Run

Plain = Mapping[str, Any]


def result_of(work: Work, run: Run, query: Query) -> dict[str, Any]:
    """Context of the template; ``look`` names the part that draws the result."""
    answer = part(work, run, "answer")
    found: dict[str, Any] = {"look": run.kind, "notes": answer.get("notes", ()), "infeasible": answer.get("infeasible")}
    if run.kind == "report" or ("infeasible" in answer and not answer.get("plans")):
        return found
    if run.kind == "sweep":
        rows = part(work, run, "rows")
        drawn = _charts(tables.CURVES, partial(tables.swept_chart, rows))
        return found | {"tables": (tables.swept(rows),), "drawings": drawn}
    if run.kind == "plan":
        launch: Plain = answer["plans"][0]["launch"] if answer["plans"] else {}
        return found | {"tables": (tables.held(answer),), "drawings": {}, "launch": launch}
    if run.kind == "train-plan":
        drawn = {"front": at_both_widths(partial(tables.layout_front, answer))}
        return found | {"tables": (tables.layouts(answer),), "drawings": drawn, "launch": answer["launch"]}
    return found | {"look": "served"} | _served(work, run, answer, query)


def _charts(names: Iterable[str], draw: Callable[[str], str]) -> dict[str, str]:
    """Charts by their names; those of nothing are left out."""
    return {name: svg for name in names if (svg := at_both_widths(partial(draw, name)))}


def _served(work: Work, run: Run, answer: Plain, query: Query) -> dict[str, Any]:
    closed, steps = part(work, run, "closed"), part(work, run, "steps")
    heads, spread = served.spread(answer)
    drawn = _charts(pictures.OVER_TIME, partial(pictures.over_time, answer))
    about = _charts(("latencies", "goodput"), partial(pictures.chart, answer))
    return {
        "figures": served.figures(answer),
        "load": served.load(answer),
        "heads": heads,
        "spread": spread,
        "objectives": served.objectives(answer),
        "is_met": answer["slo_is_met"],
        "about": about,
        "drawings": drawn,
        "compared": served.compared(answer, closed),
        "closed": closed,
        "steps": _steps(steps, query),
        "capacity": _capacity(answer),
        "tables": (),
        "has_requests": part(work, run, "requests") != {},
    }


def _capacity(answer: Plain) -> dict[str, Any] | None:
    found = answer.get("capacity")
    return found and {
        **found,
        "table": tables.probes(answer),
        "drawing": at_both_widths(partial(pictures.probes, answer)),
        "rate": served.format_value(found["requests_per_s"], "requests_per_s"),
        "each": served.format_value(found["requests_per_s_per_device"], "requests_per_s"),
    }


def _steps(steps: Plain, query: Query) -> dict[str, Any] | None:
    """The timeline of the part of the window that is asked for."""
    if not steps or not steps["start_s"]:
        return None
    start_s, end_s = pictures.steps_shown(steps, _number(query.get("from")), _number(query.get("to")))
    drawing = at_both_widths(partial(pictures.steps_drawn, steps, start_s, end_s))
    num_shown = len(steps["start_s"])
    text = f"{num_shown:,} steps are kept" + (
        "" if num_shown == steps["num_steps"] else f", the first of {steps['num_steps']:,}"
    )
    low_s, high_s = steps["window_s"]
    return {
        "drawing": drawing,
        "from": f"{start_s:.4g}",
        "to": f"{end_s:.4g}",
        "text": f"{text}, from {low_s:g} s to {high_s:g} s.",
    }


def part(work: Work, run: Run, name: str) -> Plain:
    """A part of the result; empty where there is none."""
    found = work.part(run.id, name)
    return json.loads(found) if found else {}


def file_of(work: Work, run: Run, query: Query) -> Response:
    """The result as a file: ``json``, ``csv`` (requests, or a sweep's runs), ``svg`` of a chart, ``html`` of a report,
    ``trace`` for ui.perfetto.dev."""
    kind, name = query.get("format", ""), f"{run.kind}-{run.settings.get('model', '')}-{run.id[:6]}"
    if kind == "html" and run.kind == "report" and (found := work.part(run.id, "page")):
        return as_html(name, found.decode())
    if kind == "json" and (answer := part(work, run, "answer")):
        return as_json(name, {**answer, **part(work, run, "requests"), "settings": run.settings})
    if kind == "trace" and (trace := part(work, run, "trace")):
        return as_json(f"{name}.trace", trace)
    if kind == "svg" and (drawing := _drawing(work, run, query)):
        return as_svg(f"{name}-{query.get('chart', '')}", drawing)
    if kind == "csv" and (found := _csv(work, run, name)):
        return found
    raise HTTPException(404, "This run has no such file.")


def _drawing(work: Work, run: Run, query: Query) -> str:
    chart, answer = query.get("chart", ""), part(work, run, "answer")
    if run.kind == "sweep":
        return tables.swept_chart(part(work, run, "rows"), chart) if chart in tables.CURVES else ""
    if run.kind == "train-plan":
        return tables.layout_front(answer) if chart == "front" else ""
    if chart == "steps":
        steps = _steps(part(work, run, "steps"), query)
        return steps["drawing"] if steps else ""
    has_chart = "latency_curves" in answer and (chart != "rates" or "capacity" in answer)
    return pictures.chart(answer, chart) if has_chart else ""


def _csv(work: Work, run: Run, name: str) -> Response | None:
    if rows := part(work, run, "rows"):
        heads = ("run", *rows["rows"][0])
        return as_csv(name, heads, [(a, *row.values()) for a, row in zip(rows["labels"], rows["rows"], strict=True)])
    if requests := part(work, run, "requests"):
        columns = {key: column for key, column in requests.items() if column}
        return as_csv(name, tuple(columns), zip(*columns.values(), strict=True))
    if run.kind in ("plan", "train-plan") and (answer := part(work, run, "answer")).get("plans"):
        table = tables.held(answer) if run.kind == "plan" else tables.layouts(answer)
        return as_csv(name, table.heads, table.rows)
    return None


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
