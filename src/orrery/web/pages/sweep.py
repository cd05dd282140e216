"""One setting from end to end, as curves, with a slider."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from orrery.base.errors import OrreryError, ScenarioError
from orrery.base.units import si
from orrery.web.address import query_of, settings_of
from orrery.web.export import as_csv, as_json, as_svg
from orrery.web.forms import fields, others, suggestions
from orrery.web.named import without_place
from orrery.web.render import page, wants_part
from orrery.web.sweep.asked import DEFAULT_POINTS, DEFAULTS, Asked, asked_of
from orrery.web.sweep.curves import Swept
from orrery.web.sweep.ends import crossings, gaps
from orrery.web.sweep.metrics import BY_KEY, METRICS
from orrery.web.sweep.parameter import PARAMETERS
from orrery.web.sweep.pictures import chart
from orrery.web.sweep.shelf import Shelf
from orrery.web.sweep.table import HEADER, rows, told

MENU = (30, "/sweep", "Sweep")

FIELDS = (
    "model", "device", "tp", "pp", "dp", "weights", "kv", "engine", "input_tokens", "output_tokens", "concurrency",
    "rate", "slo", "usd_per_hour", "gpu_memory_utilization", "max_num_seqs",
)  # fmt: skip


async def sweep(request: Request) -> Response:
    """The page, its part, or a file; a mistake stands where the curves would, and the form keeps what was typed."""
    asked, problem = None, ""
    try:
        asked = asked_of(request.query_params)
        found = await _shelf(request).swept(asked)
    except OrreryError as error:
        if "format" in request.query_params:
            raise
        found, problem = None, without_place(str(error), request.app.state.place.uploads)
    if asked and found and (kind := request.query_params.get("format")):
        return _file(kind, asked, found, request.query_params.get("show", METRICS[0].key))
    shown = _shown(asked, found) if asked and found else {}
    answer = page(
        request, "sweep.html", status=422 if problem else 200, problem=problem, answer=shown,
        **_form(request, asked if found else None),
    )  # fmt: skip
    if asked and found:
        answer.headers["hx-push-url"] = f"/sweep?{asked.query()}"
    return answer


async def point(request: Request) -> Response:
    """The figures where the slider stands."""
    asked = asked_of(request.query_params)
    return page(request, "sweep_point.html", answer=_point(asked, await _shelf(request).swept(asked)))


def _form(request: Request, asked: Asked | None) -> dict[str, Any]:
    """What the form holds: what was understood, else what was typed."""
    query = request.query_params
    settings = asked.settings if asked else settings_of(query) or DEFAULTS
    controls = asked.controls if asked else dict(query)
    blank = dict.fromkeys(("from", "to", "values", "by", "lines"), "")
    controls = {**blank, "vary": "concurrency", "points": str(DEFAULT_POINTS), "scale": "log"} | controls
    vary = PARAMETERS.get(controls["vary"])
    return {
        "controls": controls | {"is_range": vary is None or vary.is_number}, "is_part": wants_part(request),
        "fields": fields(settings, FIELDS), "hidden": others(settings, FIELDS), "parameters": PARAMETERS.values(),
        "suggestions": suggestions(request.app.state.place.uploads),
    }  # fmt: skip


def _shown(asked: Asked, found: Swept) -> dict[str, Any]:
    return {
        "asked": asked, "charts": [(m, chart(found, asked, m)) for m in METRICS], "gaps": list(gaps(found)),
        "crossings": [c.told(asked.vary.unit) for c in crossings(found, asked)],
        "words": [asked.vary.told(v) for v in asked.values],
        "num_estimates": len(asked.values) * len(asked.lines),
    } | _point(asked, found)  # fmt: skip


def _point(asked: Asked, found: Swept) -> dict[str, Any]:
    """Each line's figures where the slider stands, and where to go from there."""
    value = asked.values[asked.at]
    spots = [
        (curve.name, curve.spots[asked.at], query_of(asked.at_point(value, line)))
        for line, curve in zip(asked.lines, found.curves, strict=True)
    ]
    two = [query_of(asked.at_point(value, line), side) for line, side in zip(asked.lines, ("a.", "b."), strict=False)]
    return {
        "spots": spots, "metrics": METRICS, "told": f"{asked.vary.label}: {asked.vary.told(value)}", "si": si,
        "compared": "&".join(two) if len(two) > 1 else "",
    }  # fmt: skip


def _file(kind: str, asked: Asked, found: Swept, show: str) -> Response:
    name = f"sweep-{asked.vary.name}"
    if kind == "csv":
        return as_csv(name, HEADER, rows(asked, found))
    if kind == "json":
        return as_json(name, told(asked, found))
    if kind == "svg" and show in BY_KEY:
        return as_svg(f"{name}-{show}", chart(found, asked, BY_KEY[show]))
    raise ScenarioError(
        f"format: got {kind[:20]!r}, show {show[:40]!r}; write csv, json or svg, and show one of {', '.join(BY_KEY)}."
    )


def _shelf(request: Request) -> Shelf:
    state = request.app.state
    if not hasattr(state, "sweeps"):
        state.sweeps = Shelf(state.place.uploads)
    return state.sweeps


ROUTES = (Route("/sweep", sweep), Route("/sweep/point", point))
