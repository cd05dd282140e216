"""Pages of commands such as what-if and compare: a form that is filled, an answer that comes when it is ready."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from orrery.base.errors import OrreryError
from orrery.scenario.fields import BY_NAME
from orrery.web.address import query_of
from orrery.web.cards.commands import named
from orrery.web.command_pages import (
    cache_size,
    designs,
    device,
    diagnose,
    disaggregate,
    fleet,
    kernel,
    pictures,
    search,
    split,
    what_if,
)
from orrery.web.command_pages.command_page import CommandPage
from orrery.web.export import as_csv, as_json
from orrery.web.forms import suggestions
from orrery.web.named import FILES, grounded, paths_of
from orrery.web.parameters import PageRoute, check_word
from orrery.web.render import page, wants_part

COMMAND_PAGES = (
    what_if.PAGE,
    designs.PAGE,
    disaggregate.PAGE,
    fleet.PAGE,
    cache_size.PAGE,
    diagnose.PAGE,
    device.PAGE,
    kernel.PAGE,
    search.PAGE,
    split.PAGE,
    pictures.PAGE,
)

MENUS = tuple((kind.menu[0], f"/{kind.name}", kind.menu[1]) for kind in COMMAND_PAGES)


def _page_of(kind: CommandPage) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return await _answer(request, kind)

    return answer


async def _answer(request: Request, kind: CommandPage) -> Response:
    """The form at once, with a place that the answer comes to; the answer for htmx, with ``whole``, or as a file."""
    query = request.query_params
    settings = kind.read(query)
    if settings and any(not value.strip() for _, value in query.multi_items()):
        return RedirectResponse(f"/{kind.name}?{query_of(settings)}", 303)
    filled = settings or kind.start
    form: dict[str, Any] = {
        "kind": kind,
        "about": named(settings),
        "first": kind.first(filled),
        "folded": kind.folded(filled),
        "suggestions": {**suggestions(request.app.state.place.uploads), **kind.suggested},
        "address": query_of(settings),
        "command": kind.command(filled),
        "is_waiting": False,
        "problem": "",
        "sections": (),
        "notes": (),
    }
    wants_answer = wants_part(request) or "whole" in query or "file" in query
    if not settings:
        return page(request, "command_page.html", **form)
    try:
        inputs = _inputs(request, kind, settings)
        if not wants_answer:
            return page(request, "command_page.html", **{**form, "is_waiting": True})
        plain = await request.app.state.work.answer(kind.name, inputs, request)
    except OrreryError as error:
        if "file" in query:
            raise
        return page(request, "command_page.html", status=422, **{**form, "problem": str(error)})
    if found := _file(kind, query.get("file", ""), plain):
        return found
    form |= {"sections": kind.sections(plain), "notes": plain.get("notes", ())}
    return page(request, "command_page.html", **form)


async def ask(request: Request, kind: CommandPage, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The worker's answer to a page's question."""
    return await request.app.state.work.answer(kind.name, _inputs(request, kind, settings), request)


def _inputs(request: Request, kind: CommandPage, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, whose words and names must be known and whose files are found."""
    for name in kind.choices.keys() & settings.keys():
        check_word(name, settings[name], kind.choices[name])
    known = {
        name: value for name, value in settings.items() if (name in BY_NAME or name in FILES) and name not in kind.own
    }
    inputs = {name: value for name, value in settings.items() if name not in known}
    uploads = request.app.state.place.uploads
    inputs |= grounded(known, uploads)
    return inputs | {name: paths_of(settings[name], uploads) for name in kind.uploaded & settings.keys()}


def _file(kind: CommandPage, ending: str, plain: dict[str, Any]) -> Response | None:
    if ending == "json":
        return as_json(kind.name, plain)
    if ending == "csv":
        return as_csv(kind.name, *kind.rows(plain))
    return None


ROUTES = tuple(PageRoute(f"/{kind.name}", _page_of(kind), kind.parameters) for kind in COMMAND_PAGES)
