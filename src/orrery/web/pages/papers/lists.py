"""The reader's named lists: all of them, each with its papers and feeds, and what changes them."""

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from orrery.base.errors import OrreryError, ScenarioError
from orrery.evidence.digest.feeds import MEDIA_TYPES, atom_of, rss_of
from orrery.evidence.digest.list_feed import cited_lists, feed_of_list
from orrery.evidence.feed import lists as paper_lists
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.marks import Marks
from orrery.evidence.feed.marks_file import marks_json, read_marks_file
from orrery.evidence.feed.store import Store
from orrery.evidence.find.bibtex_file import read_bibtex
from orrery.evidence.understanding.paper_lookup import marked_as
from orrery.web.export import as_json
from orrery.web.papers.index import index_of
from orrery.web.papers.lists_view import LISTS, address_of_list, list_links, list_page, paper_title
from orrery.web.papers.own import command, opened
from orrery.web.render import page

MAX_FIELD_BYTES = 2_000
ALL_FORMS = ("json", "bibtex")
FORMS = (*ALL_FORMS, "atom", "rss")
"""Files of all lists together, and of one."""

Fields = Mapping[str, str]


def lists(request: Request) -> Response:
    """All lists; with ``key`` those that a paper is on; as JSON or BibTeX all that they hold."""
    form = request.query_params.get("form", "")
    if form in ALL_FORMS:
        with opened(request.app.state.place) as store:
            return _handed_out(store, paper_lists.read_lists(store), form, "lists")
    return _all(request)


def _all(request: Request, problem: str = "", typed: str = "") -> Response:
    """The page of all lists; with what is wrong, and the name that was typed, which is kept."""
    key, title = request.query_params.get("key", "")[:300], ""
    with opened(request.app.state.place) as store:
        try:
            found = list_links(store, key)
            title = paper_title(store, key) if key else ""
        except OrreryError as error:
            key, found, problem = "", list_links(store), problem or str(error)
    known = {"lists": found, "key": key, "title": title, "problem": problem, "path": LISTS, "typed": typed}
    importing = command(request.app.state.place, "lists --import lists.bib")
    return page(request, "papers_lists.html", status=422 if problem else 200, importing=importing, **known)


def one_list(request: Request) -> Response:
    """One list, as a page, a feed, BibTeX or JSON."""
    name, form = request.path_params["name"][:300], request.query_params.get("form", "")
    documents = index_of(request.app.state.place.library).documents(has_new=True)
    with opened(request.app.state.place) as store:
        try:
            found = list_page(store, name, documents)
        except FeedError as error:
            raise HTTPException(404, str(error)) from None
        if form in FORMS:
            here = f"{request.base_url}{found.href.removeprefix('/')}"
            return _handed_out(store, (paper_lists.get_list(store, name),), form, found.name, here)
    return page(request, "papers_list.html", found=found, path=LISTS)


def _handed_out(
    store: Store, found: tuple[paper_lists.PaperList, ...], form: str, name: str, here: str = ""
) -> Response:
    if form == "json":
        return as_json(name, {"lists": marks_json(Marks(lists=found))["lists"]})
    if form == "bibtex":
        return PlainTextResponse("\n\n".join(cited_lists(store, found)) + "\n")
    text = (rss_of if form == "rss" else atom_of)(feed_of_list(store, found[0], f"{here}?form={form}", here))
    return Response(text, media_type=MEDIA_TYPES[form], headers={"cache-control": "no-store"})


async def change(request: Request) -> Response:
    """Make, rename or delete a list, add or remove a paper, or add lists of a file."""
    async with request.form(max_files=1, max_fields=8, max_part_size=MAX_FIELD_BYTES) as form:
        fields = {name: value[:MAX_FIELD_BYTES] for name, value in form.items() if isinstance(value, str)}
        file = form.get("file")
        sent = (file.filename or "", await file.read()) if isinstance(file, UploadFile) else ("", b"")
    try:
        to = await run_in_threadpool(_change, request, fields, sent)
    except OrreryError as error:
        typed = fields.get("new") or (fields.get("name", "") if fields.get("what") == "create" else "")
        return await run_in_threadpool(_all, request, str(error), typed)
    return RedirectResponse(to, 303)


def _change(request: Request, fields: Fields, sent: tuple[str, bytes]) -> str:
    """Do it; where to go then."""
    what = fields.get("what", "")
    with opened(request.app.state.place) as store, store.transaction():
        if what == "import":
            return _imported(store, *sent)
        if what not in CHANGES:
            raise ScenarioError(f"what: {what[:40]!r} is none of {', '.join((*CHANGES, 'import'))}.")
        return CHANGES[what](store, fields)


def _made(store: Store, fields: Fields) -> str:
    name = paper_lists.make_list(store, fields.get("name", ""))
    if key := fields.get("key", ""):
        paper_lists.add_papers(store, name, [marked_as(store, key)], date.today())
        return _with_key(key)
    return address_of_list(name)


def _renamed(store: Store, fields: Fields) -> str:
    return address_of_list(paper_lists.rename_list(store, fields.get("name", ""), fields.get("new", "")))


def _deleted(store: Store, fields: Fields) -> str:
    paper_lists.delete_list(store, fields.get("name", ""))
    return LISTS


def _added(store: Store, fields: Fields) -> str:
    key = fields.get("key", "")
    paper_lists.add_papers(store, fields.get("name", ""), [marked_as(store, key)], date.today())
    return _with_key(key)


def _removed(store: Store, fields: Fields) -> str:
    """From the page of the list, or from that of the paper's lists."""
    key, name = fields.get("key", ""), fields.get("name", "")
    paper_lists.remove_papers(
        store, name, [key if key in paper_lists.get_list(store, name).ids else marked_as(store, key)]
    )
    return address_of_list(name) if fields.get("back") == "list" else _with_key(key)


CHANGES: Mapping[str, Callable[[Store, Fields], str]] = {
    "create": _made,
    "rename": _renamed,
    "delete": _deleted,
    "add": _added,
    "remove": _removed,
}


def _with_key(key: str) -> str:
    return f"{LISTS}?key={quote(key, safe='')}"


def _imported(store: Store, name: str, content: bytes) -> str:
    """Lists of a file as it was sent: BibTeX by its ending, else the JSON that is handed out."""
    if not content:
        raise ScenarioError("file: none was sent; choose a .bib or .json file.")
    is_bibtex = name.casefold().endswith(".bib")
    with TemporaryDirectory() as folder:
        path = Path(folder) / ("lists.bib" if is_bibtex else "lists.json")
        path.write_bytes(content)
        paper_lists.merge_lists(store, read_bibtex(path, "imported") if is_bibtex else read_marks_file(path).lists)
    return LISTS
