"""The library: every paper, narrowed by filters, or found by what it is about while the reader types."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from orrery.base.errors import OrreryError
from orrery.web.export import as_csv, as_json
from orrery.web.papers.index import index_of
from orrery.web.papers.listing import Asked, Listing, choices, listing, rows
from orrery.web.papers.own import marked
from orrery.web.place import Place
from orrery.web.render import page


def library(request: Request) -> Response:
    """A list, or a mistake in its place with the form as it was typed."""
    place: Place = request.app.state.place
    index = index_of(place.library)
    asked = Asked.of(request.query_params, has_new=request.url.path.endswith("/search"))
    wanted = request.query_params.get("format")
    if wanted in ("json", "csv"):
        found = rows(index, asked)
        if wanted == "json":
            return as_json("papers", {"papers": found, "num_all": len(index.documents(asked.has_new))})
        names = list(found[0]) if found else []
        return as_csv("papers", names, (list(row.values()) for row in found))
    mistake, shown = "", Listing()
    try:
        shown = listing(index, asked, marked(place))
    except OrreryError as error:
        mistake = str(error)
    known = {
        name: value for name, value in request.query_params.multi_items() if value and name not in ("page", "format")
    }
    answer = page(
        request, "papers.html", status=422 if mistake else 200, asked=asked, listing=shown, mistake=mistake,
        choices=choices(index), turn=urlencode(known),
    )  # fmt: skip
    index.fill()  # so that the first search is quick
    return answer
