"""Plans: the search's answer on an interactive front, with what was rejected and how to launch the best."""

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from orrery.base.errors import OrreryError
from orrery.scenario.objectives import METRICS
from orrery.scenario.schema import read_scenario
from orrery.web.address import query_of
from orrery.web.both_widths import at_both_widths
from orrery.web.command import command
from orrery.web.export import as_csv, as_json, as_svg
from orrery.web.named import grounded
from orrery.web.pages.home import question
from orrery.web.parameters import PageRoute, Parameters
from orrery.web.plans import front, rejected, table
from orrery.web.plans.candidate import Plain
from orrery.web.question.inputs import PLANNED, describe, is_from_form, plan_settings
from orrery.web.render import page, wants_part


async def plans(request: Request) -> Response:
    """The page at once, with a place that the answer comes to; the answer itself for htmx, and with ``whole``."""
    query = request.query_params
    settings = plan_settings(query)
    if is_from_form(query):
        return RedirectResponse(f"/plans?{query_of(settings)}", 303)
    try:
        inputs = grounded(settings, request.app.state.place.uploads)
        read_scenario(inputs)
        if not settings:
            return RedirectResponse("/plan", 303)
        view: dict[str, Any] = {"settings": settings, "description": describe(settings), "address": query_of(settings)}
        if not (wants_part(request) or "whole" in query or "format" in query):
            return page(request, "plans.html", is_waiting=True, search=request.url.query, **view)
        answer = {**await request.app.state.work.answer("plan", inputs, request), "settings": settings}
    except OrreryError as error:
        if wants_part(request):
            raise
        return question(request, settings, str(error))
    return _exported(request, answer) or page(
        request, "plans.html", is_waiting=False, **view, **_shown(request, answer)
    )


def _exported(request: Request, answer: Plain) -> Response | None:
    name = f"plans-{answer['settings'].get('model', '')}"
    if (kind := request.query_params.get("format")) == "json":
        return as_json(name, answer)
    if kind == "csv":
        return as_csv(name, table.HEADER, table.cells(answer))
    return as_svg(name, _drawn(request, answer)) if kind == "svg" else None


def _drawn(request: Request, answer: Plain) -> str:
    x, y = _sides(request)
    return front.drawn(answer, x, y)


def _sides(request: Request) -> tuple[front.Side, front.Side]:
    query = request.query_params
    return front.side(front.X_AXES, query.get("x", "")), front.side(front.Y_AXES, query.get("y", ""))


def _shown(request: Request, answer: Plain) -> dict[str, Any]:
    """Context of the template."""
    sort, (x, y) = request.query_params.get("sort", ""), _sides(request)
    first = next(iter(table.rows(answer, "")), None)
    return {
        "answer": answer,
        "rows": table.rows(answer, sort),
        "first": first,
        "figures": table.figures(first) if first else (),
        "columns": table.COLUMNS,
        "sort": sort,
        "next_sort": table.next_sort,
        "x": x,
        "y": y,
        "along": front.X_AXES,
        "up": front.Y_AXES,
        "drawing": at_both_widths(lambda: front.drawn(answer, x, y)),
        "points": front.front_points(answer),
        "spot_columns": front.SPOT_COLUMNS,
        "kinds": rejected.kinds(answer),
        "counts": rejected.counts(answer),
        "fewer": rejected.fewer(answer),
        "command": command("plan", plan_settings(request.query_params)),
    }


PARAMETERS = Parameters(
    words={
        "x": tuple(one.key for one in front.X_AXES),
        "y": tuple(one.key for one in front.Y_AXES),
        "sort": tuple(sign + one.key for one in table.COLUMNS for sign in ("", "-")),
        "format": ("json", "csv", "svg"),
        "whole": ("1",),
    },
    checked=frozenset(METRICS),
    settings=PLANNED,
)

ROUTES = (PageRoute("/plans", plans, PARAMETERS),)
