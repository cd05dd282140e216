"""One paper: an encyclopedia's entry where it has a file, else its own words and what is understood of them."""

from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from orrery.base.errors import OrreryError, UnknownName
from orrery.evidence.feed.entry import Classification, Entry, entry_json
from orrery.evidence.find.entry import entry_of
from orrery.evidence.library import library_file
from orrery.evidence.paper_file import Paper
from orrery.evidence.understanding.claim_effect import askable, why_none
from orrery.evidence.understanding.paper_lookup import fetched, named, understood_paper
from orrery.web.export import as_json
from orrery.web.forms import suggestions
from orrery.web.papers.entry_view import view_of
from orrery.web.papers.fetched_view import fetched_view
from orrery.web.papers.index import index_of
from orrery.web.papers.meaning import deployment_of, form_of, question, shown
from orrery.web.papers.messages import describe
from orrery.web.papers.own import marked, opened
from orrery.web.papers.records_view import records_view
from orrery.web.papers.yours import Beside, SavedDeployment, deployment_named, words_of
from orrery.web.place import Place
from orrery.web.render import page, wants_part
from orrery.web.work import Work
from orrery.web.work.questions import PAPER, TECHNIQUE

Found = Paper | tuple[Entry, Classification]


async def entry(request: Request) -> Response:
    """The page; with htmx only what the paper would do in the reader's deployment."""
    place: Place = request.app.state.place
    key = request.path_params["key"][:300]
    try:
        found = await run_in_threadpool(found_paper, place, key)
    except UnknownName as error:
        return page(request, "error.html", status=404, title="There is no such paper", message=str(error))
    classification = understood_paper(found) if isinstance(found, Paper) else found[1]
    format_name = request.query_params.get("format")
    if format_name in ("json", "bibtex"):
        return await run_in_threadpool(_handed_out, place, found, format_name)
    context = await _meaning(request, classification)
    if not wants_part(request):
        context |= await run_in_threadpool(_context, place, found)
        context |= await run_in_threadpool(_beside, request, found)
    status = 422 if context["error"] else 200
    return page(request, "papers_entry.html", status=status, key=_key(found), classification=classification, **context)


def beside(request: Request) -> Response:
    """Each claim in the reader's deployment, as far as it is known by now."""
    found = found_paper(request.app.state.place, request.path_params["key"][:300])
    is_short = bool(request.query_params.get("short"))
    return page(
        request,
        "papers_beside_short.html" if is_short else "papers_beside.html",
        key=_key(found),
        **_beside(request, found),
    )


def _beside(request: Request, found: Found) -> dict[str, Any]:
    """The deployment that claims are held against, and what stands beside each claim."""
    classification = understood_paper(found) if isinstance(found, Paper) else found[1]
    no_use = describe(found.no_use, 1000) if isinstance(found, Paper) else ""
    why = "" if askable(classification) else why_none(classification, no_use)
    known: dict[str, Any] = {"why_none": why, "yours": "", "yours_about": "", "beside": Beside(), "beside_error": ""}
    known |= {"is_held": False, "num_claims": len(classification.claims), "beside_of": request.url.query}
    try:
        name, settings = deployment_named(request.query_params, request.app.state.place)
    except OrreryError as error:
        return {**known, "beside_error": str(error)}
    if not settings or why:
        return known
    beside = SavedDeployment(partial(request.app.state.work.known, TECHNIQUE), settings).beside(classification)
    return {**known, "yours": name, "yours_about": words_of(settings), "beside": beside, "is_held": True}


def found_paper(place: Place, key: str) -> Found:
    """A paper that has a file comes before the same one as it was fetched."""
    try:
        return named(key)
    except UnknownName:
        if library_file(place.library).exists():
            with opened(place) as store:
                if found := fetched(store, key):
                    return found
        raise


def _key(found: Found) -> str:
    return found.key if isinstance(found, Paper) else found[0].id


def _context(place: Place, found: Found) -> dict[str, Any]:
    """Context of the whole page."""
    marks = marked(place)
    if isinstance(found, Paper):
        view, is_filed, known = view_of(found, index_of(place.library)), True, (found.key, found.arxiv, found.title)
    else:
        view, is_filed, known = fetched_view(*found), False, (found[0].id, "", found[0].title)
    return {
        "view": view,
        "is_filed": is_filed,
        "is_read": marks.is_read(*known),
        "is_upvoted": marks.is_upvoted(*known),
        "records": records_view(marks.records_of(found.arxiv if isinstance(found, Paper) else found[0].id, known[2])),
        "follows": marks.marks,
    }


async def _meaning(request: Request, classification: Classification) -> dict[str, Any]:
    """The form, and the answer where a deployment is named."""
    place, query = request.app.state.place, request.query_params
    work: Work = request.app.state.work
    known = {"form": form_of(query, place, classification), "suggestions": suggestions(place.uploads)}
    try:
        deployment = deployment_of(query, place) if classification.techniques else None
        answer = await work.answer(PAPER, question(deployment, classification), request) if deployment else None
    except OrreryError as error:
        return {**known, "meanings": None, "error": str(error)}
    return {**known, "meanings": shown(answer) if answer else None, "error": ""}


def _handed_out(place: Place, found: Found, format_name: str) -> Response:
    if format_name == "bibtex":
        view = view_of(found, index_of(place.library)) if isinstance(found, Paper) else fetched_view(*found)
        return PlainTextResponse(view.cited + "\n")
    if isinstance(found, Paper):
        return as_json(found.key, entry_of(found, index_of(place.library).finder()).to_json())
    return as_json(found[0].id, entry_json(*found))
