"""Micro-batches of an update, packed and padded, by hand; and the long tail of lengths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.rl.lengths import PROMPT_SHARE, lengths_of
from orrery.rl.packing import packed, padded
from orrery.serving.synthesis.lengths import Length


def test_first_fit_by_hand():
    """5 + 3, 5 + 3, 4: three micro-batches of 8 tokens' room, 20 tokens in five sequences."""
    found = packed(np.array([5, 3, 5, 3, 4]), dp=1, num_updates=1, room_tokens=8)
    assert (found.num_micro_batches, found.micro_batch) == (3, 2)
    assert found.seq_len == round(20 / 3 / 2)


def test_the_rank_with_most_micro_batches_decides():
    """Rank 0 has 8 + 8, rank 1 has 1 + 1."""
    assert packed(np.array([8, 1, 8, 1]), dp=2, num_updates=1, room_tokens=8).num_micro_batches == 2


def test_padded_to_the_longest():
    found = padded(np.array([8, 1, 8, 1]), dp=2, num_updates=1, micro_batch=1)
    assert (found.seq_len, found.micro_batch, found.num_micro_batches, found.tokens) == (8, 1, 2, 16)


@given(st.lists(st.integers(1, 100), min_size=8, max_size=200), st.integers(1, 4), st.integers(1, 2))
def test_nothing_is_lost_and_little_is_wasted(tokens, dp, updates):
    found = packed(np.array(tokens), dp=dp, num_updates=updates, room_tokens=100)
    least = sum(tokens) / 100 / dp / updates
    assert found.num_micro_batches >= least - 1e-9
    assert found.num_micro_batches <= -(-len(tokens) // (dp * updates)) + 1


def test_lengths_keep_their_mean_and_are_cut():
    found = lengths_of(
        Length(mean_tokens=100, law="constant"),
        Length(mean_tokens=1000, std_tokens=1000, most_tokens=4096),
        2000,
        8,
        seed=0,
    )
    assert found.response.mean() == pytest.approx(1000, rel=0.03)
    assert found.response.max() == 4096
    assert found.response.min() >= 1
    assert (found.total == found.prompt + found.response).all()


def test_responses_to_one_prompt_are_alike():
    """The share of log length's variance that lies between prompts is what it was set to."""
    found = lengths_of(
        Length(mean_tokens=100, law="constant"),
        Length(mean_tokens=1000, std_tokens=800, most_tokens=10**7),
        4000,
        16,
        seed=1,
    )
    logs = np.log(found.response.reshape(4000, 16))
    between = logs.mean(axis=1).var() - logs.var(axis=1, ddof=1).mean() / 16
    assert between / logs.var() == pytest.approx(PROMPT_SHARE, abs=0.03)


def test_other_steps_draw_other_lengths():
    like = Length(mean_tokens=100, law="constant"), Length(mean_tokens=500, std_tokens=200)
    one, other = (lengths_of(*like, 10, 4, seed=0, batch=n).response for n in (0, 1))
    assert (one != other).any()
    assert (one == lengths_of(*like, 10, 4, seed=0).response).all()
