"""The application: every page that lies in ``pages``, behind the guard."""

import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from http import HTTPStatus
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount

from orrery.base.errors import OrreryError
from orrery.web import pages
from orrery.web.assets import Assets
from orrery.web.cards.made import Cards
from orrery.web.guard import HEADERS, Guard
from orrery.web.papers.fetching import Fetching
from orrery.web.place import Place
from orrery.web.render import Entry, page
from orrery.web.work import Work

log = logging.getLogger("orrery.web")


def application(place: Place, hosts: Sequence[str] = (), fetch_every_s: float | None = None) -> Starlette:
    """The application whose state lies in ``place``; ``hosts`` may stand in a request's Host header, beside those of
    this machine; new papers are fetched every so many seconds."""
    work, fetching = Work(place), Fetching(place=place, every_s=fetch_every_s)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with work:
            fetching.begin()
            yield
            fetching.end()

    rooms = _pages()
    app = Starlette(
        routes=[*(route for room in rooms for route in room.ROUTES), Mount("/static", Assets())],
        middleware=[Middleware(Guard, hosts=hosts), Middleware(GZipMiddleware, minimum_size=1024, compresslevel=5)],
        lifespan=lifespan,
        exception_handlers={OrreryError: _validation_error, HTTPException: _refused, Exception: _broken},
    )
    app.state.place, app.state.work, app.state.cards, app.state.fetching = place, work, Cards(), fetching
    menus = [
        line
        for room in rooms
        for line in (*getattr(room, "MENUS", ()), *([room.MENU] if hasattr(room, "MENU") else []))
    ]
    app.state.menu = tuple(sorted(Entry(*line) for line in menus))
    return app


def _pages() -> list[Any]:
    """The modules of ``pages``."""
    names = sorted(found.name for found in iter_modules(pages.__path__))
    return [import_module(f"{pages.__name__}.{name}") for name in names]


async def _validation_error(request: Request, error: Exception) -> Response:
    """Wrong input: what, where, what was got, and what to write instead."""
    return page(request, "error.html", status=422, title="Invalid input", message=str(error))


UNSAID = HTTPStatus.NOT_FOUND.phrase
"""Words that an address without a page gets from the framework."""


async def _refused(request: Request, error: Exception) -> Response:
    found = cast(HTTPException, error)
    title, message = "Request rejected", found.detail
    if found.status_code == 404:
        title = "Not found"
        if message == UNSAID:
            message = f"No page is at {request.url.path}; the bar above leads to every page."
    answer = page(request, "error.html", status=found.status_code, title=title, message=message)
    answer.headers.update(found.headers or {})
    return answer


async def _broken(request: Request, error: Exception) -> Response:
    log.error("%s %s", request.method, request.url.path, exc_info=error)
    answer = page(
        request,
        "error.html",
        status=500,
        title="Internal error",
        message="Internal error; see the server log.",
    )
    answer.headers.update(HEADERS)  # made outside of the guard
    return answer
