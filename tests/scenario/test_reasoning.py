"""One answer out of many calls: what it takes beside one call, how often it is right, and what is refused."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.reasoning.shape import SHAPES
from orrery.scenario.ask import Answer, InfeasibleAnswer, estimate
from orrery.scenario.file import load_scenario, save_scenario
from orrery.scenario.schema import read_scenario
from orrery.scenario.why import paths, why

ONE = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 500, "output_tokens": 200, "batch": 1}
NAMES = sorted(SHAPES.techniques)


def answer(**inputs):
    found = estimate(**ONE | inputs)
    assert isinstance(found, Answer)
    assert found.reasoned is not None
    return found.reasoned


def draft(shape):
    return {"draft_model": "llama-3.2-1b"} if shape == "speculative-chains" else {}


@pytest.mark.parametrize("shape", NAMES)
def test_every_shape_has_an_answer_whose_figures_are_of_one(shape):
    one, eight = (answer(reasoning=shape, batch=n, **draft(shape)) for n in (1, 8))
    for way in (*one.ways, *eight.ways):
        assert 0 <= way.shared_tokens < way.prompt_tokens
        assert way.time_interval.low_80 < way.time_s < way.time_interval.high_80
        assert way.num_waves == 1
    first, many = one.ways[0], eight.ways[0]
    for name in ("num_calls", "prompt_tokens", "answer_tokens", "kv_peak_bytes"):
        assert getattr(many, name) == pytest.approx(getattr(first, name))
    assert many.usd < first.usd
    assert many.energy_j < first.energy_j
    assert many.time_s > first.time_s


def test_a_vote_of_one_is_one_call_and_takes_what_the_estimate_says():
    found = estimate(**ONE, reasoning="majority-vote", samples=1, success=0.4)
    assert isinstance(found, Answer)
    assert found.reasoned is not None
    (way,) = found.reasoned.ways
    assert way == found.reasoned.one_call
    assert (way.num_calls, way.prompt_tokens, way.shared_tokens, way.answer_tokens) == (1, 500, 0, 200)
    assert way.time_s == pytest.approx(found.estimate.latency_s, rel=0.05)
    assert way.energy_j == pytest.approx(200 * found.estimate.energy_j_per_token, rel=0.1)
    assert way.usd * 1e6 / 200 == pytest.approx(found.usd_per_million_tokens, rel=0.05)
    assert (way.right_frac, way.coverage_frac) == pytest.approx((0.4, 0.4))


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(["best-of-n", "majority-vote", "generative-verification", "beam-search", "sequential-revision"]),
    st.integers(1, 12),
    st.integers(1, 12),
)
def test_cost_grows_with_samples(shape, few, more):
    few_way, many = answer(reasoning=shape, samples=f"{few},{few + more}").ways
    for name in ("num_calls", "prompt_tokens", "answer_tokens", "time_s", "energy_j", "usd", "kv_peak_bytes"):
        assert getattr(many, name) >= getattr(few_way, name) * (1 - 1e-9), name
    assert many.energy_j > few_way.energy_j


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 0.49), st.integers(2, 60))
def test_a_vote_does_not_help_where_wrong_answers_agree(p, samples):
    found = answer(reasoning="majority-vote", samples=samples, success=p)
    assert found.ways[0].right_frac <= p + 1e-9
    assert found.front[0] == found.one_call
    assert all(way.right_frac <= p + 1e-9 for way in found.front), "no gain but that of rounding"


def test_a_device_at_leisure_gives_samples_away_and_a_busy_one_does_not():
    ratios = []
    for batch in (1, 256):
        found = answer(reasoning="majority-vote", samples=16, batch=batch)
        ratios.append(found.ways[0].usd / found.one_call.usd)
    assert ratios[0] < 1.5 < 6 < ratios[1] < 16


def test_a_trusted_verifier_covers_and_a_blind_one_picks_by_lot():
    ways = {v: answer(reasoning="best-of-n", samples=8, success=0.3, verifier_accuracy=v).ways[0] for v in (0.5, 1)}
    assert ways[0.5].right_frac == pytest.approx(0.3)
    assert ways[1].right_frac == pytest.approx(1 - 0.7**8) == ways[1].coverage_frac
    assert ways[1].usd_per_right == pytest.approx(ways[1].usd / ways[1].right_frac)


def test_the_best_of_n_by_one_word_each_follows_the_formula_of_the_docs():
    p, v, n = 0.3, 0.8, 16
    yes = p * v + (1 - p) * (1 - v)
    law = (1 - (1 - yes) ** n) * p * v / yes + (1 - yes) ** n * p * (1 - v) / (1 - yes)
    found = answer(reasoning="best-of-n", samples=n, success=p, verifier_accuracy=v)
    assert found.ways[0].right_frac == pytest.approx(law)


def test_spread_difficulties_are_covered_slower_and_scattered_wrong_answers_lose_votes():
    alike, spread = (answer(reasoning="best-of-n", samples=16, success=0.3, **e) for e in ({}, {"evenness": 1}))
    assert spread.worth == "coverage_frac"
    assert spread.ways[0].coverage_frac < 0.7 < 0.99 < alike.ways[0].coverage_frac
    votes = [answer(reasoning="majority-vote", samples=16, success=0.3, wrong_answers=n) for n in (1, 20)]
    assert votes[0].ways[0].right_frac < 0.1 < 0.6 < votes[1].ways[0].right_frac


def test_without_shared_prefixes_every_call_computes_its_prompt():
    shared, apart = (answer(reasoning="majority-vote", samples=16, prefix_caching=on) for on in (True, False))
    assert (shared.ways[0].shared_tokens, apart.ways[0].shared_tokens) == (15 * 500, 0)
    assert shared.ways[0].prompt_tokens == apart.ways[0].prompt_tokens == 16 * 500
    assert shared.ways[0].time_s < apart.ways[0].time_s
    assert shared.ways[0].kv_peak_bytes < apart.ways[0].kv_peak_bytes


def test_a_rule_and_a_seed_choose_among_searches():
    def retained(rule, seed=0):
        knob = [f"prune={rule}"]
        return answer(reasoning="tree-search", samples=64, reasoning_knob=knob, seed=seed).ways[0].kv_peak_bytes

    assert retained("beam-tree") < retained("diverse-tree")
    assert retained("diverse-tree") != retained("diverse-tree", 1)
    assert retained("diverse-tree") == retained("diverse-tree")


def test_replicas_share_the_questions():
    one, two = (answer(reasoning="majority-vote", samples=4, batch=n, dp=n) for n in (1, 2))
    assert two.ways[0].time_s == pytest.approx(one.ways[0].time_s, rel=0.01)
    assert two.ways[0].usd == pytest.approx(one.ways[0].usd, rel=0.01)
    assert two.ways[0].energy_j == pytest.approx(one.ways[0].energy_j, rel=0.01)


def test_models_of_their_own_are_paid_for():
    own, other = (answer(reasoning="best-of-n", **v) for v in ({}, {"verifier_model": "llama-3.2-1b"}))
    assert other.one_call == own.one_call
    assert other.ways[0].usd > 1.5 * own.ways[0].usd
    assert other.ways[0].energy_j < own.ways[0].energy_j


def test_money_is_time_on_the_devices():
    way = answer(reasoning="best-of-n", samples=4, usd_per_hour=3.6).ways[0]
    assert way.usd == pytest.approx(way.time_s * 0.001)
    dearer = answer(reasoning="best-of-n", samples=4, usd_per_hour=3.6, electricity=0.36).ways[0]
    assert dearer.usd - way.usd == pytest.approx(way.energy_j * 1e-7)


def test_a_file_keeps_the_settings():
    inputs = {"reasoning": "tree-search", "samples": [16, 4], "reasoning_knob": ["prune=beam-tree"], "success": 0.2}
    scenario = read_scenario(ONE | inputs)
    with tempfile.TemporaryDirectory() as folder:
        save_scenario(scenario, Path(folder) / "answer.toml")
        found = estimate(load_scenario(Path(folder) / "answer.toml"))
    assert isinstance(found, Answer)
    assert found.reasoned is not None
    assert [way.num_samples for way in found.reasoned.ways] == [4, 16]
    assert found.reasoned.front == ()
    assert any("no law says" in note for note in found.notes)


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"reasoning": "best-of"}, "Did you mean 'best-of-n'"),
        ({"reasoning": "best-of-n", "reasoning_knob": ["num_sample=2"]}, "did you mean 'num_samples'"),
        ({"reasoning": "best-of-n", "reasoning_knob": ["num_samples=2.5"]}, "'2.5'; write a whole number"),
        ({"reasoning": "generative-verification", "reasoning_knob": ["check_ratio=long"]}, "write a number"),
        ({"reasoning": "generative-verification", "reasoning_knob": ["check_ratio=inf"]}, "write a number"),
        ({"reasoning": "best-of-n", "reasoning_knob": ["num_samples"]}, "NAME=VALUE"),
        ({"reasoning": "best-of-n", "reasoning_knob": ["num_samples=4"], "samples": "4"}, "keep one"),
        ({"reasoning": "tree-search", "reasoning_knob": ["prune=beam-trie"]}, "Did you mean 'beam-tree'"),
        ({"reasoning": "sleep-time-compute", "samples": 4}, "takes none"),
        ({"reasoning": "best-of-n", "samples": "0,4"}, "from 1 to 10,000"),
        ({"reasoning": "best-of-n", "samples": "1,x"}, "such as 1,4,16,64"),
        ({"reasoning": "best-of-n", "samples": 10_001}, "from 1 to 10,000"),
        ({"reasoning": "best-of-n", "success": 1.5}, "above 0 to 1"),
        ({"reasoning": "best-of-n", "success": 0}, "above 0 to 1"),
        ({"reasoning": "best-of-n", "success": 0.5, "verifier_accuracy": -0.1}, "from 0 to 1"),
        ({"reasoning": "best-of-n", "verifier_accuracy": 0.9}, "write success"),
        ({"reasoning": "majority-vote", "success": 0.5, "verifier_accuracy": 0.9}, "no verifier chooses"),
        ({"reasoning": "majority-vote", "verifier_model": "llama-3.2-1b"}, "nothing verified"),
        ({"reasoning": "speculative-chains"}, "write draft_model"),
        ({"reasoning": "best-of-n", "batch": None, "rate": 4}, "write batch = 1"),
        ({"samples": 4}, "write reasoning"),
        ({"success": 0.4}, "write reasoning"),
    ],
)
def test_what_makes_no_sense_is_refused(inputs, says):
    with pytest.raises(ScenarioError) as error:
        estimate(**ONE | inputs)
    assert says in str(error.value)


def test_settings_of_simulated_runs_are_passed_over_aloud():
    found = estimate(**ONE, draft_model="llama-3.2-1b", prefix_caching=True)
    assert isinstance(found, Answer)
    assert [note.partition(":")[0] for note in found.notes if "not used" in note] == ["draft_model", "prefix_caching"]


def test_what_does_not_fit_is_an_answer_with_numbers():
    large = estimate(**ONE, reasoning="best-of-n", verifier_model="llama-3.1-405b")
    assert isinstance(large, InfeasibleAnswer)
    assert "405B" in large.infeasible.what
    long = estimate(
        **ONE | {"output_tokens": 60_000},
        reasoning="sequential-revision",
        samples=16,
        reasoning_knob=["seen_rounds=16"],
    )
    assert isinstance(long, InfeasibleAnswer)
    assert long.infeasible.unit == "tokens"
    assert long.infeasible.need > long.infeasible.have > 400_000


def test_an_answers_figures_unfold_into_its_calls():
    found = estimate(**ONE, reasoning="beam-search", samples=4, reasoning_knob=["num_steps=3"])
    assert isinstance(found, Answer)
    assert found.reasoned is not None
    (way,) = found.reasoned.ways
    for name, value in (("answer.time_s", way.time_s), ("answer.energy_j", way.energy_j)):
        reason = why(found, name)
        assert reason.value == value == pytest.approx(sum(part.value for part in reason.parts))
        assert [part.name.partition(":")[0] for part in reason.parts][:2] == ["step 0", "score 0"]
    assert why(found, "answer.usd").parts[0].facts
    assert "answer.time_s" not in paths(estimate(**ONE))
