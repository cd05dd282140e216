"""An issue as text, as a page for mail readers, and as an Atom feed."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from textwrap import fill, shorten
from typing import Any

from orrery.evidence.amounts import amount
from orrery.evidence.digest.feeds import Feed, FeedItem, atom_of
from orrery.evidence.digest.issue import DigestIssue, Item
from orrery.evidence.feed.extra import load
from orrery.evidence.understanding.claim_effect import ClaimEffect, sentence

WIDTH = 78
ABSTRACT = 600
"""Letters of an abstract that are shown; the link leads to the rest."""

CLAIMS = 3


def lines_of(item: Item) -> Iterator[tuple[str, str]]:
    """Lines below a paper's title: a word and a sentence each."""
    entry, classification = item.trend.entry, item.trend.understood
    who = entry.organisation or (f"{entry.num_authors} authors" if entry.num_authors else "")
    if who or entry.published:
        yield "from", ", ".join(x for x in (who, f"{entry.published:%d %B %Y}" if entry.published else "") if x)
    if classification.layer:
        like = ", ".join(name for name, _ in classification.techniques)
        yield "about", f"{classification.layer}{f', like {like}' if like else ''}"
    yield from _claims(item)
    tried = {effect.technique for effect in item.effects}
    yield from (("for you", str(meaning)) for meaning in item.meanings if meaning.technique not in tried)
    if item.because:
        yield "because", "; ".join(item.because)


def _claims(item: Item) -> Iterator[tuple[str, str]]:
    """The first claims, each with what it would be in the reader's deployment; a reason that all share stands once."""
    claims, reasons = item.trend.understood.claims, {effect.because for effect in item.effects}
    is_shared = len(reasons) == 1 and not any(effect.is_computed for effect in item.effects)
    beside: Sequence[ClaimEffect | None] = (None,) * len(claims) if is_shared or not item.effects else item.effects
    found: dict[str, str] = {}
    for c, effect in zip(claims, beside, strict=True):
        claim = f"{c.metric.replace('_', ' ')} {_amount(c.low, c.high, c.unit, c.reading)}"
        against = f" against {c.baseline}" if c.baseline else ""
        found.setdefault(claim, f"{against}; your deployment: {sentence(effect, c.unit)}" if effect else "")
    yield from (("claims", claim + more) for claim, more in list(found.items())[:CLAIMS])
    if is_shared and not item.meanings:
        yield "for you", f"not computed: {reasons.pop()}"


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
    """The issue as an Atom feed; ``address`` is where the feed itself is found."""
    title, items = "AI compute: new papers", [_feed_item(item, issue) for item in issue.items]
    return atom_of(Feed(id="urn:orrery:digest", title=title, updated=issue.until, items=items, address=address))


def _feed_item(item: Item, issue: DigestIssue) -> FeedItem:
    entry, text = item.trend.entry, [f"{word}: {what}" for word, what in lines_of(item)]
    return FeedItem(
        id=f"urn:orrery:{entry.id}",
        title=entry.title,
        summary="\n".join([*text, "", entry.abstract]),
        updated=entry.updated or entry.published or issue.until,
        published=entry.published,
        link=_web(item.link),
        authors=entry.authors,
    )
