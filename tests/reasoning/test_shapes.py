"""Questions as graphs of calls: what each shape writes, prefills and keeps."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.reasoning.graph import Call, Graph, Problem
from orrery.reasoning.shape import SHAPES, graph_of

PROBLEM = Problem(prompt_tokens=200, answer_tokens=1000)
NAMES = sorted(SHAPES.techniques)


def prefilled(graph, shares_prefix=True):
    return sum(call.prefilled_tokens(shares_prefix) for call in graph.calls)


@pytest.mark.parametrize("shape", NAMES)
def test_every_shape_is_a_graph_whose_sharing_never_adds_work(shape):
    calls = graph_of(shape, PROBLEM).calls
    assert calls
    for call in calls:
        assert call.count >= 1
        assert 0 <= call.distinct_tokens <= call.count * call.context_tokens
        assert 0 <= call.fresh_tokens <= call.distinct_tokens
        assert call.kept_tokens(True) <= call.kept_tokens(False)
        assert call.read_tokens() <= call.attended_tokens() + 1e-6


def test_samples_share_their_prompt():
    graph = graph_of("majority-vote", PROBLEM, num_samples=8)
    assert graph.written_tokens() == 8000
    assert (prefilled(graph), prefilled(graph, shares_prefix=False)) == (200, 1600)
    (call,) = graph.calls
    assert (call.kept_tokens(True), call.kept_tokens(False)) == (8200, 9600)


def test_best_of_n_adds_one_reading_of_every_answer():
    plain, scored = (graph_of(shape, PROBLEM, num_samples=8) for shape in ("majority-vote", "best-of-n"))
    assert scored.written_tokens() == plain.written_tokens()
    assert prefilled(scored) - prefilled(plain) == 200 + 8 * 1000


@pytest.mark.parametrize("checks", [1, 4, 16])
def test_checks_cost_what_the_formula_says(checks):
    graph = graph_of("generative-verification", PROBLEM, num_solutions=8, num_checks=checks, check_ratio=2.0)
    assert graph.written_tokens() == 1000 * 8 * (1 + 2 * checks)


def test_a_beam_search_writes_as_much_as_samples_and_keeps_less():
    beams = graph_of("beam-search", PROBLEM, width=16, num_beams=4, num_steps=8)
    samples = graph_of("best-of-n", PROBLEM, num_samples=16)
    assert beams.written_tokens() == pytest.approx(samples.written_tokens())
    most = [max(call.kept_tokens(True) for call in g.of("solver")) for g in (beams, samples)]
    assert most[0] == 200 + 4 * 7 * 125 + 16 * 125
    assert most[1] == 200 + 16 * 1000


def test_looking_ahead_writes_more_and_the_last_step_has_nothing_ahead():
    plain, ahead = (graph_of("beam-search", PROBLEM, lookahead_steps=k) for k in (0, 1))
    assert ahead.written_tokens() - plain.written_tokens() == pytest.approx(16 * 7 * 125)
    assert not [call for call in ahead.calls if call.name == "ahead 7"]


def test_revisions_see_at_most_a_window():
    calls = graph_of("sequential-revision", PROBLEM, num_rounds=7, seen_rounds=4).calls
    assert [call.context_tokens for call in calls] == [200, 1200, 2200, 3200, 4200, 4200, 4200]
    assert [call.fresh_tokens for call in calls] == [200, 0, 0, 0, 0, 4000, 4000]


def test_a_thinking_pass_is_offline_and_shared():
    one, ten = (graph_of("sleep-time-compute", PROBLEM, num_questions=n, thought_ratio=2.0) for n in (1, 10))
    assert (one.written_tokens(), one.written_tokens(online_only=True)) == (2200, 200)
    assert (ten.written_tokens(), ten.written_tokens(online_only=True)) == (4000, 2000)


def test_speculative_chains_write_again_what_is_rejected():
    graph = graph_of("speculative-chains", PROBLEM, num_chains=10, num_blocks=5, rejected_frac=0.3)
    drafts, large = (sum(call.written_tokens for call in graph.of(model)) for model in ("draft", "solver"))
    assert (drafts, large) == (10_000, 3_000)
    alone = graph_of("speculative-chains", PROBLEM, num_chains=1, num_blocks=5, rejected_frac=0.4)
    assert [c.name for c in alone.calls if c.name.startswith("redo")] == ["redo 1", "redo 3"], "two blocks of five"
    none = graph_of("speculative-chains", PROBLEM, num_chains=10, rejected_frac=0.0)
    assert sum(call.written_tokens for call in none.of("solver")) == 0


@pytest.mark.parametrize(
    ("shape", "knobs"),
    [
        ("best-of-n", {"num_samples": 0}),
        ("beam-search", {"width": 4, "num_beams": 8}),
        ("majority-voting", {}),
        ("speculative-chains", {"rejected_frac": 1.5}),
    ],
)
def test_what_makes_no_sense_is_refused(shape, knobs):
    with pytest.raises(ScenarioError):
        graph_of(shape, PROBLEM, **knobs)


def test_a_call_stands_after_those_that_it_waits_for():
    call = Call(name="a", count=1, context_tokens=0, distinct_tokens=0, fresh_tokens=0, output_tokens=1, after=("b",))
    with pytest.raises(ScenarioError, match="'a' after b"):
        Graph(calls=(call,))
    with pytest.raises(ScenarioError, match="answer_tokens = 0"):
        Problem(prompt_tokens=1, answer_tokens=0)


def test_questions_side_by_side_share_nothing():
    one, five = graph_of("best-of-n", PROBLEM, num_samples=4), graph_of("best-of-n", PROBLEM, num_samples=4).times(5)
    assert five.written_tokens() == 5 * one.written_tokens()
    assert prefilled(five) == 5 * prefilled(one)
    assert [call.context_tokens for call in five.calls] == [call.context_tokens for call in one.calls]


def test_a_drawn_search_follows_its_rule():
    def retained(**knobs):
        return max(call.kept_tokens(True) for call in graph_of("tree-search", PROBLEM, width=64, **knobs).calls)

    assert retained(prune="beam-tree") < retained(prune="balanced-tree") < retained(prune="diverse-tree")
    with pytest.raises(ScenarioError, match="'beam-tree'"):
        graph_of("tree-search", PROBLEM, prune="beam-trie")
