"""Suggestions while a reader types: names that begin so, those of most papers first."""

import pytest

from orrery.evidence.find.document import Document
from orrery.evidence.find.suggest import MAX_SUGGESTED, suggestions

SHELF = (
    Document(key="a", title="Chunks of Prompts", text="", authors=("Tri Dao",), layer="serving", devices=("h100-sxm",)),
    Document(key="b", title="Drafts", text="", authors=("Tri Dao", "Ada Triton"), layer="serving", devices=("h200",)),
    Document(key="c", title="Triggers", text="", techniques=("chunked prefill",), metrics=("ttft_mean",)),
)


def shown(typed):
    return [(one.kind, one.text, one.num) for one in suggestions(SHELF, typed)]


def test_names_that_begin_so_come_before_those_that_hold_it_and_authors_before_papers():
    assert shown("tri") == [("author", "Tri Dao", 2), ("paper", "Triggers", 1), ("author", "Ada Triton", 1)]


def test_finished_words_must_stand_and_the_last_may_be_unfinished():
    assert shown("tri da") == [("author", "Tri Dao", 2)]
    assert shown("dao tr") == [("author", "Tri Dao", 2)]
    assert shown("tr da") == []


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        ("serv", "layer:serving"),
        ("h100", "device:h100-sxm"),
        ("chunked", 'technique:"chunked prefill"'),
        ("tri dao", 'author:"Tri Dao"'),
        ("ttft", "metric:ttft_mean"),
        ("drafts", "Drafts"),
    ],
)
def test_what_is_taken_is_a_query(typed, query):
    assert suggestions(SHELF, typed)[0].query == query


@pytest.mark.parametrize("typed", ["", " ", "t", "?", '"', "zzz"])
def test_too_little_or_unknown_suggests_nothing(typed):
    assert suggestions(SHELF, typed) == ()


def test_every_suggestion_of_the_library_finds_a_paper(finder):
    for typed in ("ze", "dao", "h100", "spec", "thr", "ser"):
        found = suggestions(finder.documents, typed)
        assert 0 < len(found) <= MAX_SUGGESTED
        assert all(finder.search(one.query, limit=1).hits for one in found)
