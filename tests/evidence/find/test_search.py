"""Words, likeness, keys and typos; nothing that is typed reaches the index as syntax."""

import time
import tomllib

import pytest

from orrery.base.errors import ScenarioError
from orrery.evidence.find.document import Document
from orrery.evidence.find.fields import columns
from orrery.evidence.find.full_text import FullText
from orrery.evidence.find.likeness import TopicModel
from orrery.evidence.find.search import Finder
from orrery.evidence.find.terms import CONCEPT, SYNONYMS, terms, words

SHELF = (
    Document(
        key="cold-cache",
        title="Cold Cache",
        text="Keys and values of old tokens go to drives.",
        year=2023,
        metrics=("throughput_ratio",),
        claims=("throughput ratio 2.4 against vllm",),
    ),
    Document(key="warm-weights", title="Warm Weights", text="Weights stay on the device between jobs.", year=2024),
    Document(
        key="quick-draft",
        title="Quick Draft",
        text="A small network guesses tokens, a large one checks them.",
        arxiv="2401.00001",
    ),
    Document(
        key="slow-gossip",
        title="Slow Gossip",
        text="Neighbours average their weights, round by round.",
        techniques=("gossip-averaging",),
    ),
)


@pytest.fixture(scope="module")
def small():
    return Finder(SHELF)


def keys(found):
    return [hit.document.key for hit in found.hits]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("kv cache on SSD", "cold-cache"),
        ("weights that stay on the GPU", "warm-weights"),
        ("speculative decoding with a small draft network", "quick-draft"),
        ("neighbors averaging", "slow-gossip"),
        ("2.4x over vLLM", "cold-cache"),
        ("gossip-averaging", "slow-gossip"),
    ],
)
def test_other_words_for_the_same_thing_find_it(small, query, first):
    assert keys(small.search(query))[0] == first


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("distserve", "distserve"),
        ("DistServ", "distserve"),
        ("dist-serve", "distserve"),
        ("sarathi serve", "sarathi-serve"),
        ("flash attention 3", "flashattention-3"),
        ("2401.09670", "distserve"),
        ("The Two-Pass Softmax Algorithm", "two-pass-softmax"),
    ],
)
def test_a_key_or_what_is_near_it_finds_its_paper_first(finder, query, key):
    assert keys(finder.search(query))[0] == key


def test_every_key_finds_its_own_paper_first(finder):
    lost = [d.key for d in finder.documents if keys(finder.search(d.key, limit=1)) != [d.key]]
    assert not lost


def test_a_long_misspelled_word_is_read_as_the_nearest_known_one(small):
    found = small.search("avearge weights")
    assert found.read_as == {"avearge": "average"}
    assert keys(found)[0] == "slow-gossip"


@pytest.mark.parametrize("query", ["", "  ", "?!", "the of and", "\x00", "'", '"', "()", "*", "…"])
def test_a_query_without_a_word_is_refused(small, query):
    with pytest.raises(ScenarioError, match="no word to look for"):
        small.search(query)


@pytest.mark.parametrize(
    "query",
    [
        'weights" OR title:"x',
        "weights AND",
        "NOT weights",
        "NEAR(weights tokens, 2)",
        "title : weights",
        "weig*",
        "^weights",
        "{title text} : weights",
        "-weights",
        "weights;drop table papers",
        "weights " * 5000,
        "weights + 1",
        "(weights",
        "weights\x00tokens",
        "weights'--",
    ],
)
def test_operators_of_the_index_are_only_words(small, query):
    assert set(keys(small.search(query))) <= {document.key for document in SHELF}


def test_terms_are_quoted_even_where_they_hold_quotes():
    index = FullText([columns(document) for document in SHELF])
    assert index.scores(['weights" OR "tokens']) == {}
    assert index.scores(["weights"]).keys() == {1, 3}
    assert index.scores([]) == {}
    index.close()


def test_words_that_nobody_has_find_nothing(small):
    assert small.search("zzyzx qwv").hits == ()


def test_lines_of_synonyms_are_told_apart():
    groups = tomllib.loads(SYNONYMS.read_text())["groups"]
    names = [group[0] for group in groups]
    assert len(set(names)) == len(names)
    assert all(len(set(group)) == len(group) >= 2 for group in groups)
    for group in groups:
        (name,) = {term for term in terms(group[0]) if term == CONCEPT + "_".join(words(group[0]))}
        assert all(name in terms(phrase) for phrase in group)


def test_a_column_counts_by_its_weight():
    there = Document(key="a", title="Marmalade", text="Nothing else.")
    here = Document(key="b", title="Nothing", text="Else.", claims=("marmalade 2",))
    filler = [Document(key=f"f{i}", title=f"Filler {i}", text="Other words.") for i in range(5)]
    found = Finder((here, there, *filler)).search("marmalade", kind="words")
    assert keys(found) == ["a", "b"]
    assert found.hits[0].words_ratio == 1.0 > found.hits[1].words_ratio


def test_likeness_says_which_words_made_it(small):
    found = small.search("averaging of neighbours", kind="likeness")
    assert keys(found)[0] == "slow-gossip"
    assert {"average", "neighbors"} <= set(found.hits[0].because)


def test_a_text_is_as_like_itself_as_can_be():
    shelf = [columns(document) for document in SHELF]
    likeness = TopicModel(shelf)
    for place in range(len(SHELF)):
        scores = likeness.scores_like(place)
        assert scores[place] == pytest.approx(1.0, abs=1e-5)
        assert scores.argmax() == place
    assert not likeness.scores(["zzyzx"]).any()


def test_documents_beyond_those_fitted_are_projected(monkeypatch):
    monkeypatch.setattr("orrery.evidence.find.likeness.MAX_FITTED", 3)
    shelf = (*SHELF[:3], Document(key="late", title="Weights on devices", text="Weights of jobs stay on a device."))
    assert keys(Finder(shelf).search("weights stay on the device", kind="likeness"))[:2] == ["warm-weights", "late"]


def test_only_some_documents_are_looked_at_where_asked(small):
    found = small.search("weights", among=[SHELF[3]])
    assert keys(found) == ["slow-gossip"]
    assert small.search("weights", among=[]).hits == ()


def test_related_papers_share_topics_and_techniques(finder):
    related = [hit.document.key for hit in finder.related("distserve", 8)]
    assert "splitwise" in related
    assert "distserve" not in related


def test_the_index_of_the_library_is_made_in_a_blink(finder):
    def once():
        start = time.process_time()
        FullText([columns(document) for document in finder.documents]).close()
        return time.process_time() - start

    assert min(once() for _ in range(3)) < 0.15


def test_what_shares_no_term_is_no_answer(finder):
    """Likeness alone finds papers without a shared term; beside words they are left out."""
    alike = finder.search("stragglers", limit=20, kind="likeness").hits
    assert any(hit.words_ratio == 0.0 for hit in alike)
    found = finder.search("stragglers", limit=20).hits
    assert found[0].document.key == "sequential-gradient-coding"
    assert all(hit.words_ratio > 0.0 for hit in found)


def test_a_selection_of_cache_entries_is_found_as_compression_of_the_cache(finder):
    assert "snapkv" in keys(finder.search("kv cache compression"))[:2]
