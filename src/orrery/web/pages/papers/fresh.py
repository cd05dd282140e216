"""Papers by their date, and what is new and matters most now."""

from datetime import date

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from orrery.evidence.understanding.trending import DAYS
from orrery.evidence.understanding.weights import shipped
from orrery.web.pages.papers.fetching import context_of
from orrery.web.papers.fresh import dates, trends
from orrery.web.papers.index import index_of
from orrery.web.papers.own import opened
from orrery.web.papers.period import Period
from orrery.web.papers.yours import saved
from orrery.web.render import page


def day(request: Request) -> Response:
    """The papers of a day, a month or a year; of the latest date that has papers where none is named."""
    named, place = request.path_params.get("day"), request.app.state.place
    period = Period.read(named) if named else None
    if named and period is None:
        raise HTTPException(404, "There is no such date; write a day, a month or a year such as 2026-11-20 or 2026-11.")
    index = index_of(place.library)
    with opened(place) as store:
        found = dates(store, index, period)
    answer = page(
        request,
        "papers_day.html",
        found=found,
        deployment=saved(place),
        **context_of(request),
    )
    index.fill()  # so that the first search is quick
    return answer


def trending(request: Request) -> Response:
    """The best of a day, a week or a month."""
    query = request.query_params
    by = query.get("by", "week")
    layers = [name for name in query.getlist("layer") if name]
    until = _day(query["date"]) if query.get("date") else date.today()
    with opened(request.app.state.place) as store:
        index = index_of(request.app.state.place.library)
        found = trends(store, index, until, by, layers)
        latest = None if found.num_all else dates(store, index, None)
    return page(
        request,
        "papers_trending.html",
        found=found,
        latest=latest,
        by=by,
        until=until,
        layers=layers,
        periods=tuple(DAYS),
        every_layer=shipped().layers,
        **context_of(request),
    )


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise HTTPException(404, "There is no such day; write one such as 2026-11-20.") from None
