"""The scorecard: what papers claim against what comes out here."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from orrery.base.errors import OrreryError
from orrery.evidence.judge.judged import Judged
from orrery.evidence.judge.page import VERDICTS
from orrery.evidence.judge.plot import draw
from orrery.web.export import as_csv, as_json, as_svg
from orrery.web.papers.index import index_of
from orrery.web.papers.listing import Asked, choices
from orrery.web.papers.score import judged, score
from orrery.web.place import Place
from orrery.web.render import page


def scorecard(request: Request) -> Response:
    """The plot, totals by layer and verdict, and the claims, the furthest off first."""
    place: Place = request.app.state.place
    index, asked = index_of(place.library), Asked.of(request.query_params)
    mistake, claims = "", tuple[Judged, ...]()
    try:
        claims = judged(index, asked.filters)
    except OrreryError as error:
        mistake = str(error)
    if not mistake and (file := _handed_out(claims, request.query_params.get("format", ""))):
        return file
    known = {name: value for name, value in request.query_params.items() if value and name not in ("page", "format")}
    return page(
        request, "papers_scorecard.html", status=422 if mistake else 200, asked=asked, mistake=mistake,
        score=score(claims, asked.page), choices={**choices(index), "verdict": VERDICTS}, turn=urlencode(known),
        verdicts=VERDICTS,
    )  # fmt: skip


def _handed_out(claims: tuple[Judged, ...], wanted: str) -> Response | None:
    rows = [j.to_json() for j in claims]
    if wanted == "json":
        return as_json("scorecard", {"claims": rows})
    if wanted == "svg":
        return as_svg("scorecard", draw(claims))
    if wanted != "csv":
        return None
    names = ("paper", "claim", "metric", "unit", "baseline", "reading", "reported_low", "reported_high", "predicted",
             "ratio", "verdict", "because")  # fmt: skip
    return as_csv("scorecard", names, (
        (j.paper, c.id, c.metric, c.unit, c.baseline, c.reading, c.low, c.high, j.predicted, j.ratio, j.verdict,
         j.because)
        for j in claims for c in [j.claim]
    ))  # fmt: skip
