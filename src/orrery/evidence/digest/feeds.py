"""Feeds for programs that read them: Atom [rfc-4287] and RSS 2.0."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from xml.etree import ElementTree as Xml

from orrery.evidence.feed.text import without_controls

ATOM = "http://www.w3.org/2005/Atom"
MEDIA_TYPES = {"atom": "application/atom+xml", "rss": "application/rss+xml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedItem:
    """One paper of a feed."""

    id: str
    title: str
    summary: str
    updated: date
    published: date | None = None
    link: str = ""  # of the web; empty where there is none
    authors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A title, the papers, and where the feed itself and its page are found."""

    id: str
    title: str
    updated: date
    items: Sequence[FeedItem]
    address: str = ""
    page: str = ""


def atom_of(feed: Feed) -> str:
    """The feed as Atom."""
    Xml.register_namespace("", ATOM)
    root = Xml.Element(f"{{{ATOM}}}feed")
    _atom(root, "id", feed.address or feed.id)
    _atom(root, "title", feed.title)
    _atom(root, "updated", _moment(feed.updated))
    _atom(_atom(root, "author"), "name", "orrery")
    if feed.address:
        _atom(root, "link", rel="self", href=feed.address)
    for item in feed.items:
        made = _atom(root, "entry")
        _atom(made, "id", item.link or item.id)
        _atom(made, "title", item.title)
        _atom(made, "updated", _moment(item.updated))
        if item.published:
            _atom(made, "published", _moment(item.published))
        if item.link:
            _atom(made, "link", rel="alternate", href=item.link)
        for name in item.authors:
            _atom(_atom(made, "author"), "name", name)
        _atom(made, "summary", item.summary)
    return _text(root)


def rss_of(feed: Feed) -> str:
    """The feed as RSS 2.0; of authors it takes none but email addresses, so they stand in the description."""
    root = Xml.Element("rss", version="2.0")
    channel = _child(root, "channel")
    _child(channel, "title", feed.title)
    _child(channel, "link", feed.page or feed.address or feed.id)
    _child(channel, "description", feed.title)
    _child(channel, "lastBuildDate", _day(feed.updated))
    for item in feed.items:
        made = _child(channel, "item")
        _child(made, "title", item.title)
        if item.link:
            _child(made, "link", item.link)
        _child(made, "guid", item.link or item.id, isPermaLink="true" if item.link else "false")
        _child(made, "pubDate", _day(item.updated))
        _child(made, "description", "\n".join(filter(None, (", ".join(item.authors), item.summary))))
    return _text(root)


def _atom(parent: Xml.Element, name: str, text: str = "", **attributes: str) -> Xml.Element:
    return _child(parent, f"{{{ATOM}}}{name}", text, **attributes)


def _child(parent: Xml.Element, name: str, text: str = "", **attributes: str) -> Xml.Element:
    made = Xml.SubElement(parent, name, attributes)
    made.text = "\n".join(map(without_controls, text.split("\n"))) or None
    return made


def _text(root: Xml.Element) -> str:
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _moment(day: date) -> str:
    return _midnight(day).isoformat().replace("+00:00", "Z")


def _day(day: date) -> str:
    return format_datetime(_midnight(day), usegmt=True)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
