"""Speculation in ragged batches: all tokens come, shifts cost what they cost, and groups of one length avoid them."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.serving.ragged import Rounds, padded, pooled, realigned

ROUNDS = Rounds(
    draft_s=lambda n, length: 0.01,
    check_s=lambda n, length: 0.02,
    shift_s=lambda n, length: 0.003 * n,
    stack_s=lambda n, length: 0.001,
    draft_tokens=4,
    acceptance_frac=0.6,
    output_tokens=40,
)
PROMPTS = np.tile(np.array([20, 30, 40, 50]), 12)


@pytest.mark.parametrize("run", [lambda r, b: realigned(r, PROMPTS, b), lambda r, b: pooled(r, PROMPTS, b, 24)])
def test_every_answer_is_whole(run):
    for batch in (1, 3, 8):
        assert run(ROUNDS, batch).num_tokens == PROMPTS.size * 40


def test_alone_a_round_yields_what_independent_guesses_yield():
    long = replace(ROUNDS, output_tokens=4000)
    run = realigned(long, PROMPTS[:4], 1)
    assert run.num_tokens / run.num_rounds == pytest.approx((1 - 0.6**5) / 0.4, rel=0.03)


def test_a_realigned_batch_shifts_wherever_its_sequences_advanced_differently():
    run = realigned(ROUNDS, PROMPTS, 8)
    assert run.align_s == pytest.approx(run.num_shifts * 8 * 0.003)
    assert 0.7 * run.num_rounds < run.num_shifts < run.num_rounds
    assert run.align_overhead_frac == pytest.approx(run.align_s / (run.align_s + 0.01 * run.num_rounds))


def test_where_all_guesses_hold_the_ways_are_one():
    sure, alike = replace(ROUNDS, acceptance_frac=1.0), np.full(16, 30)
    runs = [realigned(sure, alike, 4), padded(sure, alike, 4), pooled(sure, alike, 4, 16)]
    assert {(run.total_s, run.num_rounds, run.align_s) for run in runs} == {(runs[0].total_s, 4 * 8, 0.0)}


def test_a_padded_tensor_grows_by_every_draft_token():
    """By hand: two sequences with 1 and 2 tokens taken of 2 + 1; the tensor is 3 columns longer, not 2."""
    half = replace(ROUNDS, draft_tokens=2, acceptance_frac=0.5, output_tokens=400)
    run = padded(half, np.full(2, 10), 2)
    for before, after in zip(run.rounds, run.rounds[1:], strict=False):
        if len(set(before.taken)) > 1 and all(before.taken) and all(after.taken):
            assert after.length == before.length + 3
    assert run.align_s == 0.0
    assert run.rounds[-1].length > realigned(half, np.full(2, 10), 2).rounds[-1].length


def test_positions_may_have_shares_of_their_own():
    one, many = replace(ROUNDS, acceptance_frac=0.6), replace(ROUNDS, acceptance_fracs=(0.6,) * 4)
    assert realigned(one, PROMPTS, 4).total_s == realigned(many, PROMPTS, 4).total_s
    with pytest.raises(ScenarioError, match="write one each"):
        replace(ROUNDS, acceptance_fracs=(0.6,))


def test_a_pool_groups_and_so_shifts_less():
    grouped, shifted = pooled(ROUNDS, PROMPTS, 4, 24), realigned(ROUNDS, PROMPTS, 4)
    assert 0 < grouped.num_grouped < grouped.num_rounds
    assert grouped.align_s / grouped.num_rounds < shifted.align_s / shifted.num_rounds
    assert grouped.tokens_per_s > shifted.tokens_per_s


def test_groups_of_eight_are_rarer_than_groups_of_two():
    shares = [(run := pooled(ROUNDS, PROMPTS, n, 24)).num_grouped / run.num_rounds for n in (2, 4, 8)]
    assert shares == sorted(shares, reverse=True)


def test_without_guesses_that_hold_all_advance_alike():
    run = pooled(replace(ROUNDS, acceptance_frac=0.0), np.full(16, 30), 4, 16)
    assert run.num_grouped == run.num_rounds


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ScenarioError, match="acceptance_frac"):
        replace(ROUNDS, acceptance_frac=1.5)
