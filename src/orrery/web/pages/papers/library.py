"""The library: every paper, narrowed by filters, or found by what it is about while the reader types."""

from dataclasses import asdict
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from orrery.base.errors import OrreryError
from orrery.evidence.find.suggest import suggestions
from orrery.web.export import as_csv, as_json
from orrery.web.pages.papers.fresh import day
from orrery.web.papers.index import MAX_QUERY, index_of
from orrery.web.papers.listing import Listing, PaperQuery, choices, listing, rows
from orrery.web.papers.messages import describe
from orrery.web.papers.own import marked
from orrery.web.place import Place
from orrery.web.render import page

MAX_SHOWN = 110
"""Letters of a suggestion."""


def home(request: Request) -> Response:
    """The latest papers; the library where the address asks for something of it."""
    return library(request) if request.query_params else day(request)


def suggest(request: Request) -> Response:
    """Names that begin like what is typed, as JSON."""
    index = index_of(request.app.state.place.library)
    documents = index.documents(has_new=request.query_params.get("among") == "new")
    found = suggestions(documents, request.query_params.get("q", "")[:MAX_QUERY])
    shown = ({**asdict(one), "text": describe(one.text, MAX_SHOWN)} for one in found)
    return JSONResponse(list(shown))


def library(request: Request) -> Response:
    """A list, or a mistake in its place with the form as it was typed."""
    place: Place = request.app.state.place
    index = index_of(place.library)
    query = PaperQuery.of(request.query_params, has_new=request.url.path.endswith("/search"))
    format_name = request.query_params.get("format")
    if format_name in ("json", "csv"):
        found = rows(index, query)
        if format_name == "json":
            return as_json("papers", {"papers": found, "num_all": len(index.documents(query.has_new))})
        names = list(found[0]) if found else []
        return as_csv("papers", names, (list(row.values()) for row in found))
    message, shown = "", Listing()
    try:
        shown = listing(index, query, marked(place))
    except OrreryError as error:
        message = str(error)
    known = {
        name: value for name, value in request.query_params.multi_items() if value and name not in ("page", "format")
    }
    answer = page(
        request,
        "papers.html",
        at="/papers/search" if request.url.path.endswith("/search") else "/papers/library",
        status=422 if message else 200,
        inputs=query,
        listing=shown,
        error=message,
        choices=choices(index),
        turn=urlencode(known),
    )
    index.fill()  # so that the first search is quick
    return answer
