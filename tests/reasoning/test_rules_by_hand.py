"""Rules of votes, chains, beams and trees from small cases: two wrong answers, a frontier of two, a beam of one."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Cache, Memory
from orrery.reasoning import cost
from orrery.reasoning.budget import Split, growth
from orrery.reasoning.chains import draining_s
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
