"""An issue as text, as a page for mail readers, and as an Atom feed."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from functools import cache
from pathlib import Path
from textwrap import fill, shorten
from typing import Any
from xml.etree import ElementTree as Xml

from orrery.evidence.amounts import amount
from orrery.evidence.digest.issue import DigestIssue, Item
from orrery.evidence.feed.extra import load

WIDTH = 78
ABSTRACT = 600
"""Letters of an abstract that are shown; the link leads to the rest."""

CLAIMS = 3
ATOM = "http://www.w3.org/2005/Atom"


def lines_of(item: Item) -> Iterator[tuple[str, str]]:
    """Lines below a paper's title: a word and a sentence each."""
    entry, classification = item.trend.entry, item.trend.understood
    who = entry.organisation or (f"{entry.num_authors} authors" if entry.num_authors else "")
    if who or entry.published:
        yield "from", ", ".join(x for x in (who, f"{entry.published:%d %B %Y}" if entry.published else "") if x)
    if classification.layer:
        like = ", ".join(name for name, _ in classification.techniques)
        yield "about", f"{classification.layer}{f', like {like}' if like else ''}"
    claims = (
        f"{c.metric.replace('_', ' ')} {_amount(c.low, c.high, c.unit, c.reading)}" for c in classification.claims
    )
    yield from (("claims", claim) for claim in list(dict.fromkeys(claims))[:CLAIMS])
    for meaning in item.meanings:
        yield "for you", str(meaning)
    if item.because:
        yield "because", "; ".join(item.because)


def _amount(low: float, high: float, unit: str, reading: str) -> str:
    ends = " to ".join(dict.fromkeys(amount(x, unit) for x in (low, high)))
    return ends if reading == "value" else f"{reading} {ends}"


def as_text(issue: DigestIssue, links: Mapping[str, str] | None = None) -> str:
    """The issue for a terminal or the plain part of a letter; ``links`` stand at its end."""
    out = [issue.title, "=" * len(issue.title), ""]
    for i, item in enumerate(issue.items, 1):
        out.append(fill(f"{i}. {item.trend.entry.title}", WIDTH, subsequent_indent="   "))
        if item.link:
            out.append(f"   {item.link}")
        out += [_wrapped(f"{word}: {text}") for word, text in lines_of(item)]
        out += ["", _wrapped(shorten(item.trend.entry.abstract, ABSTRACT, placeholder=" …")), ""]
    out += _end(issue)
    out += [f"{word}: {link}" for word, link in (links or {}).items()]
    return "\n".join(out) + "\n"


def _wrapped(text: str) -> str:
    return fill(text, WIDTH, initial_indent="   ", subsequent_indent="   ", break_long_words=False)


def _end(issue: DigestIssue) -> list[str]:
    if not issue.items:
        return ["Nothing new that you asked for.", ""]
    return [f"And {issue.num_more} more: orrery papers trending", ""] if issue.num_more else []


def as_html(issue: DigestIssue, links: Mapping[str, str] | None = None) -> str:
    """The issue as a page that stands alone: no pictures, scripts or fonts from elsewhere; everything escaped."""
    items = [
        {
            "title": item.trend.entry.title,
            "link": _web(item.link),
            "lines": list(lines_of(item)),
            "abstract": shorten(item.trend.entry.abstract, ABSTRACT, placeholder=" …"),
        }
        for item in issue.items
    ]
    return template("email.html").render(title=issue.title, items=items, end=_end(issue)[:1], links=links or {})


def _web(link: str) -> str:
    """A link only where it leads to the web: a feed must not place others."""
    return link if link.startswith(("https://", "http://")) else ""


@cache
def template(name: str) -> Any:
    """A template of this folder; what it shows is escaped, and a name that nobody gave is an error."""
    jinja2 = load("jinja2")
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined).get_template(name)


def as_atom(issue: DigestIssue, address: str = "") -> str:
    """The issue as an Atom feed [rfc-4287]; ``address`` is where the feed itself is found."""
    Xml.register_namespace("", ATOM)
    feed = Xml.Element(f"{{{ATOM}}}feed")
    _child(feed, "id", address or "urn:orrery:digest")
    _child(feed, "title", "AI compute: new papers")
    _child(feed, "updated", _moment(issue.until))
    _child(_child(feed, "author"), "name", "orrery")
    if address:
        _child(feed, "link", rel="self", href=address)
    for item in issue.items:
        entry, made = item.trend.entry, _child(feed, "entry")
        day = entry.updated or entry.published or issue.until
        _child(made, "id", item.link or f"urn:orrery:{entry.id}")
        _child(made, "title", entry.title)
        _child(made, "updated", _moment(day))
        if entry.published:
            _child(made, "published", _moment(entry.published))
        if _web(item.link):
            _child(made, "link", rel="alternate", href=item.link)
        for name in entry.authors:
            _child(_child(made, "author"), "name", name)
        text = [f"{word}: {what}" for word, what in lines_of(item)]
        _child(made, "summary", "\n".join([*text, "", entry.abstract]))
    Xml.indent(feed)
    return Xml.tostring(feed, encoding="unicode", xml_declaration=True) + "\n"


def _child(parent: Xml.Element, name: str, text: str = "", **attributes: str) -> Xml.Element:
    made = Xml.SubElement(parent, f"{{{ATOM}}}{name}", attributes)
    made.text = text or None
    return made


def _moment(day: date) -> str:
    return datetime.combine(day, time(), UTC).isoformat().replace("+00:00", "Z")
