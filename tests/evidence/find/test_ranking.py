"""Papers are found by what they are about: queries with known answers."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from judged_queries import Query, gain_ratio, mean_reciprocal_rank, read_queries

QUERIES = read_queries(Path(__file__).with_name("queries.toml"))
SETTING, OTHERS = QUERIES[::2], QUERIES[1::2]

SHORT = read_queries(Path(__file__).with_name("short_queries.toml"))
HELD_OUT = SHORT[2::3]

LEAST = 0.8


def test_there_are_enough_queries_and_their_papers_exist(finder):
    keys = {document.key for document in finder.documents}
    assert len(QUERIES) >= 60
    assert len({query.text for query in QUERIES}) == len(QUERIES)
    assert not [query.text for query in QUERIES if not set(query.relevant) <= keys]


def test_queries_are_spread_over_the_layers(finder):
    layer = {document.key: document.layer for document in finder.documents}
    query_terms = {layer[key] for query in QUERIES for key in query.relevant if key in layer}
    assert query_terms == set(layer.values())


@pytest.mark.parametrize("half", [SETTING, OTHERS], ids=["that set the weight", "others"])
def test_the_right_paper_comes_first_or_nearly_so(finder, half):
    known = {document.key for document in finder.documents}
    half = [query for query in half if known & set(query.relevant)]
    assert mean_reciprocal_rank(finder, half) >= LEAST


@pytest.mark.slow
def test_both_searches_together_do_not_lose_against_either(finder):
    both, words, likeness = (mean_reciprocal_rank(finder, QUERIES, kind) for kind in ("both", "words", "likeness"))
    assert both >= max(words, likeness) - 0.01


def test_sixty_short_queries_name_papers_that_exist(finder):
    keys = {document.key for document in finder.documents}
    assert len({query.text for query in SHORT}) == len(SHORT) == 60
    assert all(1 <= len(query.text.split()) <= 3 for query in SHORT)
    assert not [q.text for q in SHORT if not {*q.relevant, *q.partly} <= keys or set(q.relevant) & set(q.partly)]


@pytest.mark.parametrize("part", [SHORT, HELD_OUT], ids=["all", "held out"])
def test_short_queries_find_what_they_name(finder, part):
    assert mean_reciprocal_rank(finder, part) >= 0.9
    assert sum(gain_ratio(finder, query) for query in part) / len(part) >= 0.85


def test_gain_by_hand():
    """Grades 1, 0, 2 in that order against 2, 1: (1 + 2/2) / (2 + 1/log2 3) = 2 / 2.63093 = 0.76019."""
    documents = [SimpleNamespace(document=SimpleNamespace(key=key)) for key in "bxa"]
    finder = SimpleNamespace(search=lambda text, limit: SimpleNamespace(hits=documents))
    assert gain_ratio(finder, Query(text="q", relevant=("a",), partly=("b",))) == pytest.approx(0.76019, abs=1e-5)


EXACT = read_queries(Path(__file__).with_name("exact_queries.toml"))


def test_twenty_exact_queries_name_papers_that_exist(finder):
    keys = {document.key for document in finder.documents}
    assert len({query.text for query in EXACT}) == len(EXACT) == 20
    assert not [query.text for query in EXACT if not set(query.relevant) <= keys]


def test_phrases_authors_and_numbers_find_what_has_them(finder):
    assert mean_reciprocal_rank(finder, EXACT) >= 0.95
    assert sum(gain_ratio(finder, query) for query in EXACT) / len(EXACT) >= 0.95
