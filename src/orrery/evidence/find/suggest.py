"""Suggestions while typing: papers, authors, layers, techniques, devices and metrics that begin with the text."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orrery.evidence.find.document import Document
from orrery.evidence.find.terms import words

MAX_SUGGESTED = 8
SHORTEST = 2
"""Letters from which on anything is suggested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A query that may be meant."""

    query: str  # what the search is then parts
    text: str  # as a reader is shown it
    kind: str  # paper, author, layer, technique, device or metric
    num: int  # papers that it is of


def suggestions(documents: Sequence[Document], typed: str, most: int = MAX_SUGGESTED) -> tuple[Suggestion, ...]:
    """Names with a word for each word typed, the last of which may be unfinished; those of most papers first."""
    parts = words(typed)
    if len("".join(parts)) < SHORTEST:
        return ()
    count = Counter(pair for document in documents for pair in set(_names(document)))
    met = [
        (not _starts(words(name), parts), kind, name, num)
        for (kind, name), num in count.items()
        if _meets(words(name), parts)
    ]
    met.sort(key=lambda one: (one[0], one[1] == "paper", -one[3], one[2]))
    return tuple(
        Suggestion(query=_query(kind, name), text=name, kind=kind, num=num) for _, kind, name, num in met[:most]
    )


def _names(document: Document) -> Iterator[tuple[str, str]]:
    """Names by which a paper can be found."""
    yield "paper", document.title
    for kind, found in (
        ("author", document.authors),
        ("layer", (document.layer,)),
        ("technique", document.techniques),
        ("device", document.devices),
        ("metric", document.metrics),
    ):
        yield from ((kind, name) for name in found if name)


def _meets(name: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a name has every word that is finished, and one that begins with the last."""
    *finished, last = parts
    return set(finished) <= set(name) and any(word.startswith(last) for word in name)


def _starts(name: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a name begins with what was typed."""
    return " ".join(name).startswith(" ".join(parts))


def _query(kind: str, name: str) -> str:
    """As the search takes it: a title by itself, anything else as a field."""
    if kind == "paper":
        return name.replace('"', " ")
    return f'{kind}:"{name}"' if " " in name else f"{kind}:{name}"
