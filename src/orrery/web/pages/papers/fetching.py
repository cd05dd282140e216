"""The button that fetches new papers, and how far they are."""

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from orrery.web.papers.fetching import Fetching
from orrery.web.papers.own import command
from orrery.web.render import page, wants_part

HOME = "/papers"


async def fetch(request: Request) -> Response:
    """Begin a fetch."""
    form = await request.form(max_files=0, max_fields=5)
    found: Fetching = request.app.state.fetching
    found.start([name for name in form.getlist("source") if isinstance(name, str)])
    return _shown(request) if wants_part(request) else RedirectResponse(HOME, 303)


async def progress(request: Request) -> Response:
    """The progress; without script that is on the page of papers."""
    return _shown(request) if wants_part(request) else RedirectResponse(HOME, 303)


def _shown(request: Request) -> Response:
    return page(request, "papers_fetching.html", **context_of(request))


def context_of(request: Request) -> dict[str, Any]:
    """Context of the template."""
    found: Fetching = request.app.state.fetching
    return {"fetch": command(request.app.state.place, "fetch"), "fetching": found.progress}
