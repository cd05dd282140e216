"""The reader's lists as pages show them."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from orrery.evidence.feed.lists import PaperList, get_list, read_lists
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import title_id
from orrery.evidence.find.document import Document
from orrery.evidence.understanding.paper_lookup import marked_as, title_of
from orrery.web.papers.item import Item, item_of
from orrery.web.papers.own import marked_in

LISTS = "/papers/lists"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLink:
    """A list among all, and whether the paper that the page is about is on it."""

    name: str
    href: str
    num_papers: int
    has_paper: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """One list: its papers as cards, and those of which nothing is known any more by their ids."""

    name: str
    href: str
    items: tuple[Item, ...]
    unknown: tuple[str, ...]


def address_of_list(name: str) -> str:
    """The page of a list."""
    return f"{LISTS}/{quote(name, safe='')}"


def list_links(store: Store, key: str = "") -> tuple[ListLink, ...]:
    """Every list; with a paper's key, whether it is on each."""
    id = marked_as(store, key) if key else ""
    return tuple(_link(one, id) for one in read_lists(store))


def paper_title(store: Store, key: str) -> str:
    """The title of the paper that lists are shown for."""
    return title_of(store, marked_as(store, key))


def list_page(store: Store, name: str, documents: Sequence[Document]) -> ListPage:
    """A list with its papers. Raises where there is none of that name."""
    found, marks = get_list(store, name), marked_in(store)
    known = {id: d for d in reversed(documents) for id in (d.key, title_id(d.title), d.arxiv) if id}
    return ListPage(
        name=found.name,
        href=address_of_list(found.name),
        items=tuple(item_of(known[id], marks) for id in found.ids if id in known),
        unknown=tuple(id for id in found.ids if id not in known),
    )


def _link(one: PaperList, id: str) -> ListLink:
    return ListLink(name=one.name, href=address_of_list(one.name), num_papers=len(one.papers), has_paper=id in one.ids)
