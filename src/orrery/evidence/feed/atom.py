"""Readers of arXiv's answers: the Atom of its API, and the Atom and RSS of its daily lists.

Elements: https://info.arxiv.org/help/api/user-manual.html and https://info.arxiv.org/help/rss.html.
"""

import io
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from orrery.evidence.feed.entry import Entry, Read, Skipped
from orrery.evidence.feed.extra import FeedError, load
from orrery.evidence.feed.text import arxiv_id, plain, title_id

MAX_ENTRIES = 5000

_ANNOUNCED = re.compile(r"^arXiv:\S+\s+Announce Type:\s*\S+\s*(?:Abstract:\s*)?", re.IGNORECASE)
_END = re.compile(rb"</(?:[a-z0-9_.-]+:)?(?:feed|rss|rdf)\s*>")
_REFERENCE = re.compile(rb"&#(?:x([0-9a-fA-F]{1,12})|([0-9]{1,12}));?", re.IGNORECASE)
MAX_TOTAL_DIGITS = 12
_REFUSED = (b"<!doctype", b"<!entity")
Raw = Mapping[str, Any]


def read_atom(document: bytes, source: str, content_type: str = "") -> Read:
    """Every paper of a feed; entries that say nothing are left out, and so is the last one of a feed that was cut."""
    _refuse_definitions(document, source)
    headers = {"content-type": content_type} if content_type else {}
    feed = _parsed(document, source, headers)
    raw: list[Raw] = list(feed.entries[:MAX_ENTRIES])
    if not raw and not feed.get("version"):
        raise FeedError(f"{source}: is no Atom or RSS feed{_because(feed)}.")
    skipped: list[Skipped] = []
    if raw and not _END.search(_squeezed(document[-4096:])):
        raw.pop()
        skipped.append(Skipped(where=source, why="the feed is cut short; its last entry was left out."))
    elif feed.get("bozo") and not raw:
        skipped.append(Skipped(where=source, why=f"the feed is malformed{_because(feed)}."))
    entries = [e for one in raw if (e := _entry(one, source, skipped))]
    return Read(entries=tuple(entries), skipped=tuple(skipped), num_total=_total(feed))


def _parsed(document: bytes, source: str, headers: Mapping[str, str]) -> Any:
    """The parsed feed. The parser is given a stream, because bytes alone it takes for the name of a file first."""
    stream = io.BytesIO(_REFERENCE.sub(_letter_or_nothing, document))
    try:
        return load("feedparser").parse(
            stream, response_headers=headers, resolve_relative_uris=False, sanitize_html=False
        )
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        AssertionError,
        RecursionError,
    ) as error:
        raise FeedError(f"{source}: is a feed that cannot be read ({plain(str(error))[:120]}).") from None


def _letter_or_nothing(reference: re.Match[bytes]) -> bytes:
    """A numeric reference as it stands where it names a letter; half a pair, or none of Unicode's, is left out."""
    number = int(reference[1], 16) if reference[1] else int(reference[2])
    return b"" if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF else reference[0]


def _squeezed(document: bytes) -> bytes:
    """Letters of any Unicode encoding side by side, in lower case."""
    return document.replace(b"\x00", b"").lower()


def _refuse_definitions(document: bytes, source: str) -> None:
    """A feed defines no entities of its own; who does may want them expanded a billion times."""
    squeezed = _squeezed(document)
    if b"<html" in squeezed[:2000] or b"<!doctype html" in squeezed[:2000]:
        raise FeedError(f"{source}: is a web page, not a feed.")
    if any(word in squeezed for word in _REFUSED):
        raise FeedError(f"{source}: defines entities of its own (DTD), which no feed needs; it was not read.")


def _because(feed: Any) -> str:
    return f" ({plain(str(reason))[:120]})" if (reason := feed.get("bozo_exception")) else ""


def _total(feed: Any) -> int | None:
    """Hits of the whole search."""
    text = str(feed.feed.get("opensearch_totalresults", ""))
    return int(text) if text.isdecimal() and len(text) <= MAX_TOTAL_DIGITS else None


def _entry(raw: Raw, source: str, skipped: list[Skipped]) -> Entry | None:
    """One paper; None, with a line that says why, where there is none in it."""
    title = plain(str(raw.get("title", "")))
    abstract = _ANNOUNCED.sub("", plain(str(raw.get("summary", "")))).strip()
    address = str(raw.get("id") or raw.get("link") or "")
    if "/api/errors" in address:
        raise FeedError(f"{source}: arXiv answers: {abstract or title}.")
    if not title or not abstract:
        missing = "title" if not title else "abstract"
        skipped.append(Skipped(where=source, why=f"{(title or address or 'an entry')[:80]!r} has no {missing}."))
        return None
    found, version = arxiv_id(address)
    authors = _authors(raw)
    published = _day(raw, "published")
    return Entry(
        id=found or title_id(title),
        version=version,
        title=title,
        abstract=abstract,
        source=source,
        authors=authors,
        num_authors=len(authors),
        published=published,
        updated=_day(raw, "updated") or published,
        categories=_categories(raw),
        url=f"https://arxiv.org/abs/{found}" if found else _web(str(raw.get("link", ""))),
    )


def _authors(raw: Raw) -> tuple[str, ...]:
    """Names; a feed of the older kind lists them in one line."""
    names = [plain(str(a.get("name", ""))) for a in raw.get("authors", ())]
    if len(names) == 1 and "," in names[0]:
        names = [name.strip() for name in names[0].split(",")]
    return tuple(name for name in names if name)


def _categories(raw: Raw) -> tuple[str, ...]:
    """The primary one first."""
    tags: list[Raw] = [raw.get("arxiv_primary_category") or {}, *raw.get("tags", ())]
    return tuple(dict.fromkeys(plain(str(tag["term"])) for tag in tags if tag.get("term")))


def _day(raw: Raw, name: str) -> date | None:
    if f"{name}_parsed" not in raw.keys():  # noqa: SIM118 - the parser's "in" takes one day for the other
        return None
    parsed = raw[f"{name}_parsed"]
    try:
        return date(*parsed[:3]) if parsed else None
    except (ValueError, OverflowError):  # no such day
        return None


def _web(link: str) -> str:
    """An address that a browser may open without harm; empty where it is another."""
    return plain(link)[:500] if link.startswith(("https://", "http://")) else ""
