"""What is new: day by day, and what of it matters most now."""

from datetime import date

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from orrery.base.errors import ScenarioError
from orrery.evidence.understanding.trending import DAYS
from orrery.evidence.understanding.weights import shipped
from orrery.web.papers.fresh import papers_of, trends
from orrery.web.papers.own import command, opened
from orrery.web.render import page


def day(request: Request) -> Response:
    """The papers of a day; of the latest where none is named."""
    named = request.path_params.get("day")
    with opened(request.app.state.place) as store:
        found = papers_of(store, _day(named) if named else None)
    return page(request, "papers_day.html", found=found, fetch=command(request.app.state.place, "fetch"))


def trending(request: Request) -> Response:
    """The best of a day, a week or a month."""
    query = request.query_params
    by = query.get("by", "week")
    if by not in DAYS:
        raise ScenarioError(f"by: {by[:40]!r} is none of {', '.join(DAYS)}.")
    layers = [name for name in query.getlist("layer") if name]
    until = _day(query["date"]) if query.get("date") else date.today()
    with opened(request.app.state.place) as store:
        found = trends(store, until, by, layers)
    return page(
        request, "papers_trending.html", found=found, by=by, until=until, layers=layers, periods=tuple(DAYS),
        every_layer=shipped().layers, fetch=command(request.app.state.place, "fetch"),
    )  # fmt: skip


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise HTTPException(404, "There is no such day; write one such as 2026-11-20.") from None
