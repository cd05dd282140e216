"""Runs: long work that goes on while nobody looks, and what came out of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from orrery.base.errors import OrreryError, ScenarioError
from orrery.scenario.fields import BY_NAME
from orrery.web.address import mistake
from orrery.web.forms import suggestions
from orrery.web.parameters import PageRoute, Parameters
from orrery.web.render import page
from orrery.web.runs import form
from orrery.web.runs.inputs import METRICS, OBJECTIVE, RunInputs, asked_of, describe, mistaken_options, of_run
from orrery.web.runs.listing import STATES, line, lines_of
from orrery.web.runs.result import file_of, result_of
from orrery.web.work import Work
from orrery.web.work.kinds import KINDS
from orrery.web.work.run import Run

MENU = (40, "/runs", "Runs")


async def runs(request: Request) -> Response:
    """All of them, newest first."""
    query = request.query_params
    kind, state, text = (query.get(name, "").strip() for name in ("kind", "state", "text"))
    every = _work(request).list()
    return page(
        request,
        "runs.html",
        lines=lines_of(every, kind, state, text),
        num_runs=len(every),
        kinds=tuple(KINDS.values()),
        states=STATES,
        kind=kind,
        state=state,
        text=text,
        is_active=any(run.is_active for run in every),
    )


async def new(request: Request) -> Response:
    """The form, filled with what stands in the address."""
    inputs = asked_of(request.query_params)
    error = mistake(inputs.settings, request.app.state.place) or mistaken_options(inputs)
    if not inputs.settings:
        inputs = replace(inputs, settings=form.begin(inputs.kind))
    return _form(request, inputs, error)


async def submit(request: Request) -> Response:
    """Start a run; the form again where something is wrong with it."""
    async with request.form(max_files=0, max_fields=500) as given:
        inputs = asked_of(_texts(given.multi_items()))
    try:
        id = _work(request).submit(inputs.kind, inputs.settings, inputs.options)
    except OrreryError as error:
        return _form(request, inputs, str(error))
    return RedirectResponse(f"/runs/{id}", 303)


async def run(request: Request) -> Response:
    """Progress of a run, or its result; or a file of it."""
    found, query = _run(request), request.query_params
    if "format" in query:
        return file_of(_work(request), found, query)
    view: Mapping[str, Any] = result_of(_work(request), found, query) if found.state == "done" else {}
    return page(
        request,
        "run.html",
        line=line(found),
        run=found,
        description=describe(found),
        change=_change(found),
        result=view,
        can_report=found.state == "done" and found.kind != "report",
    )


async def cancel(request: Request) -> Response:
    """End it."""
    found = _run(request)
    _work(request).cancel(found.id)
    return RedirectResponse(f"/runs/{found.id}", 303)


async def again(request: Request) -> Response:
    """The same once more, as a run of its own."""
    found, work = _run(request), _work(request)
    is_report = found.kind == "report"
    id = work.report(str(found.options["of"])) if is_report else work.submit(found.kind, found.settings, found.options)
    return RedirectResponse(f"/runs/{id}", 303)


async def report(request: Request) -> Response:
    """A page about it, to hand on; writing it is a run as well."""
    return RedirectResponse(f"/runs/{_work(request).report(_run(request).id)}", 303)


async def forget(request: Request) -> Response:
    """Delete it."""
    found = _run(request)
    if not _work(request).forget(found.id):
        raise ScenarioError("This run goes on; cancel it first.")
    return RedirectResponse("/runs", 303)


def _form(request: Request, inputs: RunInputs, error: str = "") -> Response:
    return page(
        request,
        "run_new.html",
        status=422 if error else 200,
        error=error,
        suggestions=suggestions(request.app.state.place.uploads),
        **form.view(inputs),
    )


def _texts(items: Any) -> Any:
    """The fields of a form as a query; files are none."""
    from starlette.datastructures import ImmutableMultiDict

    return ImmutableMultiDict([(key, value) for key, value in items if isinstance(value, str)])


def _change(found: Run) -> str:
    """The form with the same settings."""
    return "" if found.kind == "report" else of_run(found).address


def _work(request: Request) -> Work:
    return request.app.state.work


def _run(request: Request) -> Run:
    found = _work(request).get(request.path_params["id"])
    if found is None:
        raise HTTPException(404, "There is no run of that name; it may have been deleted.")
    return found


OF_RUNS = Parameters(words={"kind": tuple(KINDS), "state": tuple(STATES)}, texts=frozenset({"text"}))
OF_FORM = Parameters(
    words={"kind": tuple(form.FIRST), "capacity": ("true",)},
    checked=frozenset({"window", "sweep", *(f"{metric}_{OBJECTIVE}" for metric in METRICS)}),
    settings=BY_NAME,
)
OF_RUN = Parameters(checked=frozenset({"format", "chart"}), numbers=frozenset({"from", "to"}))

ROUTES = (
    PageRoute("/runs", runs, OF_RUNS),
    PageRoute("/runs", submit, methods=["POST"]),
    PageRoute("/runs/new", new, OF_FORM),
    PageRoute("/runs/{id}", run, OF_RUN),
    PageRoute("/runs/{id}/cancel", cancel, methods=["POST"]),
    PageRoute("/runs/{id}/again", again, methods=["POST"]),
    PageRoute("/runs/{id}/report", report, methods=["POST"]),
    PageRoute("/runs/{id}/forget", forget, methods=["POST"]),
)
