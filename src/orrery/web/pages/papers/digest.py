"""The reader's own digest: chosen, looked at before it is sent, and as a feed."""

from datetime import date
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from orrery.base.errors import OrreryError
from orrery.evidence.digest.issue import compose
from orrery.evidence.digest.render import as_atom, as_html, as_text
from orrery.evidence.digest.subscription import FREQUENCIES, Subscriptions
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.understanding.weights import shipped
from orrery.web.address import Query
from orrery.web.papers.index import index_of
from orrery.web.papers.letters import Written, query_of, written
from orrery.web.papers.listing import choices
from orrery.web.papers.messages import lines
from orrery.web.papers.own import command, opened
from orrery.web.papers.yours import SavedDeployment, deployment_named
from orrery.web.place import Place
from orrery.web.render import page
from orrery.web.work.questions import TECHNIQUE

HERE = "/papers/subscribe"
SEND = "--smtp smtp://me@mail.example.org --from me@example.org"
MAX_FIELDS = 100


def digest(request: Request) -> Response:
    """The form, who subscribes, and what the letter would be today."""
    return _shown(request, written(request.query_params))


def _shown(request: Request, form_values: Written, message: str = "") -> Response:
    place: Place = request.app.state.place
    is_text, preview = request.query_params.get("as") == "text", ""
    with opened(place) as store:
        subscriptions = Subscriptions(store).all()
        try:
            issue = compose(store, date.today(), form_values.selection(), deployment=_deployment(request))
            preview = lines(as_text(issue) if is_text else as_html(issue))
        except OrreryError as error:
            message = message or str(error)
    return page(
        request,
        "papers_subscribe.html",
        status=422 if message else 200,
        inputs=form_values,
        error=message,
        preview=preview,
        is_text=is_text,
        subscriptions=subscriptions,
        layers=shipped().layers,
        techniques=choices(index_of(place.library))["technique"],
        frequencies=FREQUENCIES,
        query=query_of(form_values),
        send=command(place, f"digest --send {SEND}"),
        done=request.query_params.get("done", ""),
    )


def _deployment(request: Request) -> SavedDeployment | None:
    """The reader's saved deployment; None where there is none."""
    _, settings = deployment_named(Query(), request.app.state.place)
    return SavedDeployment(partial(request.app.state.work.known, TECHNIQUE), settings) if settings else None


async def change(request: Request) -> Response:
    """Subscribe an address of the reader's own, change what it gets, or end it."""
    form = await request.form(max_files=0, max_fields=MAX_FIELDS)
    form_values = written(_query(form))
    is_end = form.get("what") == "end"
    try:
        await run_in_threadpool(_change, request.app.state.place, form_values, is_end)
    except OrreryError as error:
        return await run_in_threadpool(_shown, request, form_values, str(error))
    return RedirectResponse(f"{HERE}?done={'ended' if is_end else 'kept'}", 303)


def _query(form: FormData) -> Query:
    return Query([(name, value) for name, value in form.multi_items() if isinstance(value, str)])


def _change(place: Place, form_values: Written, is_end: bool) -> None:
    with opened(place) as store:
        subscriptions = Subscriptions(store)
        if not is_end:
            subscriptions.ask(form_values.address, form_values.selection(), "active")
        elif known := subscriptions.find(form_values.address):
            subscriptions.change(known.id, "ended")
        else:
            raise FeedError(f"{form_values.address[:80]} has no subscription.")


def feed(request: Request) -> Response:
    """The same as an Atom feed, for programs that read those."""
    form_values = written(request.query_params)
    with opened(request.app.state.place) as store:
        issue = compose(store, date.today(), form_values.selection())
    text = lines(as_atom(issue, str(request.url)))
    return Response(text, media_type="application/atom+xml", headers={"cache-control": "no-store"})
