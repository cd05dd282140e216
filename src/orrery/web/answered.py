"""A page that answers the question in its own address: whole, as the part beside a form, or as a file."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from orrery.base.errors import OrreryError
from orrery.scenario.schema import Scenario, read_scenario
from orrery.web.address import Query, query_of, settings_of
from orrery.web.named import grounded
from orrery.web.render import page, wants_part

A = TypeVar("A")
Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering(Generic[A]):
    """Inputs and output of one such page; ``name`` is that of its path and its template."""

    name: str
    settings: Callable[[Query], dict[str, Any]]  # of an address, with the defaults that are taken
    ask: Callable[[Scenario], A]
    shown: Callable[[Scenario, A, Settings], dict[str, Any]]
    file: Callable[[str, str, A, Settings], Response]  # of a format and, for pictures, a drawing
    form: Callable[[Request, Settings], dict[str, Any]]


async def answered(request: Request, kind: Answering[A], settings: Settings) -> tuple[Scenario, A]:
    """The question and its answer."""
    inputs = read_scenario(grounded(settings, request.app.state.place.uploads))
    return inputs, await asyncio.to_thread(kind.ask, inputs)


async def answer_page(request: Request, kind: Answering[Any]) -> Response:
    """The page, its part, or a file. Its address is made whole: defaults that were taken come to stand in it."""
    settings = kind.settings(request.query_params)
    address = f"/{kind.name}?{query_of(settings)}"
    format_name = request.query_params.get("format", "")
    if not wants_part(request) and not format_name and settings != settings_of(request.query_params):
        return RedirectResponse(address, 303)
    started_s = time.perf_counter()
    problem, shown = "", {}
    try:
        inputs, answer = await answered(request, kind, settings)
        if format_name:
            return kind.file(format_name, request.query_params.get("drawing", ""), answer, settings)
        shown = await asyncio.to_thread(kind.shown, inputs, answer, settings)
    except OrreryError as error:
        if format_name:
            raise
        problem = str(error)
    form = {} if wants_part(request) else kind.form(request, settings)
    view = {"problem": problem, "settings": settings, "address": query_of(settings), **form, **shown}
    response = page(request, f"{kind.name}.html", status=422 if problem else 200, **view)
    response.headers["server-timing"] = f"{kind.name};dur={(time.perf_counter() - started_s) * 1e3:.1f}"
    if wants_part(request):
        response.headers["hx-push-url"] = address
    return response
