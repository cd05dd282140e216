"""The scorecard: what papers claim against what comes out here."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from orrery.base.errors import OrreryError
from orrery.evidence.judge.claim_result import ClaimResult
from orrery.evidence.judge.page import VERDICTS
from orrery.evidence.judge.plot import draw
from orrery.web.export import as_csv, as_json, as_svg
from orrery.web.papers.index import index_of
from orrery.web.papers.listing import PaperQuery, choices
from orrery.web.papers.score import judged, score
from orrery.web.place import Place
from orrery.web.render import page


def scorecard(request: Request) -> Response:
    """The plot, totals by layer and verdict, and the claims, the furthest off first."""
    place: Place = request.app.state.place
    index, query = index_of(place.library), PaperQuery.of(request.query_params)
    message, claims = "", tuple[ClaimResult, ...]()
    try:
        claims = judged(index, query.filters)
    except OrreryError as error:
        message = str(error)
    if not message and (file := _handed_out(claims, request.query_params.get("format", ""))):
        return file
    known = {name: value for name, value in request.query_params.items() if value and name not in ("page", "format")}
    return page(
        request,
        "papers_scorecard.html",
        status=422 if message else 200,
        inputs=query,
        error=message,
        score=score(claims, query.page),
        choices={**choices(index), "verdict": VERDICTS},
        turn=urlencode(known),
        verdicts=VERDICTS,
    )


def _handed_out(claims: tuple[ClaimResult, ...], format_name: str) -> Response | None:
    rows = [j.to_json() for j in claims]
    if format_name == "json":
        return as_json("scorecard", {"claims": rows})
    if format_name == "svg":
        return as_svg("scorecard", draw(claims))
    if format_name != "csv":
        return None
    names = (
        "paper",
        "claim",
        "metric",
        "unit",
        "baseline",
        "reading",
        "reported_low",
        "reported_high",
        "predicted",
        "ratio",
        "verdict",
        "because",
    )
    return as_csv(
        "scorecard",
        names,
        (
            (
                j.paper,
                c.id,
                c.metric,
                c.unit,
                c.baseline,
                c.reading,
                c.low,
                c.high,
                j.predicted,
                j.ratio,
                j.verdict,
                j.because,
            )
            for j in claims
            for c in [j.claim]
        ),
    )
