"""Papers are found by what they are about: queries with known answers."""

from pathlib import Path

import pytest

from orrery.evidence.find.ranking import mean_reciprocal_rank, read_queries

QUERIES = read_queries(Path(__file__).with_name("queries.toml"))
SETTING, OTHERS = QUERIES[::2], QUERIES[1::2]

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
