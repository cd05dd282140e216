"""Techniques of orrery that a paper resembles: by the words that it shares with theirs.

A technique's words are its names, what it is, gains and costs, and what papers of the library that name it say they do;
names count most. How rare a word is in abstracts counts as well as how rare it is among techniques.
Its chance to be the paper's own is read off how often the likest one was, for papers of the library that were left out.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from orrery.base.sources import read_toml
from orrery.base.technique import Technique, discover, technique_folders
from orrery.evidence.find.bm25 import Bm25
from orrery.evidence.find.terms import terms
from orrery.evidence.paper_file import Paper, get_paper, paper_keys
from orrery.evidence.understanding.weights import shipped
from orrery.scenario.levers.registry import listed

OTHER_NAMES = Path(__file__).with_name("technique_names.toml")

MAX_NAMED = 3
MIN_FRAC = 0.15

NAME_WEIGHT, DESCRIPTION_WEIGHT, PAPER_WEIGHT = 4.0, 1.0, 0.5
"""How much a word counts in a technique's names, in its description, and in papers that name it."""


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


def likeness(title: str, abstract: str, known: "Techniques | None" = None) -> list[tuple[str, float]]:
    """Every technique by the words that it shares with title and text alike, the likest first."""
    index = known or _shipped()
    scores = index.words.scores(terms(title) + terms(abstract))
    return sorted(zip(index.names, map(float, scores), strict=True), key=lambda pair: -pair[1])


def chance(score: float) -> float:
    """How often a technique with this score was one that the paper's own file names; at most as often as was seen."""
    slope, offset, highest = shipped().technique_curve
    return 1.0 / (1.0 + math.exp(-(slope * min(score, highest) + offset)))


@dataclass(frozen=True, slots=True)
class Techniques:
    """All techniques, ready to be compared with a text."""

    names: tuple[str, ...]
    words: Bm25


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
    weights = shipped()
    rarities = {word: float(weights.rarities[place]) for word, place in weights.places.items()}
    documents = [_weighted(d, classifications.get(d.name, ())) for d in every]
    return Techniques(tuple(d.name for d in every), Bm25(documents, rarities))


def _weighted(known: Described, papers: Sequence[Paper]) -> dict[str, float]:
    """The words of a technique with their weights; a concept counts once for each text that names it."""
    names = f"{known.name.replace('-', ' ')} {_other_names().get(known.name, '')}"
    papers_words = [(text, PAPER_WEIGHT) for paper in papers for text in (paper.title, paper.mechanism)]
    found: dict[str, float] = {}
    for text, weight in ((names, NAME_WEIGHT), (known.words, DESCRIPTION_WEIGHT), *papers_words):
        for term in terms(text):
            found[term] = found.get(term, 0.0) + weight
    return found


@cache
def _other_names() -> dict[str, str]:
    """Names and words that the field has for techniques."""
    return read_toml(OTHER_NAMES)["names"]


@cache
def described() -> tuple[Described, ...]:
    """Every technique file of the house, then what a scenario can switch without one."""
    found = {t.name: _described(t, doc) for folder in technique_folders() for t, doc in _documented(folder)}
    rest = {name: Described(name=name, words=switch.words) for name, switch in listed().items()}
    return tuple((rest | found).values())


def _documented(folder: ModuleType) -> list[tuple[Technique, str]]:
    """Every technique of a folder with the text at the head of its own file."""
    found = list(discover(folder))
    modules = [module for module in vars(folder).values() if isinstance(module, ModuleType)]
    docs = {module.TECHNIQUE.name: module.__doc__ or "" for module in modules if hasattr(module, "TECHNIQUE")}
    return [(technique, docs.get(technique.name, "")) for technique in found]


def _described(technique: Technique, doc: str) -> Described:
    return Described(name=technique.name, words=f"{doc} {technique.gains} {technique.costs}")
