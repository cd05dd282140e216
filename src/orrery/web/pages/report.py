"""A report on any view: one file for the person who pays."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from orrery.scenario.fields import BY_NAME
from orrery.web.address import scenario_of
from orrery.web.export import as_html
from orrery.web.named import bare
from orrery.web.parameters import PageRoute, Parameters
from orrery.web.work.questions import QUESTIONS, REPORT


async def report(request: Request) -> Response:
    """``/report?as=plan&model=…``: the page, or with ``download=1`` a file of it."""
    kind = request.query_params.get("as", "")
    if kind not in QUESTIONS:
        raise HTTPException(404, f"There is no report of that kind; as = {', '.join(QUESTIONS)}.")
    scenario = scenario_of(request.query_params, request.app.state.place)
    found = await request.app.state.work.answer(REPORT + kind, scenario.written(), request)
    text = bare(found["page"], request.app.state.place.uploads)
    if request.query_params.get("download"):
        return as_html(f"orrery-{kind}", text)
    return HTMLResponse(text, headers={"cache-control": "no-store"})


PARAMETERS = Parameters(words={"download": ("1",)}, checked=frozenset({"as"}), settings=BY_NAME)

ROUTES = (PageRoute("/report", report, PARAMETERS),)
