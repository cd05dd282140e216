"""The columns of a document that are looked through, and how much a word counts in each."""

from orrery.evidence.find.document import Document
from orrery.evidence.find.terms import terms

WEIGHTS = {"title": 3.0, "text": 3.0, "setting": 3.0, "claims": 1.0, "techniques": 1.0, "metrics": 1.0}
"""Column -> weight of a word in it, for words and likeness alike: names, what is done and on what."""

WORDS_ALONE = {"authors": 3.0}
"""Columns that are looked through for their words and say nothing of what a paper is like."""


def columns(document: Document) -> dict[str, list[str]]:
    """The terms of each column. In lists of short phrases each counts once, so that many claims are no essay."""
    return {
        "title": terms(f"{document.title} {document.key}"),
        "text": terms(document.text),
        "claims": _once(" ".join(document.claims)),
        "setting": _once(" ".join((*document.devices, *document.setting, document.layer, document.kind))),
        "techniques": _once(" ".join(document.techniques)),
        "metrics": _once(" ".join(document.metrics)),
        "authors": _once(" ".join(document.authors)),
    }


def _once(text: str) -> list[str]:
    return list(dict.fromkeys(terms(text)))
