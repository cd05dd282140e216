"""BM25 against sums worked out by hand, and what it must do in the limit."""

import math

import pytest

from orrery.evidence.find.bm25 import K1, Bm25

PAIRS = [{"alpha": 1.0, "beta": 1.0}, {"alpha": 1.0, "gamma": 1.0}, {"delta": 1.0, "epsilon": 1.0}]
"""Documents of one length, so that length says nothing: a word that stands once counts (k1 + 1) / (1 + k1) = 1."""

IN_TWO, IN_ONE = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)
"""Rarity of a word in two and in one of three documents."""


def test_a_word_counts_its_rarity_times_the_log_of_its_hits_over_the_root_of_the_length():
    model = Bm25(PAIRS)
    assert model.scores(["alpha"]) == pytest.approx([IN_TWO * math.log(2)] * 2 + [0.0])
    assert model.scores(["beta"]) == pytest.approx([IN_ONE * math.log(2), 0.0, 0.0])
    both = [(IN_TWO * math.log(3) + IN_ONE * math.log(2)) / math.sqrt(3), IN_TWO * math.log(3) / math.sqrt(3), 0.0]
    assert model.scores(["alpha", "beta", "alpha"]) == pytest.approx(both)


def test_an_unknown_word_only_lengthens_the_query():
    model = Bm25(PAIRS)
    assert not model.scores(["zzyzx"]).any()
    assert not model.scores([]).any()
    assert model.scores(["beta", "zzyzx"])[0] == pytest.approx(model.scores(["beta"])[0] / math.sqrt(2))


def test_further_hits_add_less_and_long_documents_need_more():
    lone = Bm25([{"alpha": 1.0}, {"alpha": 100.0}, {"beta": 1.0}]).scores(["alpha"])
    assert lone[0] < lone[1] < (K1 + 1.0) * IN_TWO * math.log(2)
    short, long, _ = Bm25([{"alpha": 1.0}, {"alpha": 1.0, "beta": 9.0}, {"gamma": 1.0}]).scores(["alpha"])
    assert short > long > 0.0


def test_weights_of_query_words_scale_rarities():
    model = Bm25(PAIRS, {"alpha": 1.0, "beta": 4.0})
    plain = Bm25(PAIRS)
    assert model.scores(["alpha"]) == pytest.approx(plain.scores(["alpha"]) / 4.0)
    assert model.scores(["beta"]) == pytest.approx(plain.scores(["beta"]))
    assert model.scores(["gamma"]) == pytest.approx(plain.scores(["gamma"]))  # unknown ones are as rare as the rarest


def test_inflections_of_a_word_are_one_stem():
    assert Bm25(PAIRS).scores(["alphas"]) == pytest.approx(Bm25(PAIRS).scores(["alpha"]))


def test_no_documents():
    assert Bm25([]).scores(["alpha"]).shape == (0,)
