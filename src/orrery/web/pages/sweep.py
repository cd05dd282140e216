"""One setting from end to end, as curves, with a slider."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from orrery.base.errors import OrreryError, ScenarioError
from orrery.base.units import si
from orrery.drawing.paper import drawn_at
from orrery.web.address import query_of, settings_of
from orrery.web.design.inputs import ESTIMATED
from orrery.web.export import as_csv, as_json, as_svg
from orrery.web.forms import fields, others, suggestions
from orrery.web.named import without_place
from orrery.web.parameters import PageRoute, Parameters
from orrery.web.render import page, wants_part
from orrery.web.sweep.cache import SweepCache
from orrery.web.sweep.curves import Swept
from orrery.web.sweep.ends import crossings, gaps
from orrery.web.sweep.inputs import DEFAULT_POINTS, DEFAULTS, SweepInputs, asked_of
from orrery.web.sweep.metrics import BY_KEY, METRICS, Metric
from orrery.web.sweep.parameter import PARAMETERS as VARIED
from orrery.web.sweep.pictures import chart
from orrery.web.sweep.table import HEADER, rows, to_json

CHART_PX = 380.0
"""Width of a chart of the page; the file of one is as wide as any other."""

MENU = (30, "/sweep", "Sweep")

FIELDS = (
    "model",
    "device",
    "tp",
    "pp",
    "dp",
    "weights",
    "kv",
    "engine",
    "input_tokens",
    "output_tokens",
    "concurrency",
    "rate",
    "slo",
    "usd_per_hour",
    "gpu_memory_utilization",
    "max_num_seqs",
)


async def sweep(request: Request) -> Response:
    """The page, its part, or a file; a mistake stands where the curves would, and the form keeps what was typed."""
    inputs, problem = None, ""
    try:
        inputs = asked_of(request.query_params)
        found = await _shelf(request).swept(inputs)
    except OrreryError as error:
        if "format" in request.query_params:
            raise
        found, problem = None, without_place(str(error), request.app.state.place.uploads)
    if inputs and found and (kind := request.query_params.get("format")):
        return _file(kind, inputs, found, request.query_params.get("show", METRICS[0].key))
    shown = _shown(inputs, found) if inputs and found else {}
    answer = page(
        request,
        "sweep.html",
        status=422 if problem else 200,
        problem=problem,
        answer=shown,
        **_form(request, inputs if found else None),
    )
    if inputs and found:
        answer.headers["hx-push-url"] = f"/sweep?{inputs.query()}"
    return answer


async def point(request: Request) -> Response:
    """The figures where the slider stands."""
    inputs = asked_of(request.query_params)
    return page(request, "sweep_point.html", answer=_point(inputs, await _shelf(request).swept(inputs)))


def _form(request: Request, inputs: SweepInputs | None) -> dict[str, Any]:
    """Values of the form: the parsed ones, else the typed ones."""
    query = request.query_params
    settings = inputs.settings if inputs else settings_of(query) or DEFAULTS
    controls = inputs.controls if inputs else dict(query)
    blank = dict.fromkeys(("from", "to", "values", "by", "lines"), "")
    controls = {**blank, "vary": "concurrency", "points": str(DEFAULT_POINTS), "scale": "log"} | controls
    vary = VARIED.get(controls["vary"])
    return {
        "controls": controls | {"is_range": vary is None or vary.is_number},
        "is_part": wants_part(request),
        "fields": fields(settings, FIELDS),
        "hidden": others(settings, FIELDS),
        "parameters": VARIED.values(),
        "suggestions": suggestions(request.app.state.place.uploads),
    }


def _shown(inputs: SweepInputs, found: Swept) -> dict[str, Any]:
    return {
        "inputs": inputs,
        "charts": _charts(inputs, found),
        "gaps": list(gaps(found)),
        "crossings": [c.describe(inputs.vary.unit) for c in crossings(found, inputs)],
        "words": [inputs.vary.describe(v) for v in inputs.values],
        "num_estimates": len(inputs.values) * len(inputs.lines),
    } | _point(inputs, found)


def _charts(inputs: SweepInputs, found: Swept) -> list[tuple[Metric, str]]:
    """One of each metric, narrow enough that three stand side by side, and one on a phone."""
    with drawn_at(CHART_PX):
        return [(metric, chart(found, inputs, metric)) for metric in METRICS]


def _point(inputs: SweepInputs, found: Swept) -> dict[str, Any]:
    """Each line's figures where the slider stands, and where to go from there."""
    value = inputs.values[inputs.at]
    points = [
        (curve.name, curve.points[inputs.at], query_of(_estimated(inputs, value, line)))
        for line, curve in zip(inputs.lines, found.curves, strict=True)
    ]
    two = [
        query_of(_estimated(inputs, value, line), side) for line, side in zip(inputs.lines, ("a.", "b."), strict=False)
    ]
    return {
        "points": points,
        "metrics": METRICS,
        "description": f"{inputs.vary.label}: {inputs.vary.describe(value)}",
        "si": si,
        "compared": "&".join(two) if len(two) > 1 else "",
    }


def _estimated(inputs: SweepInputs, value: str, line: str) -> dict[str, Any]:
    """The settings of a point as an estimate reads them: without the SLO, which only draws a line here."""
    return {name: set_to for name, set_to in inputs.at_point(value, line).items() if name in ESTIMATED}


def _file(kind: str, inputs: SweepInputs, found: Swept, show: str) -> Response:
    name = f"sweep-{inputs.vary.name}"
    if kind == "csv":
        return as_csv(name, HEADER, rows(inputs, found))
    if kind == "json":
        return as_json(name, to_json(inputs, found))
    if kind == "svg" and show in BY_KEY:
        return as_svg(f"{name}-{show}", chart(found, inputs, BY_KEY[show]))
    raise ScenarioError(
        f"format: got {kind[:20]!r}, show {show[:40]!r}; write csv, json or svg, and show one of {', '.join(BY_KEY)}."
    )


def _shelf(request: Request) -> SweepCache:
    state = request.app.state
    if not hasattr(state, "sweeps"):
        state.sweeps = SweepCache(state.place.uploads)
    return state.sweeps


PARAMETERS = Parameters(
    words={
        **dict.fromkeys(("was", "was_by"), tuple(VARIED)),
        "format": ("csv", "json", "svg"),
        "show": tuple(BY_KEY),
    },
    checked=frozenset({"vary", "by", "from", "to", "points", "values", "lines", "scale", "at"}),
    settings=ESTIMATED | {"slo"},
)

ROUTES = (PageRoute("/sweep", sweep, PARAMETERS), PageRoute("/sweep/point", point, PARAMETERS))
