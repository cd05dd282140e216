"""The question: a model, devices and traffic."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from orrery.scenario.objectives import METRICS
from orrery.web.address import mistake, query_of
from orrery.web.design.inputs import ESTIMATED
from orrery.web.form_groups import groups, names_of
from orrery.web.forms import others, suggestions
from orrery.web.parameters import PageRoute, Parameters
from orrery.web.question.examples import EXAMPLES
from orrery.web.question.inputs import PLANNED, form_values, other_objectives, plan_settings
from orrery.web.render import page

MENU = (0, "/plan", "Plan")

BEGIN: Mapping[str, Any] = {
    "model": "llama-3.1-70b",
    "device": "h100-sxm",
    "max_devices": 8,
    "trace": "chat",
    "slo": ["ttft:1000", "tpot:50"],
}
"""Initial values of the form."""

SHOWN = frozenset({"model", "device", "max_devices", "trace", "rate", "input_tokens", "output_tokens", "slo"})
"""Settings whose fields are open."""

SPECIAL = frozenset({"weights", "kv", "engine", "objective", "usd_per_hour", "electricity"})
"""Settings that the form folds away until they are used."""


async def home(request: Request) -> Response:
    """The form, filled with the settings of the address."""
    settings = plan_settings(request.query_params)
    return question(request, settings or BEGIN, mistake(settings, request.app.state.place))


def question(request: Request, settings: Mapping[str, Any], error: str = "") -> Response:
    """The form with these settings, and what is wrong with them."""
    uploads, shown = request.app.state.place.uploads, SHOWN | SPECIAL
    return page(
        request,
        "home.html",
        status=422 if error else 200,
        suggestions=suggestions(uploads),
        examples=EXAMPLES,
        values=form_values(settings),
        error=error,
        is_special=not SPECIAL.isdisjoint(settings),
        groups=groups(settings, "plan", shown),
        hidden=others(settings, (*shown, *names_of("plan", shown))),
        slo_rest=other_objectives(settings),
    )


async def one(request: Request) -> Response:
    """To the estimate of one design: what a plan alone reads stays behind."""
    plan = plan_settings(request.query_params)
    if error := mistake(plan, request.app.state.place):
        return question(request, plan, error)
    settings = {k: v for k, v in plan.items() if k in ESTIMATED}
    return RedirectResponse(f"/design?{query_of(settings)}", 303)


PARAMETERS = Parameters(settings=PLANNED, checked=frozenset(METRICS))

ROUTES = (PageRoute("/plan", home, PARAMETERS), PageRoute("/plan/one", one, PARAMETERS))
