"""An estimate of one configuration, with a form beside it that answers at once."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from orrery.base.errors import ScenarioError
from orrery.reports.ops import STEPS, ops_of
from orrery.scenario.ask import Answer, InfeasibleAnswer, estimate
from orrery.scenario.why import paths
from orrery.web.address import query_of
from orrery.web.answered import Answering, answer_page, answered
from orrery.web.design.drawings import DRAWINGS
from orrery.web.design.figures import headline, name_of
from orrery.web.design.inputs import LOADS, PARAMETERS, design_settings, load_of
from orrery.web.design.shown import shown_of
from orrery.web.design.tree import level
from orrery.web.export import as_csv, as_json, as_svg
from orrery.web.form_groups import groups, names_of
from orrery.web.forms import fields, others, suggestions
from orrery.web.parameters import PageRoute
from orrery.web.render import page

MENU = (10, "/design", "Estimate")

FIELDS = (
    "model",
    "device",
    "tp",
    "pp",
    "dp",
    "ep",
    "weights",
    "activations",
    "kv",
    "engine",
    "input_tokens",
    "output_tokens",
    "usd_per_hour",
    "electricity",
)
"""Settings that stand open beside the answer; the load has fields of its own, all others are folded away."""

TAKEN = {
    **dict.fromkeys(("tp", "pp", "dp", "ep"), "1"),
    "weights": "from checkpoint",
    "activations": "to match",
    "kv": "engine default",
    "engine": "vllm, or as measured",
    "usd_per_hour": "published",
    "electricity": "inside",
}
"""Defaults of fields that are left blank."""

CSV = ("step", "op", "block", "format", "time_s", "flops", "bytes", "bound_by")

Answered = Answer | InfeasibleAnswer


async def design(request: Request) -> Response:
    """The page, its part, or a file."""
    return await answer_page(request, DESIGN)


async def reasons(request: Request) -> Response:
    """A number of the design, and what it is made of; for htmx one level of the tree."""
    query = request.query_params
    settings = design_settings(query)
    _, answer = await answered(request, DESIGN, settings)
    if isinstance(answer, InfeasibleAnswer):
        raise ScenarioError(f"{answer.infeasible} There is no number to explain.")
    path = query.get("path", "tpot_s")
    found = await asyncio.to_thread(level, answer, path, query.get("at", ""))
    return page(
        request,
        "design_why.html",
        level=found,
        why_path=path,
        address=query_of(settings),
        paths=paths(answer),
        headline=headline(answer),
        name_of=name_of,
    )


def _form(request: Request, settings: Mapping[str, Any]) -> dict[str, Any]:
    kind, load = load_of(settings)
    beside = tuple(replace(f, example=TAKEN.get(f.name, f.example)) for f in fields(settings, FIELDS))
    shown = (*FIELDS, *LOADS)
    return {
        "fields": beside,
        "groups": groups(settings, "estimate", shown),
        "hidden": others(settings, (*shown, *names_of("estimate", shown))),
        "loads": LOADS,
        "load_kind": kind,
        "load": load,
        "suggestions": suggestions(request.app.state.place.uploads),
    }


def _file(kind: str, drawing: str, answer: Answered, settings: Mapping[str, Any]) -> Response:
    name = f"design-{settings['model']}-{settings['device']}"
    if kind == "json":
        return as_json(name, answer.to_json() | {"settings": settings})
    if isinstance(answer, InfeasibleAnswer):
        raise ScenarioError(str(answer.infeasible))
    if kind == "csv":
        ops = [(step, op) for step in STEPS for op in ops_of(answer.estimate, step)]
        return as_csv(
            name, CSV, [(s, op.name, op.group, op.format, op.time_s, op.flops, op.bytes, op.bound_by) for s, op in ops]
        )
    if kind == "svg" and drawing in DRAWINGS and (text := DRAWINGS[drawing](answer)):
        return as_svg(f"{name}-{drawing}", text)
    raise ScenarioError(f"format: got {kind[:20]!r}; write json, csv, or svg with drawing={'|'.join(DRAWINGS)}.")


DESIGN = Answering(name="design", settings=design_settings, ask=estimate, shown=shown_of, file=_file, form=_form)

FILES = {"format": ("json", "csv", "svg"), "drawing": tuple(DRAWINGS)}

ROUTES = (
    PageRoute("/design", design, replace(PARAMETERS, words={**PARAMETERS.words, **FILES})),
    PageRoute("/design/why", reasons, replace(PARAMETERS, checked=PARAMETERS.checked | {"path", "at"})),
)
