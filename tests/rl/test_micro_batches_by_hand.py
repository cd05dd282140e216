"""Micro-batches, periods and partly written responses at their bounds, each worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.rl.lengths import lengths_of
from orrery.rl.pace import CLOSE, least_period_s
from orrery.rl.packing import Packed, packed, padded
from orrery.rl.rollout import _Flight, _written_at
from orrery.serving.synthesis.lengths import Length


def test_packed_over_updates_and_ranks():
    """Updates (4 4 4 4) and (8 8 8 8), each over two ranks, room 8: 1 and 2 micro-batches, 3 / 2 -> 2 an update.

    8 sequences over 2 x 2 x 2 micro-batches are one in each, of 48 / 8 = 6 tokens.
    """
    found = packed(np.array([4, 4, 4, 4, 8, 8, 8, 8]), dp=2, num_updates=2, room_tokens=8)
    assert found == Packed(seq_len=6, micro_batch=1, num_micro_batches=2)
    assert found.tokens == 12


def test_one_full_micro_batch_holds_all():
    """Longest first: 5, 2, 1 fill a room of 8 to the last token, so three sequences of 8 / 3 tokens share one."""
    found = packed(np.array([1, 5, 2]), dp=1, num_updates=1, room_tokens=8)
    assert found == Packed(seq_len=3, micro_batch=3, num_micro_batches=1)


def test_longest_first_wastes_least():
    """6 5 3 2 fit two rooms of 8 (6 + 2, 5 + 3); taken as they come, 2 3 5 6 would need three."""
    assert packed(np.array([2, 3, 5, 6]), dp=1, num_updates=1, room_tokens=8).num_micro_batches == 2


def test_a_sequence_longer_than_the_room_is_alone():
    """12 has a micro-batch of its own and leaves no room in it; 8 another one."""
    assert packed(np.array([12, 8]), dp=1, num_updates=1, room_tokens=8).num_micro_batches == 2


def test_padded_rounds_ranks_and_micro_batches_up():
    """Ten over 2 updates x 2 ranks are 3 at the fullest rank; by twos that is two micro-batches."""
    found = padded(np.array([7, *[1] * 9]), dp=2, num_updates=2, micro_batch=2)
    assert found == Packed(seq_len=7, micro_batch=2, num_micro_batches=2)
    assert isinstance(found.num_micro_batches, int)
    assert padded(np.array([7, 1]), dp=1, num_updates=1, micro_batch=8).micro_batch == 2


def test_the_period_is_searched_to_a_hundredth():
    """Latency 200 - P with T = 10, K = 1: 200 - P <= 2 P - 10 from P = 70 on. The search begins at (110 + 10) / 2."""
    tried: list[float] = []

    def latency_s(period_s: float) -> float:
        tried.append(period_s)
        return 200.0 - period_s

    found = least_period_s(latency_s, 10.0, 1, 110.0)
    assert 70.0 <= found <= 70.0 * (1.0 + 2.0 * CLOSE)
    assert CLOSE <= 0.01
    assert tried[:2] == [60.0, 90.0]  # the least that could do, then half way to 110 + 10
    assert tried[-1] == found  # what was run last is what the caller reports


def test_tokens_written_when_a_step_stops():
    """Stopped at 5 s. Done by 4 s: all 10. From 1 s to 9 s: the first token and half of the other ten, 6. Begun at
    6 s: none. One that had 4 of 11 before, from 3 s to 7 s: 4 + 1 + half of six = 8. One that ends at 5 s: all 3.
    One whose first token comes at 5 s: 1. A whole response counts as before."""
    response = np.array([[10, 11, 5], [11, 3, 9], [7, 7, 7]])
    written = np.array([[0, 0, 0], [4, 0, 0], [7, 7, 7]])
    flight = _Flight(prompt=np.ones_like(response), response=response, written=written)
    found = SimpleNamespace(
        first_token_s=np.array([1.0, 1.0, 6.0, 3.0, 2.0, 5.0]), finish_s=np.array([4.0, 9.0, 8.0, 7.0, 5.0, 9.0])
    )
    assert _written_at(flight, found, 5.0).tolist() == [[10, 6, 0], [8, 3, 1], [7, 7, 7]]


def test_what_has_not_ended_lacks_a_token_at_least():
    """Nearly done, 2.9 of 3 tokens are 2; of one token none is written before it ends."""
    response = np.array([[3, 1, 5]])
    flight = _Flight(prompt=np.ones_like(response), response=response, written=np.zeros_like(response))
    found = SimpleNamespace(first_token_s=np.array([0.0, 0.0, 2.0]), finish_s=np.array([10.0, 10.0, 6.0]))
    assert _written_at(flight, found, 9.5).tolist() == [[2, 0, 5]]
    assert _written_at(flight, found, 5.9).tolist() == [[2, 0, 4]]


def test_tokens_of_an_update_are_those_of_all_micro_batches():
    assert Packed(seq_len=100, micro_batch=3, num_micro_batches=4).tokens == 1200


@pytest.mark.parametrize("response", [Length(mean_tokens=300, law="constant"), Length(mean_tokens=300, std_tokens=0.0)])
def test_lengths_without_spread_are_their_mean(response):
    found = lengths_of(Length(mean_tokens=20, law="constant"), response, 3, 2, seed=0)
    assert found.response.tolist() == [300] * 6
    assert found.total.tolist() == [320] * 6
