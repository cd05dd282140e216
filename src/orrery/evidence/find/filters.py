"""Which papers a reader wants to see: of a layer, on a device, of some years, …"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orrery.base.errors import ScenarioError, nearest
from orrery.evidence.find.document import Document
from orrery.evidence.find.terms import words

MAX_LISTED = 20
"""Names that an error spells out."""

VERDICTS = ("reproduced", "not reproduced", "none")
"""A paper has a claim that is reproduced, one that is not, or none that is modeled."""

_YEARS = re.compile(r"(\d{4})?\s*(\.\.)?\s*(\d{4})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Words that a paper must carry; an empty one lets everything through. Several by comma: any of them."""

    author: str = ""  # a name, or part of one; of several by comma, any
    layer: str = ""
    device: str = ""  # as set-ups name it, or how such a name begins: a100
    technique: str = ""
    metric: str = ""
    kind: str = ""
    fit: str = ""
    verdict: str = ""  # one of VERDICTS
    year: str = ""  # 2024, 2020..2024, 2023.. or ..2021


def select(documents: Sequence[Document], filters: Filters) -> tuple[Document, ...]:
    """The documents that pass all filters. Raises where no document at all carries a word."""
    required = {
        name: _target(name, getattr(filters, name), {n for d in documents for n in _names(d, name)})
        for name in ("layer", "device", "technique", "metric", "kind", "fit")
        if getattr(filters, name)
    }
    low, high = _years(filters.year) if filters.year else (None, None)
    judged = _judged(filters.verdict, documents) if filters.verdict else None
    written = _written(filters.author, documents) if filters.author else None
    return tuple(
        d
        for d in documents
        if all(names & set(_names(d, name)) for name, names in required.items())
        and (judged is None or d.key in judged)
        and (written is None or d.key in written)
        and (low is None or (d.year is not None and d.year >= low))
        and (high is None or (d.year is not None and d.year <= high))
    )


def _judged(verdict: str, documents: Sequence[Document]) -> set[str]:
    """Papers with that verdict on any claim, by the checked-in scorecard."""
    from orrery.evidence.judge.scorecard import read_scorecard

    if verdict not in VERDICTS:
        raise ScenarioError(f"verdict: {verdict!r} is none of {', '.join(VERDICTS)}.")
    lines = read_scorecard().papers
    if verdict == "none":
        return {d.key for d in documents if not lines.get(d.key)}
    return {key for key, claims in lines.items() if any(scored.verdict == verdict for scored in claims.values())}


def _written(author: str, documents: Sequence[Document]) -> set[str]:
    """Papers by any of these people: every word of the name stands in one author's name."""
    found = set[str]()
    for part in author.split(","):
        spelled = set(words(part))
        meant = {d.key for d in documents if spelled and any(spelled <= set(words(name)) for name in d.authors)}
        if not meant:
            known = {name for d in documents for name in d.authors}
            parts = {word for name in known for word in name.split() if len(word) > 1}
            near = nearest(part.strip(), known) or nearest(part.strip(), parts)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "not every paper's authors are known."
            raise ScenarioError(f"There is no paper of author {part.strip()!r}; {hint}")
        found |= meant
    return found


def _names(document: Document, name: str) -> tuple[str, ...]:
    """A document's values of a filter."""
    found: str | tuple[str, ...] = getattr(document, name if name in ("layer", "kind", "fit") else f"{name}s")
    return (found,) if isinstance(found, str) else found


def devices_named(text: str, documents: Sequence[Document]) -> set[str]:
    """The devices of these papers that a name means. Raises where there is none."""
    return _target("device", text, {name for d in documents for name in d.devices})


def _target(name: str, text: str, known: Collection[str]) -> set[str]:
    """The known names that are meant: equal to a word of the filter, or beginning with it and a hyphen."""
    found = set[str]()
    for part in text.split(","):
        word = "-".join(part.casefold().split())
        spelled = {"-".join(k.casefold().split()): k for k in known if k}
        meant = {k for s, k in spelled.items() if s == word or s == word.replace("-", "_") or s.startswith(f"{word}-")}
        if not word or not meant:
            raise ScenarioError(f"There is no paper of {name} {part.strip()!r}; {_hint(part, spelled.values())}")
        found |= meant
    return found


def _hint(part: str, known: Collection[str]) -> str:
    near = nearest(part.strip(), known)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    names = sorted(known)
    more = ", …" if len(names) > MAX_LISTED else ""
    return f"known: {', '.join(names[:MAX_LISTED])}{more}."


def _years(text: str) -> tuple[int | None, int | None]:
    """First and last year; None where it is open."""
    match = _YEARS.fullmatch(text.strip())
    low, dots, high = match.groups() if match else (None, None, None)
    if (low is None and high is None) or (low and high and not dots):
        raise ScenarioError(f"year: {text!r} is no year; write 2024, 2020..2024, 2023.. or ..2021.")
    first, last = int(low) if low else None, int(high) if high else None
    if not dots:
        last = first = first or last
    if first is not None and last is not None and first > last:
        raise ScenarioError(f"year: {text!r} ends before it begins; write {last}..{first}.")
    return first, last
