"""Additions to a paper's card from its file and the scorecard: verdicts, a small curve, links."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from orrery.base.errors import OrreryError
from orrery.evidence.find.crossing import reading
from orrery.evidence.judge.scorecard import recorded, recorded_curve
from orrery.evidence.paper_file import Paper, get_paper
from orrery.evidence.verdict import VERDICTS
from orrery.web.papers.messages import link
from orrery.web.papers.thumbnail import thumbnail

CODE_SOURCES = ("code", "artifact", "repository", "repo")
"""Names that paper files give to the authors' own code."""

CODE_TITLE = re.compile("authors' (own )?(code|repository|artifact|notebooks|scripts|experiments|benchmark)")
"""Words in the titles of other sources that are, or stand in, the authors' own code."""

CODE_HOSTS = ("https://github.com/", "https://gitlab.com/", "https://bitbucket.org/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    """Parts of a card."""

    counts: tuple[tuple[str, int], ...] = ()  # verdict and claims
    thumbnail: str = ""
    links: tuple[tuple[str, str], ...] = ()
    organisation: str = ""

    @property
    def num_claims(self) -> int:
        """All claims of the file."""
        return sum(num for _, num in self.counts)

    @property
    def num_reproduced(self) -> int:
        """The claims that are reproduced."""
        return dict(self.counts).get("reproduced", 0)

    @property
    def num_missed(self) -> int:
        """The claims that are not reproduced."""
        return dict(self.counts).get("not reproduced", 0)


def filed(key: str) -> Filed:
    """Additions from a paper's file; empty where it has none that can be read."""
    try:
        return _filed(key)
    except OrreryError:
        return Filed()


@lru_cache(maxsize=1024)
def _filed(key: str) -> Filed:
    paper = get_paper(key)
    count = Counter(claim.verdict for claim in recorded((key,)))
    return Filed(
        counts=tuple((word, count[word]) for word in VERDICTS if count[word]),
        thumbnail=_curve(paper),
        links=(*paper_links(paper.arxiv, paper.link), *code_links(paper)),
        organisation=", ".join(paper.bibliography.organisations),
    )


def _curve(paper: Paper) -> str:
    """The paper's recorded curve, drawn small; empty where none was recorded."""
    if paper.missing or paper.sweep is None or not (curve := recorded_curve(paper)):
        return ""
    return thumbnail(reading(curve))


def paper_links(arxiv: str, url: str) -> tuple[tuple[str, str], ...]:
    """Where a paper can be read: arXiv and its PDF, else its own page."""
    if arxiv:
        return (("arXiv", f"https://arxiv.org/abs/{arxiv}"), ("PDF", f"https://arxiv.org/pdf/{arxiv}"))
    return (("paper", shown),) if (shown := link(url)) else ()


def code_links(paper: Paper) -> tuple[tuple[str, str], ...]:
    """The authors' code, where the file names it as a source."""
    named = [paper.sources[name] for name in CODE_SOURCES if name in paper.sources]
    urls = (one.url for one in (*named, *(s for s in paper.sources.values() if CODE_TITLE.search(s.title))))
    return tuple(("code", url) for url in urls if url and url.startswith(CODE_HOSTS) and link(url))[:1]
