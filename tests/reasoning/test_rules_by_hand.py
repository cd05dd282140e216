"""Rules of votes, chains, beams and trees from small cases: two wrong answers, a frontier of two, a beam of one."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Cache, Memory
from orrery.reasoning import cost, paces
from orrery.reasoning.budget import Split, growth
from orrery.reasoning.by_difficulty import Law
from orrery.reasoning.chains import Models, Rounds, draining_s, drawn_rounds, own_pace_s
from orrery.reasoning.conformal import calibrated
from orrery.reasoning.graph import Call, Problem
from orrery.reasoning.techniques import beam_search
from orrery.reasoning.tree.grown import Front
from orrery.reasoning.tree.techniques.shared_cache_tree import Knobs, kept_of
from orrery.reasoning.vote import WrongAnswers, _winning


def split(num_solutions, num_checks, answers_ratio):
    return Split(num_solutions=num_solutions, num_checks=num_checks, answers_ratio=answers_ratio, right_frac=0.5)


def test_a_frontier_of_two_splits_has_exponents():
    """From 2 to 8 answers' worth of tokens solutions go from 1 to 4, as the cost, and checks from 1 to 2, its root."""
    found = growth([split(1, 1, 2.0), split(4, 2, 8.0)])
    assert found == {"solutions": pytest.approx(1.0), "checks": pytest.approx(0.5)}
    assert growth([split(1, 1, 2.0)]) == {}


def test_chains_drain_from_the_shortest_on():
    """Three chains write one token in 3 s, the two that are left one and a half more in 3 s; an empty one does not
    count, and none are left for a last step."""
    asked = []

    def pace(count):
        asked.append(count)
        return float(count)

    assert draining_s(np.array([2.5, 0.0, 1.0, 2.5]), pace) == 1 * 3 + 1.5 * 2
    assert asked == [3, 2]


def test_two_wrong_answers_share_the_other_votes():
    """Of three votes one is right: the two wrong ones differ in half of all draws, and then one in three lots is won.
    Two right ones always win, none never."""
    found = _winning(3, WrongAnswers(num_answers=2, rank_ratio=0.0), np.random.default_rng(0))
    assert found[[0, 2, 3]].tolist() == [0.0, 1.0, 1.0]
    assert found[1] == pytest.approx(1 / 6, abs=0.01)
    alone = _winning(3, WrongAnswers(num_answers=1), np.random.default_rng(0))
    assert alone.tolist() == [0.0, 0.0, 1.0, 1.0]


def test_a_beam_of_one_is_a_plain_answer():
    calls = list(beam_search.calls(Problem(prompt_tokens=10.0, answer_tokens=8.0), beam_search.Knobs(width=1)))
    steps = [call for call in calls if call.name.startswith("step")]
    assert sum(call.written_tokens for call in steps) == 8.0
    assert [call.count for call in steps] == [1] * 8
    with pytest.raises(ScenarioError, match="width"):
        beam_search.Knobs(width=0)


@pytest.mark.parametrize(("ratio", "kept"), [(1.0, [True, False]), (2.0, [True, True])])
def test_an_idea_is_kept_where_its_prize_pays_for_its_nodes(ratio, kept):
    """Worth 0.9 and 0.1, each with a node of its own: a candidate and its node cost 2 / 4 each. The second idea costs
    1 - 0.1, and its prize is half of the ratio."""
    front = Front(
        scores_frac=np.array([1.0, 1.0 - 0.2 * np.log(9.0)]),
        paths=np.array([[0], [1]]),
        ideas=np.array([0, 1]),
        branches=np.array([0, 1]),
    )
    knobs = Knobs(score_temperature_ratio=0.2, node_price_ratio=2.0, idea_price_ratio=ratio)
    assert kept_of(front, 10, knobs).tolist() == kept


def memory(kv_bytes=100.0, kv_tokens=50.0):
    zero = dict.fromkeys(
        ("capacity_bytes", "usable_bytes", "weights_bytes", "activation_bytes", "communication_bytes", "context_bytes"),
        0.0,
    )
    cache = Cache(bytes_per_token=2.0, bytes_per_sequence=0.0, windows=())
    return Memory(
        **zero,
        kv_capacity_bytes=kv_bytes,
        cache=cache,
        kv_capacity_tokens=kv_tokens,
        max_num_seqs=8,
        max_num_batched_tokens=512,
    )


def test_a_limit_of_the_cache_takes_its_share_of_the_tokens():
    found = cost._limited(memory(), 40.0)
    assert (found.kv_capacity_bytes, found.kv_capacity_tokens) == (40.0, 20.0)
    for no_limit in (100.0, 500.0):
        assert cost._limited(memory(), no_limit) == memory()


def test_a_call_is_bound_by_what_takes_most_of_it(monkeypatch):
    """Two steps of 4 s take longer than five of 1 s, whatever a single one takes."""
    steps = SimpleNamespace(done=SimpleNamespace(parts=[]), time_s=np.array([4.0, 1.0, 1.0, 1.0]), host_s=np.zeros(4))
    monkeypatch.setattr(cost, "_steps", lambda *_: (steps, np.array([2.0, 5.0, 1.0, 1.0])))
    monkeypatch.setattr(cost, "_limit", lambda _, entry: f"limit {entry}")
    monkeypatch.setattr(cost, "steps_power_w", lambda *_: 10.0)
    deployment = SimpleNamespace(layout=SimpleNamespace(num_devices=2))
    call = Call(name="c", count=2, context_tokens=3.0, distinct_tokens=3.0, fresh_tokens=3.0, output_tokens=2.0)
    found = cost.call_cost(call, deployment, memory(), shares_prefix=False)
    assert (found.bound_by, found.time_s, found.energy_j) == ("limit 0", 15.0, 300.0)
    assert found.kept_bytes == 2 * 2 * (3 + 2) * 2.0


def test_who_is_first_leaves_first_whatever_the_order_of_chains():
    """Both draft at 2 s a token until the one token of the second is written at 2 s, and is scored until 3. Alone, the
    first writes its other two until 4, and its three are scored until 7."""
    rounds = Rounds(block_tokens=np.array([[3.0], [1.0]]), is_rejected=np.zeros((2, 1), np.bool_))
    models = Models(draft=float, target=float, score_s_per_token=1.0, score_base_s=0.0)
    assert own_pace_s(rounds, models) == 7.0


def test_drawn_blocks_have_the_mean_that_is_asked_for():
    drawn = drawn_rounds(400, 500, 1000.0, 0.5, 0.25, np.random.default_rng(0))
    assert drawn.block_tokens.mean() == pytest.approx(1000.0, rel=0.01)
    assert np.log(drawn.block_tokens).std() == pytest.approx(0.5, rel=0.01)
    assert drawn.is_rejected.mean() == pytest.approx(0.25, abs=0.01)


def test_a_chain_of_revisions_spoils_and_repairs():
    """Half are right first; of those a fifth are spoilt, of the others half are repaired: 0.65, and then 0.695."""
    law = Law(checker=None, spoil_frac=0.2)
    assert law._chained(0.5, 1) == 0.5
    assert law._chained(0.5, 3) == pytest.approx((0.5 + 0.65 + 0.695) / 3)


def test_a_threshold_needs_finite_scores():
    for wrong in ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3, np.inf], [np.nan, 0.2, 0.3, 0.4]):
        with pytest.raises(ScenarioError, match="4 finite numbers"):
            calibrated(np.array(wrong), 0.5)
    assert calibrated(np.array([0.1, 0.2, 0.3, 0.4]), 0.5).num_checked == 2


def test_a_limit_of_the_cache_is_that_of_a_replica(monkeypatch):
    """400 bytes over 8 devices, of which half keep one copy and half another: 100 on each."""
    seen = []
    layout = SimpleNamespace(num_devices=8, dp=2)
    monkeypatch.setattr(cost, "memory_of", lambda deployment: memory(kv_bytes=1000.0, kv_tokens=500.0))
    monkeypatch.setattr(cost, "call_cost", lambda call, deployment, memory, **_: seen.append(memory) or COSTED)
    call = Call(name="c", count=1, context_tokens=3.0, distinct_tokens=3.0, fresh_tokens=3.0, output_tokens=2.0)
    deployments = {"solver": SimpleNamespace(layout=layout)}
    cost.cost(SimpleNamespace(calls=(call,)), deployments, kv_limit_bytes=400.0)
    assert [(m.kv_capacity_bytes, m.kv_capacity_tokens) for m in seen] == [(100.0, 50.0)]


COSTED = SimpleNamespace(time_s=1.0)


@pytest.mark.parametrize(
    ("prefilled", "waves", "steps"), [(1.0, 1, 1.0), (0.5, 1, 0.5), (100.0, 4, 4.0), (64.0, 1, 2.0)]
)
def test_prompts_are_read_in_chunks_of_at_least_a_token(monkeypatch, prefilled, waves, steps):
    """A wave's prompts at once, but no more than 32 tokens a step."""
    monkeypatch.setattr(cost, "steps_of", lambda *given: given)
    monkeypatch.setattr(cost, "tick", lambda deployment, given: given)
    deployment = SimpleNamespace(layout=SimpleNamespace(pp=1))
    call = Call(name="c", count=1, context_tokens=3.0, distinct_tokens=3.0, fresh_tokens=3.0, output_tokens=2.0)
    _, times = cost._steps(call, deployment, 32.0, prefilled, 1.0, waves)
    assert times[-1] == steps


def test_scores_are_prompts_of_one_block(monkeypatch):
    """One block of 4 tokens takes 3 + 0.5 x 4 s, five take 3 + 0.5 x 20: half a second a token, and 3 s for any."""

    def tick(deployment, given):
        prompts, tokens, ends, *_ = given
        assert np.all(ends == 10.0) or not tokens.any()
        return SimpleNamespace(time_s=3.0 + 0.5 * prompts * tokens)

    monkeypatch.setattr(paces, "steps_of", lambda *given: given)
    monkeypatch.setattr(paces, "tick", tick)
    found = paces.models_of(None, None, context_tokens=10.0, block_tokens=4.0, most_sequences=5)
    assert (found.score_s_per_token, found.score_base_s) == (0.5, 3.0)
