"""Cards of a paper and of the papers of a date."""

from collections import Counter

from orrery.evidence.amounts import input_name
from orrery.evidence.feed.entry import Classification, Entry
from orrery.evidence.find.crossing import reading
from orrery.evidence.judge.scorecard import recorded, recorded_curve
from orrery.evidence.paper_file import Paper
from orrery.web.cards.card import CardCurve, ShareCard
from orrery.web.papers.fetched_view import read_claim
from orrery.web.papers.fresh import Dates
from orrery.web.papers.item import named_authors
from orrery.web.papers.messages import MAX_TEXT, describe
from orrery.web.papers.thumbnail import shape_of

MAX_TITLES = 5


def paper_card(paper: Paper) -> ShareCard:
    """How many claims are reproduced, what the paper does, and its own curve."""
    count = Counter(claim.verdict for claim in recorded((paper.key,)))
    num, whole = count["reproduced"], sum(count.values())
    is_run = bool(count["reproduced"] + count["not reproduced"])
    return ShareCard(
        kicker=f"{paper.layer}, {paper.bibliography.published or paper.year}",
        title=describe(paper.title),
        number=f"{num} of {whole}" if is_run else "",
        beside=("claims reproduced", f"{count['not reproduced']} not reproduced") if is_run else ("", ""),
        text=describe(paper.mechanism, MAX_TEXT),
        curve=_curve(paper),
        foot=("orrery", named_authors(paper.bibliography.authors) or "authors unknown"),
    )


def _curve(paper: Paper) -> CardCurve | None:
    if paper.missing or paper.sweep is None or not (curve := recorded_curve(paper)):
        return None
    found = reading(curve)
    shape = shape_of(found)
    if shape is None:
        return None
    return CardCurve(
        points=tuple(zip(shape.x, shape.y, strict=True)),
        zero_frac=None if found.neutral is None else shape.zero_frac,
        best=shape.best,
        value=shape.value,
        ends=shape.ends,
        name=input_name(found.input),
        is_line=shape.is_line,
    )


def fetched_card(entry: Entry, understood: Classification) -> ShareCard:
    """The first number that it claims, and the beginning of its abstract."""
    claim = read_claim(understood.claims[0]) if understood.claims else None
    when = f"{entry.published:%d %B %Y}" if entry.published else ""
    return ShareCard(
        kicker=", ".join(word for word in (understood.layer, when) if word) or "New paper",
        title=describe(entry.title),
        number=claim.amount if claim else "",
        beside=(f"claimed: {claim.what}", "not run again yet") if claim else ("", ""),
        text=describe(entry.abstract, MAX_TEXT),
        foot=("orrery", named_authors(entry.authors, entry.num_authors) or "authors unknown"),
    )


def day_card(found: Dates) -> ShareCard:
    """How many papers a date has, and the first titles."""
    if found.period is None:
        return ShareCard(kicker="Papers on AI compute", title="No papers yet")
    first = found.sections[0]
    return ShareCard(
        kicker="Papers on AI compute",
        title=found.period.words,
        number=f"{first.num_all}",
        beside=(f"paper{'' if first.num_all == 1 else 's'} of this {found.period.kind}", ""),
        rows=tuple((item.title,) for item in first.items[:MAX_TITLES]),
        foot=("orrery", "what they claim, and what comes out when it is run again"),
    )
