"""Texts, tokens and blocks, without a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.emulator.histogram import Histogram, token_buckets
from orrery.emulator.lag import Lag
from orrery.emulator.prefix import block_names, salted
from orrery.emulator.tokens import MAX_BYTES, number_of, piece_of, pieces, text_of
from orrery.emulator.words import LENGTH, VOCABULARY, Answer


@given(st.text(max_size=200))
def test_tokens_turn_back_into_the_text(text):
    found = pieces(text)
    assert all(1 <= len(p) <= MAX_BYTES for p in found)
    assert all(piece_of(number_of(p)) == p and number_of(p) < 2**53 for p in found)
    assert text_of([number_of(p) for p in found]) == text.encode(errors="replace").decode()


def test_english_has_about_four_tokens_for_three_words():
    text = (
        "The time to the first token grows with the length of the prompt, because all of its keys and values have to "
        "be computed before anything can be answered; afterwards every token takes about the same time as any other."
    )
    assert 1.2 < len(pieces(text)) / len(text.split()) < 1.6


@pytest.mark.parametrize("number", [0, 1, 2, 255, 512, 2**56, 2**60])
def test_numbers_of_no_token(number):
    with pytest.raises(ValueError, match="no token"):
        piece_of(number)


@given(st.integers(0, 2 * LENGTH), st.integers(1, 300))
def test_a_word_is_a_token(start, num_tokens):
    answer = Answer(start, num_tokens, "length")
    text = answer.text(0, num_tokens)
    assert len(text.split()) == len(pieces(text)) == num_tokens
    assert answer.tokens() == pieces(text)
    assert answer.before(num_tokens) == len(text)
    assert set(text.lower().split()) <= set(VOCABULARY.split())


@given(st.integers(0, LENGTH), st.integers(20, 200), st.data())
def test_an_answer_ends_at_the_earliest_stop(start, num_tokens, data):
    whole = Answer(start, num_tokens, "length").text(0, num_tokens)
    at = data.draw(st.integers(0, len(whole) - 4))
    stop = whole[at : at + 4]
    for keeps in (False, True):
        answer = Answer(start, num_tokens, "length")
        answer.stop_at([stop, "never said"], 0, keeps)
        end = whole.index(stop) + 4 * keeps
        assert answer.text(0, answer.num_tokens) == whole[:end]
        assert answer.reason == "stop"
        assert answer.before(answer.num_tokens - 1) < whole.index(stop) + 4 <= answer.before(answer.num_tokens)


def test_a_stop_that_is_never_said_changes_nothing():
    answer = Answer(5, 3 * LENGTH, "length")
    answer.stop_at(["zebra"], 0, False)
    assert (answer.num_tokens, answer.num_letters, answer.reason) == (3 * LENGTH, -1, "length")


def test_blocks_have_equal_names_where_all_before_is_equal():
    first, second = list(range(40)), [*range(32), 99, *range(33, 40)]
    a, b = block_names(first, 8, 0), block_names(second, 8, 0)
    assert len(a) == 5
    assert a[:4] == b[:4]
    assert a[4] != b[4]
    assert a[:2] + block_names(first[16:], 8, a[1]) == a
    assert not set(a) & set(block_names(first[8:], 8, 0)), "the same block elsewhere is another one"
    assert not set(a) & set(block_names(first, 8, salted("salt")))


def test_a_histogram_counts_up_to_each_end():
    found = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        found.add(value)
    assert found.cumulated == [("1.0", 2.0), ("2.0", 3.0), ("+Inf", 4.0)]
    assert found.total == 12.0
    assert token_buckets(60) == (1, 2, 5, 10, 20, 50)


def test_lateness_is_said_once_in_a_while(capsys):
    lag = Lag()

    def look(now_s, *lags_s):
        for lag_s in lags_s:
            lag.add(lag_s)
        lag.watch(now_s)
        return capsys.readouterr().err

    assert look(0.0, *[0.0099] * 200, 0.5) == "", "one of 201"
    assert "cannot keep pace: 1 of 100 tokens leaves more than 15 ms late" in look(2.0, *[0.018] * 200)
    assert look(4.0, *[0.018] * 200) == "", "it was just said"
    assert look(20.0) == ""
    assert look(22.0, *[0.0001] * 200, *[0.06] * 3).count("50 ms") == 1
    assert lag.histogram.cumulated[-1][1] == 804
