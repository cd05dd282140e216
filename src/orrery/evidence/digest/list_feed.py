"""A reader's list as a feed, and lists as a BibTeX file."""

from collections.abc import Sequence
from datetime import date
from urllib.parse import quote

from orrery.evidence.digest.feeds import Feed, FeedItem
from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.lists import PaperList
from orrery.evidence.feed.saved_entries import get_entry
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import whole_arxiv_id
from orrery.evidence.understanding.interests import filed_entry
from orrery.evidence.understanding.paper_lookup import cited


def cited_lists(store: Store, lists: Sequence[PaperList]) -> list[str]:
    """Every paper of the lists once, as entries of a BibTeX file that name the lists as keywords."""
    names: dict[str, list[str]] = {}
    for one in lists:
        for id in one.ids:
            names.setdefault(id, []).append(one.name)
    return [text for id, on in names.items() if (text := cited(store, id, on))]


def feed_of_list(store: Store, found: PaperList, address: str = "", page: str = "") -> Feed:
    """A list as a feed: its papers, the latest added first."""
    items = [_item(store, id, day) for id, day in found.papers]
    days = [day for _, day in found.papers] or [date.today()]
    return Feed(
        id=f"urn:orrery:list:{quote(found.name)}",
        title=f"Papers: {found.name}",
        updated=max(days),
        items=items,
        address=address,
        page=page,
    )


def _item(store: Store, id: str, added_on: date) -> FeedItem:
    """A listed paper as an item of a feed."""
    entry = get_entry(store, id) or filed_entry(id) or Entry(id=id, title=id, abstract="", source="")
    arxiv = whole_arxiv_id(id)
    link = f"https://arxiv.org/abs/{arxiv}" if arxiv else entry.url
    return FeedItem(
        id=f"urn:orrery:{id}",
        title=entry.title,
        summary=entry.abstract,
        updated=added_on,
        published=entry.published,
        link=link if link.startswith(("https://", "http://")) else "",
        authors=entry.authors,
    )
