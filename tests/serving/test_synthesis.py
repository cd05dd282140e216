"""Synthesised traffic: lengths keep their mean, contexts grow as they must, two designs see the same requests."""

import dataclasses
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.serving.synthesis import (
    Agents,
    Conversations,
    Length,
    Prefixes,
    agent_loops,
    conversations,
    fit,
    independent,
    repeated,
    resampled,
    shared_prefixes,
)
from orrery.serving.synthesis.blocks import ranges
from orrery.serving.synthesis.fitted import rank_correlation
from orrery.serving.synthesis.lengths import draw, fit_lognormal


def ids_of(run, index):
    return run.prefix_ids[run.prefix_start[index] : run.prefix_start[index + 1]]


@pytest.mark.parametrize("law", ["normal", "lognormal"])
@pytest.mark.parametrize(("mean", "std", "most"), [(300, 100, 10**8), (20, 60, 10**8), (3, 5, 50), (900, 800, 1000)])
def test_clipping_keeps_the_mean(law, mean, std, most):
    length = Length(mean_tokens=mean, std_tokens=std, law=law, most_tokens=most)
    tokens = draw(length, 400_000, stream(1, "x"))
    assert tokens.min() >= 1
    assert tokens.max() <= most
    assert tokens.mean() == pytest.approx(mean, rel=0.03)
    if std < mean / 2 and most > 1e6:
        assert tokens.std() == pytest.approx(std, rel=0.02)


def test_uniform_is_the_range_of_the_load_generator():
    tokens = draw(Length(mean_tokens=1024, law="uniform", range_ratio=0.25), 100_000, stream(2, "x"))
    assert (tokens.min(), tokens.max()) == (768, 1280)
    assert tokens.mean() == pytest.approx(1024, rel=0.005)
    assert set(draw(Length(mean_tokens=7, law="uniform"), 9, stream(0, "x"))) == {7}
    assert set(draw(Length(mean_tokens=7, law="constant"), 9, stream(0, "x"))) == {7}


@pytest.mark.parametrize("law", ["normal", "lognormal"])
@pytest.mark.parametrize("std", [0.0, 5e-324, 2e-240, 1e-10])
def test_no_spread_to_speak_of_is_none(law, std):
    assert set(draw(Length(mean_tokens=2, std_tokens=std, law=law, most_tokens=3), 20, stream(0, "x"))) == {2}


@settings(max_examples=60, deadline=None)
@given(
    law=st.sampled_from(["constant", "uniform", "normal", "lognormal"]),
    mean=st.floats(1, 1e7),
    std=st.floats(0, 1e5),
    ratio=st.floats(0, 0.999),
    most=st.integers(1, 10**8),
)
def test_any_length_is_whole_and_within_its_bounds(law, mean, std, ratio, most):
    mean = min(mean, float(most))
    length = Length(mean_tokens=mean, std_tokens=min(std, 100 * mean), law=law, range_ratio=ratio, most_tokens=most)
    tokens = draw(length, 50, stream(0, "x"))
    assert tokens.dtype == np.int64
    assert ((tokens >= 1) & (tokens <= most)).all()


@pytest.mark.parametrize(
    ("says", "given"),
    [
        ("mean: got 0", {"mean_tokens": 0}),
        ("mean: got nan", {"mean_tokens": float("nan")}),
        ("mean: got 9", {"mean_tokens": 9, "most_tokens": 5}),
        ("standard deviation: got -1", {"mean_tokens": 9, "std_tokens": -1}),
        ("range ratio: got 1", {"mean_tokens": 9, "range_ratio": 1.0}),
        ("Did you mean 'lognormal'", {"mean_tokens": 9, "law": "lognormall"}),
    ],
)
def test_a_senseless_length_is_refused(says, given):
    with pytest.raises(ScenarioError, match=says):
        Length(**given)


def test_a_lognormal_is_found_again():
    mu, sigma = 5.0, 0.8
    quantiles = {0.5: np.exp(mu), 0.9: np.exp(mu + 1.2815516 * sigma), 0.99: np.exp(mu + 2.3263479 * sigma)}
    assert fit_lognormal(quantiles, float(np.exp(mu + sigma**2 / 2))) == pytest.approx((mu, sigma), abs=2e-3)


def test_two_designs_see_the_same_traffic():
    """Another rate or law leaves the lengths alone; more requests leave the first ones alone."""
    lengths = {"input": Length(mean_tokens=300, std_tokens=300), "output": Length(mean_tokens=90, std_tokens=50)}
    base = independent(500, 2.0, 1, **lengths)
    faster = independent(500, 8.0, 1, **lengths)
    bursty = independent(500, 2.0, 1, law="gamma", burstiness=0.2, **lengths)
    longer = independent(900, 2.0, 1, **lengths)
    for other in (faster, bursty, longer):
        assert np.array_equal(base.input_tokens, other.input_tokens[:500])
        assert np.array_equal(base.output_tokens, other.output_tokens[:500])
    assert base.arrive_s == pytest.approx(4 * faster.arrive_s)
    assert base.arrive_s == pytest.approx(longer.arrive_s[:500])


@pytest.mark.parametrize("make", [conversations, agent_loops])
def test_two_designs_see_the_same_sessions(make):
    base, faster, longer = make(300, 2.0, 1), make(300, 8.0, 1), make(700, 2.0, 1)
    assert base.arrive_s[base.after >= 0] == pytest.approx(faster.arrive_s[base.after >= 0])
    assert base.arrive_s[base.after < 0] == pytest.approx(4 * faster.arrive_s[base.after < 0])
    for name in ("input_tokens", "output_tokens", "session", "after"):
        assert np.array_equal(getattr(base, name), getattr(faster, name))
        assert np.array_equal(getattr(base, name), getattr(longer, name)[:300])


def test_resampling_keeps_what_goes_with_what():
    inputs, outputs = np.array([10, 200, 3000]), np.array([1, 2, 3])
    made = resampled(5000, 1.0, 0, input_tokens=inputs, output_tokens=outputs)
    assert set(zip(made.input_tokens.tolist(), made.output_tokens.tolist(), strict=True)) == {
        (10, 1),
        (200, 2),
        (3000, 3),
    }
    assert np.bincount(made.output_tokens)[1:].min() > 1500


def test_a_fit_finds_what_traffic_was_made_from():
    z = stream(0, "z").standard_normal((2, 60_000))
    inputs = np.exp(6.0 + 0.9 * z[0]).round().astype(np.int64) + 1
    outputs = np.exp(5.0 + 0.5 * (-0.6 * z[0] + 0.8 * z[1])).round().astype(np.int64) + 1
    at = np.cumsum(stream(0, "g").gamma(0.25, 2.0, 60_000))
    found = fit(at, inputs, outputs)
    assert found.interarrival_cv_ratio == pytest.approx(2.0, rel=0.03)
    assert found.correlation_ratio == pytest.approx(-0.6, abs=0.02)
    made = found.requests(60_000, 7.0, 3)
    assert 60_000 / made.arrive_s[-1] == pytest.approx(7.0)
    assert made.input_tokens.mean() == pytest.approx(inputs.mean(), rel=0.02)
    assert np.median(made.output_tokens) == pytest.approx(np.median(outputs), rel=0.03)
    assert rank_correlation(made.input_tokens, made.output_tokens) == pytest.approx(
        rank_correlation(inputs, outputs), abs=0.02
    )


def test_a_fit_of_constant_lengths_and_of_too_little():
    same = np.full(10, 5)
    made = fit(np.arange(10.0), same, same).requests(20)
    assert set(made.input_tokens) == {5}
    assert made.arrive_s == pytest.approx(np.arange(1.0, 21.0))
    with pytest.raises(ScenarioError, match="write a rate"):
        fit(np.zeros(10), same, same).requests(5)
    with pytest.raises(ScenarioError, match="got 1 requests"):
        fit(np.zeros(1), same[:1], same[:1])


def test_a_conversation_grows_by_what_was_said():
    like = Conversations(num_turns=3, turns_law="constant", system_tokens=40, block_tokens=16)
    run = conversations(9, 1.0, 4, like)
    assert run.after.tolist() == [-1, 0, 1, -1, 3, 4, -1, 6, 7]
    assert run.session.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    roots = run.arrive_s[run.after < 0]
    assert (np.diff(roots) >= 0).all()
    for i in range(9):
        new = run.input_tokens[i] - (run.input_tokens[i - 1] + run.output_tokens[i - 1] if i % 3 else 40)
        assert new >= 1
        ids = ids_of(run, i)
        assert ids.size == (run.input_tokens[i] + run.output_tokens[i]) // 16
        assert ids[:2].tolist() == [0, 1]  # two whole blocks of the system prompt, the third is the session's own
        if i % 3:
            before = ids_of(run, i - 1)
            assert np.array_equal(ids[: before.size], before)
    assert not set(ids_of(run, 2)[2:]) & set(ids_of(run, 5)[2:])
    assert np.array_equal(np.unique(run.prefix_ids), np.arange(run.prefix_ids.max() + 1))


def test_conversations_have_the_turns_pauses_and_rate_asked_for():
    run = conversations(60_000, 5.0, 0, Conversations(num_turns=6, think_s=20.0, think_cv_ratio=0.5, block_tokens=512))
    assert run.count == 60_000
    roots = run.after < 0
    assert run.count / roots.sum() == pytest.approx(6.0, rel=0.03)
    pauses = run.arrive_s[~roots]
    assert pauses.mean() == pytest.approx(20.0, rel=0.02)
    assert pauses.std() / pauses.mean() == pytest.approx(0.5, rel=0.03)
    assert run.count / run.arrive_s[roots][-1] == pytest.approx(5.0, rel=0.03)


def test_a_conversation_ends_before_it_outgrows_the_context():
    like = Conversations(num_turns=20, context_tokens=1000, system_tokens=100, think_law="exponential")
    run = conversations(2000, 5.0, 0, like)
    assert run.count == 2000
    assert (run.input_tokens + run.output_tokens <= 1000).all()
    follows = run.after >= 0
    assert (run.after[follows] == np.flatnonzero(follows) - 1).all()
    assert (run.session[follows] == run.session[run.after[follows]]).all()
    with pytest.raises(ScenarioError, match="write a longer context"):
        conversations(10, 1.0, 0, dataclasses.replace(like, context_tokens=50))


def test_an_agent_calls_its_tools_and_then_answers():
    like = Agents(
        num_calls=3,
        calls_law="constant",
        tool_s=0.5,
        tool_law="constant",
        system_tokens=64,
        task=Length(mean_tokens=500),
        result=Length(mean_tokens=90),
        call=Length(mean_tokens=20),
        answer=Length(mean_tokens=300),
    )
    run = agent_loops(8, 1.0, 0, like)
    assert run.output_tokens.tolist() == [20, 20, 20, 300] * 2
    assert run.input_tokens.tolist() == [564, 674, 784, 894] * 2
    assert run.arrive_s[1:4].tolist() == [0.5] * 3


def test_groups_share_their_prefix_and_nothing_else():
    like = Prefixes(num_prefixes=4, prefix_tokens=64, suffix=Length(mean_tokens=30), answer=Length(mean_tokens=10))
    run = shared_prefixes(18, 1.0, 0, like)
    group = np.array([ids_of(run, i)[0] // 4 for i in range(18)])
    assert sorted(np.bincount(group)) == [4, 4, 5, 5]
    assert np.unique(group[:4]).size == 4
    for i in range(18):
        ids = ids_of(run, i)
        assert ids.size == (64 + 30 + 10) // 16
        assert ids[:4].tolist() == list(range(4 * group[i], 4 * group[i] + 4))
    own = np.concatenate([ids_of(run, i)[4:] for i in range(18)])
    assert np.unique(own).size == own.size
    assert np.array_equal(np.unique(run.prefix_ids), np.arange(run.prefix_ids.max() + 1))
    few = shared_prefixes(2, 1.0, 0, like)
    assert np.array_equal(np.unique(few.prefix_ids), np.arange(few.prefix_ids.max() + 1))


def test_prompts_that_are_asked_in_turn_share_all_blocks_before_their_last_token():
    """Worked out by hand: of 65 tokens in blocks of 16, four blocks end before the last token; of 64, only three."""
    plain = independent(7, 1.0, 0, input=Length(mean_tokens=65), output=Length(mean_tokens=10))
    run = repeated(plain, 3, 16)
    assert [ids_of(run, i).tolist() for i in range(4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [0, 1, 2, 3]]
    assert np.array_equal(run.arrive_s, plain.arrive_s)
    shorter = dataclasses.replace(plain, input_tokens=np.array([64, 65, 64, 65, 64, 65, 64]))
    assert [ids_of(repeated(shorter, 2, 16), i).size for i in range(4)] == [3, 4, 3, 4]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=20))
def test_ranges_are_those_of_a_loop(pairs):
    first, length = (np.array([p[k] for p in pairs], dtype=np.int64) for k in (0, 1))
    assert ranges(first, length).tolist() == [a + k for a, n in pairs for k in range(n)]


@pytest.mark.parametrize(
    ("says", "make"),
    [
        ("turns: got a mean of 0", lambda: conversations(5, 1.0, 0, Conversations(num_turns=0))),
        ("turns: there is no law", lambda: conversations(5, 1.0, 0, Conversations(turns_law="zipf"))),
        ("pauses: got a mean of -1", lambda: conversations(5, 1.0, 0, Conversations(think_s=-1))),
        ("pauses: there is no law", lambda: agent_loops(5, 1.0, 0, Agents(tool_law="zipf"))),
        ("block_tokens: got 0", lambda: conversations(5, 1.0, 0, Conversations(block_tokens=0))),
        ("count: got 0", lambda: conversations(0, 1.0)),
        ("num_prefixes: got 0", lambda: shared_prefixes(5, 1.0, 0, Prefixes(num_prefixes=0))),
        ("block_tokens: got 1: .* write [2-9]", lambda: shared_prefixes(10**6, 1.0, 0, Prefixes(block_tokens=1))),
    ],
)
def test_senseless_sessions_are_refused(says, make):
    with pytest.raises(ScenarioError, match=says):
        make()


def test_a_hundred_thousand_turns_are_quick():
    start = time.process_time()
    conversations(100_000, 10.0)
    assert time.process_time() - start < 1.0
