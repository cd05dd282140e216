"""Buttons: read, upvoted, followed. Without script the page comes back; with it the button changes."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from orrery.base.errors import ScenarioError
from orrery.evidence.feed.marks import follow as follow_all
from orrery.evidence.feed.marks import mark as mark_all
from orrery.evidence.feed.marks import read_followed
from orrery.evidence.understanding.paper_lookup import check_followed, marked_as
from orrery.web.papers.own import opened
from orrery.web.place import Place
from orrery.web.render import page, wants_part

HOME = "/papers"
MAX_NAME = 300


async def mark(request: Request) -> Response:
    """Mark a paper as read or good, or take it back."""
    form = await _form(request)
    what, is_on = form.get("what", ""), form.get("on") == "1"
    if what not in ("read", "upvoted"):
        raise ScenarioError(f"what: {what[:40]!r} is none of read, upvoted.")
    await run_in_threadpool(_mark, request.app.state.place, form.get("key", ""), what, is_on)
    return _answer(request, form, "papers_mark.html", key=form["key"], what=what, is_on=is_on)


def _mark(place: Place, key: str, what: str, is_on: bool) -> None:
    with opened(place) as store, store.transaction():
        mark_all(store, [marked_as(store, key)], **{f"is_{what}": is_on})


async def follow(request: Request) -> Response:
    """Follow a layer, a technique or words, or no longer."""
    form = await _form(request)
    kind, name = read_followed(f"{form.get('kind', '')[:40]}:{form.get('name', '')}")
    is_on = form.get("on") == "1"
    await run_in_threadpool(_follow, request.app.state.place, kind, name, is_on)
    return _answer(request, form, "papers_follow.html", kind=kind, name=name, is_on=is_on)


def _follow(place: Place, kind: str, name: str, is_on: bool) -> None:
    if is_on:
        check_followed([(kind, name)])
    with opened(place) as store:
        follow_all(store, [(kind, name)], is_on=is_on)


async def _form(request: Request) -> dict[str, str]:
    """The fields that are words; none is longer than a name can be."""
    form = await request.form(max_files=0, max_fields=20)
    return {name: value[:MAX_NAME] for name, value in form.items() if isinstance(value, str)}


def _answer(request: Request, form: dict[str, str], template: str, **context: Any) -> Response:
    back = form.get("back", HOME)
    back = back if back.startswith(HOME) and "\\" not in back and back.isprintable() else HOME
    if wants_part(request):
        return page(request, template, back=back, **context)
    return RedirectResponse(back, 303)
