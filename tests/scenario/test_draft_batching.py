"""``draft_batching``: batches of one padded tensor in simulate."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.simulate import SimulatedAnswer, simulate
from orrery.serving.ragged import WAYS

BASE = {
    "model": "llama-3.1-8b",
    "device": "a100-sxm-80gb",
    "engine": "transformers",
    "input_tokens": 200,
    "output_tokens": 64,
    "num_requests": 24,
    "concurrency": 8,
    "draft_model": "llama-3.2-1b",
    "draft_tokens": 4,
}


def served(**more) -> SimulatedAnswer:
    found = simulate(**BASE | more)
    assert isinstance(found, SimulatedAnswer)
    return found


def throughputs(**more):
    return {way: served(draft_batching=way, **more).summary.output_tokens_per_s for way in WAYS}


def test_sure_drafts_make_the_ways_one():
    assert len(set(throughputs(acceptance=1.0, lengths="constant").values())) == 1


def test_alone_nothing_is_aligned():
    found = [served(draft_batching=way, acceptance=0.7, concurrency=1).simulated for way in WAYS]
    assert [run.counters["align_s"] for run in found] == [0.0, 0.0, 0.0]
    assert max(run.duration_s for run in found) == pytest.approx(min(run.duration_s for run in found), rel=1e-12)


def test_drafts_that_differ_cost_alignment():
    answer = served(draft_batching="realign", acceptance=0.7)
    found = answer.simulated.counters
    share = f"{percent(found['align_overhead_frac'])} of the time beyond checking goes into aligning"
    assert [n for n in answer.notes if n.startswith("draft_batching:") and share in n]
    assert 0.2 < found["align_overhead_frac"] < 0.8
    assert found["shifted_rounds"] > 0.5 * found["rounds"]
    assert served(draft_batching="padded", acceptance=0.7).simulated.counters["align_s"] == 0.0


def test_drafts_that_never_hold_only_cost():
    none, some = (served(draft_batching="realign", acceptance=a).summary.output_tokens_per_s for a in (0.0, 0.7))
    assert none < some


@given(
    way=st.sampled_from(WAYS),
    acceptance=st.floats(0.0, 1.0),
    concurrency=st.integers(1, 12),
    drafts=st.integers(1, 6),
    seed=st.integers(0, 50),
)
@settings(max_examples=25, deadline=None)
def test_every_run_adds_up(way, acceptance, concurrency, drafts, seed):
    found = served(
        draft_batching=way, acceptance=acceptance, concurrency=concurrency, draft_tokens=drafts, seed=seed
    ).simulated
    spent = sum(found.counters[name] for name in ("draft_s", "verify_s", "align_s", "prompt_s"))
    assert found.duration_s == pytest.approx(spent)
    assert (found.first_token_s <= found.finish_s).all()
    assert (found.arrive_s <= found.first_token_s).all()
    tokens = found.timeline[:, 3].sum() + found.requests.count  # decode_tokens, and each prompt's first
    assert tokens == pytest.approx(found.requests.output_tokens.sum())
    assert found.gap_sum_s == pytest.approx((found.finish_s - found.first_token_s).sum())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"draft_batching": "shift", "acceptance": 0.7}, "write one of realign, pool, padded"),
        ({"draft_batching": "pool", "acceptance": 0.7, "concurrency": None, "rate": 2.0}, "all there"),
        ({"draft_batching": "pool", "draft_model": None, "draft_tokens": None}, "nothing is drafted"),
        ({"draft_pool": 12, "acceptance": 0.7}, "no sequences are pooled"),
        ({"draft_batching": "padded", "draft_pool": 12, "acceptance": 0.7}, "has no pool"),
        ({"draft_batching": "padded", "replicas": 2, "acceptance": 0.7}, "one replica"),
    ],
)
def test_what_makes_no_sense_is_refused(more, words):
    with pytest.raises(ScenarioError, match=words):
        served(**more)


def test_a_tensor_too_long_is_infeasible_with_numbers():
    found = simulate(**BASE | {"draft_batching": "padded", "acceptance": 0.1, "concurrency": 24, "output_tokens": 9000})
    assert isinstance(found, InfeasibleAnswer)
    assert "padded cache of 24 sequences" in str(found.infeasible)
