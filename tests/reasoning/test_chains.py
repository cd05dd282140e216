"""Chains in step and on their own, and shared thinking."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.reasoning.amortise import SleepTimePass
from orrery.reasoning.chains import Models, Rounds, alone_s, draining_s, drawn_rounds, in_step_s, own_pace_s
from orrery.reasoning.paces import models_of, pace_of

FLAT = Models(draft=lambda n: 1.0, target=lambda n: 10.0, score_s_per_token=0.1)


def rounds(tokens, rejected=None):
    tokens = np.array(tokens, dtype=float)
    return Rounds(
        block_tokens=tokens, is_rejected=np.zeros(tokens.shape, bool) if rejected is None else np.array(rejected)
    )


def test_draining_gets_faster_as_sequences_end():
    assert draining_s(np.array([10.0, 30.0]), lambda n: float(n)) == 10 * 2 + 20 * 1
    assert draining_s(np.array([]), lambda n: 1.0) == 0.0


def test_one_chain_waits_for_nobody():
    one = rounds([[10, 20]], [[False, True]])
    assert in_step_s(one, FLAT) == pytest.approx(30 + 3 + 200)
    assert own_pace_s(one, FLAT) == pytest.approx(in_step_s(one, FLAT))
    assert alone_s(one, FLAT) == 300


def test_in_step_every_round_takes_its_slowest_and_on_their_own_the_slowest_chain():
    crossed = rounds([[10, 90], [90, 10]])
    free = replace(FLAT, score_s_per_token=1e-9)
    assert in_step_s(crossed, free) == pytest.approx(180)
    assert own_pace_s(crossed, free) == pytest.approx(100)


def test_waiting_grows_with_chains_and_with_their_spread():
    def ratio(chains, spread):
        drawn = drawn_rounds(chains, 8, 100.0, spread, 0.3, np.random.default_rng(0))
        return in_step_s(drawn, FLAT) / own_pace_s(drawn, FLAT)

    assert ratio(1, 1.0) == pytest.approx(1.0)
    assert ratio(32, 1.0) > ratio(4, 1.0) > 1.1
    assert ratio(32, 1.0) > ratio(32, 0.2)


def test_drawn_blocks_have_their_mean_and_their_rejections():
    drawn = drawn_rounds(200, 50, 500.0, 1.0, 0.4, np.random.default_rng(0))
    assert drawn.block_tokens.mean() == pytest.approx(500, rel=0.05)
    assert drawn.is_rejected.mean() == pytest.approx(0.4, abs=0.02)
    assert drawn.written_tokens == drawn.block_tokens.sum()


def test_paces_come_from_the_deployments(deploy):
    small, large = deploy("meta-llama/Llama-3.1-8B"), deploy(tp=4)
    found = models_of(small, large, context_tokens=2000, block_tokens=500, most_sequences=32)
    assert found.target(1) > 2 * found.draft(1)
    assert found.draft(1) < found.draft(32) < 32 * found.draft(1)
    assert found.draft(99) == found.draft(32) == pace_of(small, 2000, 32)(32)
    assert 0 < found.score_s_per_token < found.target(1) / 50


def test_thinking_beforehand_by_hand():
    sleep = SleepTimePass(thought_tokens=1000, short_tokens=100, plain_tokens=500, online_price_ratio=10)
    assert (sleep.plain_cost_tokens, sleep.cost_tokens(1), sleep.cost_tokens(10)) == (5000, 2000, 1100)
    assert sleep.even_questions == 0.25
    assert replace(sleep, plain_tokens=100.05).even_questions == pytest.approx(2000)  # half a token is something
    assert replace(sleep, plain_tokens=100).even_questions == float("inf")
    half = replace(sleep, profiting_frac=0.5)
    assert half.cost_tokens(1) == 1000 + 10 * 300
    assert replace(sleep, profiting_frac=0.0).even_questions == float("inf")
    cheap = replace(sleep, online_price_ratio=1.0)
    assert cheap.cost_tokens(2) > cheap.plain_cost_tokens > cheap.cost_tokens(3)
    with pytest.raises(ScenarioError, match="profiting_frac = 2"):
        replace(sleep, profiting_frac=2.0)
