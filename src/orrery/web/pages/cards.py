"""Cards of pages: ``/card`` before a page's address, with its query, is the picture that stands for a link to it."""

import asyncio

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from orrery.base.errors import UnknownName
from orrery.evidence.paper_file import Paper
from orrery.web.answered import answered
from orrery.web.cards.card import ShareCard
from orrery.web.cards.commands import command_card
from orrery.web.cards.designs import compare_card, design_card
from orrery.web.cards.made import Cards
from orrery.web.cards.papers import day_card, fetched_card, paper_card
from orrery.web.command_pages.command_page import CommandPage
from orrery.web.compare.figures import compared
from orrery.web.compare.sides import settings_of_both, side_of
from orrery.web.pages.command_pages import COMMAND_PAGES, ask
from orrery.web.pages.compare import summary
from orrery.web.pages.design import DESIGN
from orrery.web.pages.papers.entry import found_paper
from orrery.web.papers.fresh import dates
from orrery.web.papers.index import index_of
from orrery.web.papers.own import opened
from orrery.web.papers.period import Period
from orrery.web.parameters import check_as

KEEP = "public, max-age=600"


async def card(request: Request) -> Response:
    """The picture as PNG; its query is checked as that of the page."""
    page = request.path_params["page"]
    check_as(f"/{page}", request.query_params, request.app.routes)
    address = f"{page}?{request.url.query}"
    made: Cards = request.app.state.cards
    picture = await made.picture(address, lambda: _content(request, page))
    return Response(picture, media_type="image/png", headers={"cache-control": KEEP})


async def _content(request: Request, page: str) -> ShareCard:
    kinds = {kind.name: kind for kind in COMMAND_PAGES}
    if page == "design":
        settings = DESIGN.settings(request.query_params)
        return design_card((await answered(request, DESIGN, settings))[1], settings)
    if page == "compare":
        return await asyncio.to_thread(_compared, request)
    if page in kinds:
        return await _commanded(request, kinds[page])
    if page.startswith("papers/day/"):
        return await run_in_threadpool(_day, request, page.removeprefix("papers/day/"))
    if page.startswith("papers/"):
        try:
            found = await run_in_threadpool(found_paper, request.app.state.place, page.removeprefix("papers/")[:300])
        except UnknownName as error:
            raise HTTPException(404, str(error)) from None
        return paper_card(found) if isinstance(found, Paper) else fetched_card(*found)
    raise HTTPException(404, "This page has no card.")


def _compared(request: Request) -> ShareCard:
    both = settings_of_both(request.query_params)
    a, b = (side_of(x, s, request.app.state.place) for x, s in zip("AB", both, strict=True))
    rows = compared(a, b)
    return compare_card(a, b, rows, summary(rows))


async def _commanded(request: Request, kind: CommandPage) -> ShareCard:
    settings = kind.read(request.query_params) or dict(kind.start)
    return command_card(kind, settings, await ask(request, kind, settings))


def _day(request: Request, text: str) -> ShareCard:
    period = Period.read(text)
    if period is None:
        raise HTTPException(404, "There is no such date.")
    place = request.app.state.place
    with opened(place) as store:
        return day_card(dates(store, index_of(place.library), period))


ROUTES = (Route("/card/{page:path}.png", card),)
