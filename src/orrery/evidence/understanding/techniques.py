"""Which techniques of orrery a paper resembles: by likeness of its words with theirs.

A technique's words are its names, what it is, gains and costs, and what papers of the library that name it say they do.
Its chance to be the paper's own is read off how often the likest one was, for papers of the library that were left out.
"""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orrery.base.sources import read_toml
from orrery.base.technique import Technique, discover, technique_folders
from orrery.evidence.find.likeness import TopicModel
from orrery.evidence.find.terms import terms
from orrery.evidence.paper_file import Paper, get_paper, paper_keys
from orrery.evidence.understanding.weights import shipped
from orrery.scenario.levers.registry import listed

OTHER_NAMES = Path(__file__).with_name("technique_names.toml")

MAX_NAMED = 3
MIN_FRAC = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A technique and its description as text."""

    name: str
    words: str


def techniques_of(title: str, abstract: str) -> tuple[tuple[str, float], ...]:
    """The techniques that a paper resembles most, with the chance that it is about them; often none."""
    named = likeness(title, abstract)[:MAX_NAMED]
    sure = ((name, round(chance(score), 3)) for name, score in named)
    return tuple((name, sureness) for name, sureness in sure if sureness >= MIN_FRAC)


def likeness(title: str, abstract: str, model: "Techniques | None" = None) -> list[tuple[str, float]]:
    """Every technique by the mean of the cosines of its topics and of its words with the paper's, the likest first."""
    index = model or _shipped()
    query = terms(title) * 2 + terms(abstract)
    scores = (index.words.scores(query) + index.words.word_scores(query)) / 2.0
    return sorted(zip(index.names, map(float, scores), strict=True), key=lambda pair: -pair[1])


def chance(score: float) -> float:
    """How often a technique with this cosine was one that the paper's own file names."""
    slope, offset = shipped().technique_curve
    return 1.0 / (1.0 + math.exp(-(slope * score + offset)))


@dataclass(frozen=True, slots=True)
class Techniques:
    """All techniques, ready to be compared with a text."""

    names: tuple[str, ...]
    words: TopicModel


@cache
def _shipped() -> Techniques:
    return compared(described(), [get_paper(key) for key in paper_keys()])


def compared(known: Iterable[Described], papers: Sequence[Paper]) -> Techniques:
    """Techniques with the words of the papers that name them."""
    classifications: dict[str, list[Paper]] = {}
    for paper in papers:
        for name in paper.techniques:
            classifications.setdefault(name, []).append(paper)
    every = list(known)
    return Techniques(tuple(d.name for d in every), TopicModel([_columns(d, classifications) for d in every]))


def _columns(known: Described, classifications: Mapping[str, Sequence[Paper]]) -> dict[str, list[str]]:
    papers = classifications.get(known.name, ())
    return {
        "title": terms(f"{known.name.replace('-', ' ')} {_other_names().get(known.name, '')}"),
        "text": terms(" ".join((known.words, *(paper.mechanism for paper in papers)))),
        "claims": terms(" ".join(paper.title for paper in papers)),
    }


@cache
def _other_names() -> dict[str, str]:
    """Names and words that the field has for techniques."""
    return read_toml(OTHER_NAMES)["names"]


@cache
def described() -> tuple[Described, ...]:
    """Every technique file of the house, then what a scenario can switch without one."""
    found = {t.name: _described(t) for folder in technique_folders() for t in discover(folder)}
    rest = {name: Described(name=name, words=switch.words) for name, switch in listed().items()}
    return tuple((rest | found).values())


def _described(technique: Technique) -> Described:
    about = sys.modules[technique.rule.__module__].__doc__ or ""
    return Described(name=technique.name, words=f"{about} {technique.gains} {technique.costs}")
