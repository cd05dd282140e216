"""Text as words, stems and concepts: what both searches compare."""

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

from orrery.base.sources import read_toml

TOKENIZER = "porter unicode61 tokenchars '._'"
"""Tokenizer of the full-text index; likeness takes its stems from the same."""

CONCEPT = "concept."
"""Prefix of a term that stands for a line of synonyms and not for a word of the text."""

SYNONYMS = Path(__file__).parent / "synonyms.toml"

_WORD = re.compile(r"[a-z0-9]+(?:\.[0-9]+)*")
_BRITISH = (
    (re.compile(r"(?<=[a-z]{3})is(?=(?:ed|ing|ation|ations|er|ers)\b)"), "iz"),
    (re.compile(r"(?<=[a-z]{5})is(?=es?\b)"), "iz"),
    (re.compile(r"(?<=[a-z]{3})our(?=(?:s|ed|ing)?\b)"), "or"),
)
"""Spellings of one word that stemming does not bring together: quantise and quantize, neighbour and neighbor."""

STOP_WORDS = frozenset((Path(__file__).parent / "stop_words.txt").read_text(encoding="utf-8").split())
"""Words that say nothing of what a text is about."""


def words(text: str) -> list[str]:
    """Small letters and digits, no accents, one spelling; a decimal number is one word, hyphens and signs separate.

    >>> words("Mélange: quantised 2.4x on A100-SXM")
    ['melange', 'quantized', '2.4', 'x', 'on', 'a100', 'sxm']
    """
    small = text.casefold()
    if not small.isascii():
        small = "".join(c for c in unicodedata.normalize("NFKD", small) if not unicodedata.combining(c))
    for spelling, other in _BRITISH:
        small = spelling.sub(other, small)
    return _WORD.findall(small)


def terms(text: str) -> list[str]:
    """The words of a text that say something, then a term for each concept that it names.

    >>> terms("a TTFT of 20 ms")
    ['ttft', '20', 'ms', 'concept.time_to_first_token']
    """
    found = words(text)
    return [word for word in found if _says(word)] + _unique(concept for _, concept in _named(found))


def asked_terms(text: str) -> list[str]:
    """The terms of a query, each once. Words of a phrase that names a concept do not count beside it.

    >>> asked_terms("mixture of experts"), asked_terms("MoE")
    (['concept.mixture_of_experts'], ['moe', 'concept.mixture_of_experts'])
    """
    found = words(text)
    named = list(_named(found))
    spoken = {i for places, _ in named if len(places) > 1 for i in places}
    plain = [word for i, word in enumerate(found) if i not in spoken and _says(word)]
    return _unique((*plain, *(concept for _, concept in named)))


def _named(found: Sequence[str]) -> Iterator[tuple[range, str]]:
    """Where a phrase of a line of synonyms stands, and the concept."""
    for start, word in enumerate(found):
        for phrase, concept in _beginning(word):
            places = range(start, start + len(phrase))
            if len(phrase) == 1 or phrase == [_singular(w) for w in found[start : places.stop]]:
                yield places, concept


@cache
def _beginning(word: str) -> Sequence[tuple[list[str], str]]:
    """The phrases that begin with a word, in singular or plural."""
    return _phrases().get(_singular(word), ())


def says(text: str) -> bool:
    """Whether a text has a word to look for."""
    return any(map(_says, words(text)))


def _says(word: str) -> bool:
    return len(word) > 1 and word not in STOP_WORDS


def _unique(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))


@cache
def _phrases() -> dict[str, list[tuple[list[str], str]]]:
    """First word -> the phrases that begin with it, each with its concept, called like the first phrase of its line."""
    groups: list[list[str]] = [[" ".join(words(p)) for p in group] for group in read_toml(SYNONYMS)["groups"]]
    found: dict[str, list[tuple[list[str], str]]] = {}
    for group in groups:
        concept = CONCEPT + "_".join(group[0].split())
        for phrase in group:
            singular = [_singular(word) for word in phrase.split()]
            found.setdefault(singular[0], []).append((singular, concept))
    return found


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word


def is_concept(term: str) -> bool:
    """Whether a term stands for a line of synonyms."""
    return term.startswith(CONCEPT)


def term_text(term: str) -> str:
    """A term as a reader is told of it.

    >>> term_text("cache"), term_text("concept.key_value_cache")
    ('cache', 'key value cache')
    """
    return term.removeprefix(CONCEPT).replace("_", " ")


def stems(found: Iterable[str]) -> dict[str, str]:
    """Each term's stem, as the full-text index makes it."""
    unique = list(dict.fromkeys(found))
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f'CREATE VIRTUAL TABLE words USING fts5(word, tokenize = "{TOKENIZER}")')
        database.executemany("INSERT INTO words VALUES (?)", ((word,) for word in unique))
        database.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, instance)")
        return {unique[row - 1]: stem for stem, row in database.execute("SELECT term, doc FROM stems")}
