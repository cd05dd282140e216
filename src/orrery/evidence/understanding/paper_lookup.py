"""Which paper a reader means: one that has a file, or one of the library's new ones; and under what it is marked."""

from collections.abc import Sequence

from orrery.base.errors import UnknownName
from orrery.evidence.feed.entry import Classification, Entry, NumericClaim
from orrery.evidence.feed.saved_entries import all_entries, find_entry, get_entry
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import title_id, whole_arxiv_id
from orrery.evidence.find.citation import bibtex
from orrery.evidence.find.document import Document
from orrery.evidence.find.library_cache import library
from orrery.evidence.find.made import document_of_entry
from orrery.evidence.paper_file import Paper, get_paper
from orrery.evidence.understanding.interests import filed_entry
from orrery.evidence.understanding.names import check_layers, check_techniques
from orrery.evidence.understanding.understand import understood


def named(key: str) -> Paper:
    """The paper of that key or arXiv id. Raises with the nearest known key."""
    if id := whole_arxiv_id(key):
        key = next((document.key for document in library() if document.arxiv == id), key)
    try:
        return get_paper(key)
    except OSError:  # longer than the name of any file
        raise UnknownName("paper", key, (), "orrery papers list") from None


def fetched(store: Store, key: str) -> tuple[Entry, Classification] | None:
    """The new paper that is meant, and what is understood of it; None where the library has no such paper."""
    entry = find_entry(store, key)
    return None if entry is None else (entry, understood(store, [entry])[entry.id])


def fetched_documents(store: Store) -> tuple[Document, ...]:
    """The library's new papers, with what is understood of them; those with a file are left out."""
    known = {document.arxiv for document in library()}
    entries = [entry for entry in all_entries(store) if entry.id not in known]
    classifications = understood(store, entries)
    return tuple(document_of_entry(entry, classifications[entry.id]) for entry in entries)


def marked_as(store: Store, key: str) -> str:
    """The id under which a paper is marked, by key, id or title. Raises where there is no such paper."""
    if entry := find_entry(store, key):
        return entry.id
    paper = named(key)
    entry = find_entry(store, paper.arxiv) or find_entry(store, paper.title)
    return entry.id if entry else paper.arxiv or title_id(paper.title)


def title_of(store: Store, id: str) -> str:
    """The title of a marked paper; empty where nothing is known of it any more."""
    entry = get_entry(store, id) or filed_entry(id)
    return entry.title if entry else ""


def cited(store: Store, id: str, lists: Sequence[str] = ()) -> str:
    """A marked paper as an entry of a BibTeX file, with its lists as keywords; empty where nothing is known of it."""
    more = {"keywords": lists}
    if paper := next((d for d in library() if id in (d.arxiv, title_id(d.title))), None):
        arxiv, url = paper.arxiv, paper.url
        return bibtex(paper.key, paper.title, year=paper.year, arxiv=arxiv, url=url, authors=paper.authors, **more)
    if entry := get_entry(store, id):
        year, arxiv = entry.published.year if entry.published else None, "" if ":" in id else id
        return bibtex(id, entry.title, year=year, arxiv=arxiv, url=entry.url, authors=entry.authors, **more)
    return ""


def check_followed(followed: Sequence[tuple[str, str]]) -> None:
    """Refuse to follow what does not exist."""
    check_layers(name for kind, name in followed if kind == "layer")
    check_techniques(name for kind, name in followed if kind == "technique")


def understood_paper(paper: Paper) -> Classification:
    """A paper that has a file, as what is understood of it: nothing of it is a guess."""
    return Classification(
        layer=paper.layer,
        layer_confidence_frac=1.0,
        techniques=tuple((name, 1.0) for name in paper.techniques),
        claims=tuple(
            NumericClaim(
                metric=c.metric,
                low=c.low,
                high=c.high,
                unit=c.unit,
                reading=c.reading,
                text=c.at,
                confidence_frac=1.0,
                baseline=c.baseline,
            )
            for c in paper.claims
        ),
    )
