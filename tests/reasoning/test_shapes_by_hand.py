"""Every shape by its calls for a prompt of 100 tokens and an answer of 80; rules of trees on a few candidates.

Rows are name, count, context, distinct and fresh tokens, output.
"""

from dataclasses import asdict
from math import inf, log

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.base.knobs import NoKnobs
from orrery.reasoning.chains import Models, Rounds, _scoring, alone_s, in_step_s, own_pace_s
from orrery.reasoning.coverage import Difficulty, coverage, gain_frac, saturation_tries
from orrery.reasoning.equivalent import Sparsity, _attention_flops, equivalent
from orrery.reasoning.frontier import cheapest, frontier
from orrery.reasoning.graph import Call, Graph, Problem
from orrery.reasoning.shape import SHAPES, graph_of
from orrery.reasoning.tree.grown import Front
from orrery.reasoning.tree.search import Growth, Step, search, step_calls
from orrery.reasoning.tree.shares import by_softmax
from orrery.reasoning.tree.techniques import beam_tree, diverse_tree, shared_cache_tree
from orrery.reasoning.vote import Checker, WrongAnswers, checked_frac, majority_frac

PROBLEM = Problem(prompt_tokens=100, answer_tokens=80)


def rows(shape, **knobs):
    return rows_of(graph_of(shape, PROBLEM, **knobs).calls)


def rows_of(calls):
    return [(c.name, c.count, c.context_tokens, c.distinct_tokens, c.fresh_tokens, c.output_tokens) for c in calls]


def test_samples_and_what_reads_them():
    assert rows("majority-vote", num_samples=3) == [("solve", 3, 100, 100, 100, 80)]
    # prompt and three answers
    assert rows("best-of-n", num_samples=3)[1] == ("score", 3, 180, 340, 340, 0)
    checks = rows("generative-verification", num_solutions=3, num_checks=2, check_ratio=0.5)
    assert checks[1] == ("check", 6, 180, 340, 340, 40)


def test_a_beam_search_step_by_step():
    # four candidates on two beams, steps of 20, one step ahead: 40 new tokens each are scored, at the end 20
    assert rows("beam-search", width=4, num_steps=4, lookahead_steps=1) == [
        ("step 0", 4, 100, 100, 100, 20),
        ("ahead 0", 4, 120, 180, 0, 20),
        ("score 0", 4, 140, 260, 260, 0),
        ("step 1", 4, 120, 140, 0, 20),
        ("ahead 1", 4, 140, 220, 0, 20),
        ("score 1", 4, 160, 300, 160, 0),
        ("step 2", 4, 140, 180, 0, 20),
        ("ahead 2", 4, 160, 260, 0, 20),
        ("score 2", 4, 180, 340, 160, 0),
        ("step 3", 4, 160, 220, 0, 20),
        ("score 3", 4, 180, 300, 80, 0),
    ]
    three = rows("beam-search", width=4, num_beams=3, num_steps=4)
    assert three[2] == ("step 1", 4, 120, 160, 0, 20)


def test_revisions_read_again_what_the_window_left():
    assert rows("sequential-revision", num_rounds=4, num_chains=2, seen_rounds=2) == [
        ("round 0", 2, 100, 100, 100, 80),
        ("round 1", 2, 180, 260, 0, 80),
        ("round 2", 2, 260, 420, 0, 80),
        ("round 3", 2, 260, 420, 320, 80),
    ]


def test_thoughts_beforehand():
    graph = graph_of("sleep-time-compute", PROBLEM, num_questions=5, thought_ratio=2, notes_ratio=0.5, online_frac=0.25)
    assert rows_of(graph.calls) == [("think", 1, 100, 100, 100, 160), ("answer", 5, 140, 140, 140, 20)]
    assert [c.is_online for c in graph.calls] == [False, True]
    assert (graph.written_tokens(), graph.written_tokens(online_only=True)) == (260, 100)


def test_blocks_drafted_scored_and_written_again():
    assert rows("speculative-chains", num_chains=4, num_blocks=2, rejected_frac=0.5) == [
        ("draft 0", 4, 100, 100, 100, 40),
        ("score 0", 4, 140, 260, 260, 0),
        ("redo 0", 2, 100, 100, 0, 40),
        ("draft 1", 4, 140, 260, 80, 40),  # two blocks of the large model are read by the small one
        ("score 1", 4, 180, 420, 160, 0),
        ("redo 1", 2, 140, 180, 0, 40),
    ]
    assert [r[0] for r in rows("speculative-chains", num_blocks=1, rejected_frac=0)] == ["draft 0", "score 0"]


@pytest.mark.parametrize(
    ("shape", "knobs", "choice"),
    [
        ("majority-vote", {"num_samples": 16}, ("vote", 16, 1, 1)),
        ("best-of-n", {"num_samples": 16}, ("check", 16, 1, 1)),
        ("generative-verification", {"num_solutions": 16, "num_checks": 4, "check_ratio": 1.0}, ("check", 16, 1, 4)),
        ("beam-search", {"width": 16, "num_beams": 0, "num_steps": 8, "lookahead_steps": 0}, None),
        ("sequential-revision", {"num_rounds": 4, "num_chains": 1, "seen_rounds": 4}, ("vote", 1, 4, 1)),
        (
            "sleep-time-compute",
            {"num_questions": 1, "thought_ratio": 1.0, "notes_ratio": 0.5, "online_frac": 0.2},
            ("vote", 1, 1, 1),
        ),
        ("speculative-chains", {"num_chains": 16, "num_blocks": 5, "rejected_frac": 0.4}, ("vote", 16, 1, 1)),
        (
            "tree-search",
            {
                "width": 16,
                "num_steps": 8.0,
                "prune": "balanced-tree",
                "new_idea_ratio": 1.0,
                "node_price_ratio": 1.0,
                "idea_price_ratio": 1.4,
                "score_temperature_ratio": 0.2,
                "longest_step_ratio": 3.0,
                "longest_path_ratio": 3.0,
                "seed": 0,
            },
            None,
        ),
    ],
)
def test_what_a_shape_is_by_default(shape, knobs, choice):
    usual = SHAPES.get(shape).knobs()
    assert asdict(usual) == knobs
    found = usual.choice
    assert (None if found is None else (found.by, found.num_tries, found.num_rounds, found.num_checks)) == choice


@pytest.mark.parametrize(
    ("shape", "knob", "wrong"),
    [
        ("majority-vote", "num_samples", 0),
        ("best-of-n", "num_samples", 0),
        ("generative-verification", "num_checks", 0),
        ("beam-search", "width", 0),
        ("beam-search", "num_beams", 17),
        ("beam-search", "num_steps", 0),
        ("beam-search", "lookahead_steps", 9),
        ("sequential-revision", "seen_rounds", 0),
        ("sleep-time-compute", "notes_ratio", 0),
        ("speculative-chains", "num_blocks", 0),
        ("speculative-chains", "rejected_frac", 1.01),
        ("tree-search", "num_steps", 1.0),
        ("tree-search", "width", 0),
        ("tree-search", "new_idea_ratio", 0),
    ],
)
def test_a_knob_out_of_its_range_is_refused(shape, knob, wrong):
    with pytest.raises(ScenarioError, match=knob):
        SHAPES.get(shape).knobs(**{knob: wrong})
    SHAPES.get("speculative-chains").knobs(rejected_frac=1, num_chains=1, num_blocks=1)


def test_a_drawn_search_has_steps_of_its_share_and_a_limit():
    graph = graph_of("tree-search", PROBLEM, width=3, num_steps=4.0, seed=1)
    assert rows_of(graph.calls)[0][:5] == ("step 0", 3, 100.0, 100.0, 100.0)
    assert {c.model for c in graph.calls} == {"solver", "verifier"}
    assert all(c.output_tokens <= 80 * 4 for c in graph.calls)


def test_steps_of_two_searches_side_by_side():
    steps = [
        Step(num_candidates=2, kept_tokens=130.0, path_tokens=100.0, step_tokens=15.0),
        Step(num_candidates=3, kept_tokens=175.0, path_tokens=115.0, step_tokens=10.0),
    ]
    assert rows_of(step_calls(steps, 2)) == [
        ("step 0", 4, 100, 200, 200, 15),
        ("score 0", 4, 115, 260, 260, 0),
        ("step 1", 6, 115, 290, 0, 10),
        ("score 1", 6, 125, 350, 60, 0),
    ]


def test_a_single_path_goes_on_until_it_is_long_enough():
    growth = Growth(width=1, prompt_tokens=50, step_tokens=40, most_step_tokens=90, most_tokens=1000, end_frac=0.0)
    assert (growth.new_idea_ratio, growth.seed) == (1.0, 0)
    steps = search(growth, "beam-tree")
    assert [s.num_candidates for s in steps] == [1] * len(steps)
    written = [s.path_tokens + s.step_tokens - 50 for s in steps]
    assert written[-2] < 1000 <= written[-1] < 1090
    assert steps[0].kept_tokens == 50 + steps[0].step_tokens
    assert max(s.step_tokens for s in steps) == 90
    assert min(s.step_tokens for s in steps) >= 1
    assert len(search(growth, "balanced-tree")) > 10


def front(scores, branches=(), ideas=(), paths=()):
    count = len(scores)
    return Front(
        scores_frac=np.array(scores),
        paths=np.array(paths or [[0]] * count),
        ideas=np.array(ideas or range(count)),
        branches=np.array(branches or [0] * count),
    )


def test_diverse_subtrees_keep_their_best_in_equal_parts():
    here = front([0.9, 0.8, 0.7, 0.6, 0.5], branches=[0, 0, 1, 1, 2])
    knobs = NoKnobs()
    assert diverse_tree.continued(here, 8, knobs).tolist() == [3, 0, 3, 0, 2]
    assert diverse_tree.continued(here, 2, knobs).tolist() == [1, 0, 1, 0, 0]
    assert diverse_tree.continued(here, 6, knobs).tolist() == [2, 0, 2, 0, 2]


def test_beams_are_the_best_in_equal_parts():
    here = front([0.1, 0.9, 0.5, 0.7])
    assert beam_tree.continued(here, 7, beam_tree.Knobs(num_beams=2)).tolist() == [0, 4, 0, 3]
    assert beam_tree.continued(here, 7, beam_tree.Knobs()).tolist() == [0, 3, 2, 2]  # the root of 7, rounded up
    assert beam_tree.continued(here, 5, beam_tree.Knobs(num_beams=9)).tolist() == [1, 2, 1, 1]


def test_shares_round_up_from_the_best_down():
    assert by_softmax(np.array([log(2.0), log(5.0), 0.0]), 8, 1.0).tolist() == [2, 5, 1]
    assert by_softmax(np.array([0.0, 0.0, 0.0]), 2, 1.0).tolist() == [1, 1, 0]
    assert by_softmax(np.array([0.0, 0.0]), 3, 1.0).tolist() == [2, 1]
    assert by_softmax(np.array([0.0, log(2.0)]), 5, 0.5).tolist() == [1, 4]  # odds of 4
    assert by_softmax(np.array([800.0, 800.0 + log(4.0)]), 5, 1.0).tolist() == [1, 4]  # only differences count


def kept(scores, width, paths=(), ideas=(), **knobs):
    return shared_cache_tree.kept_of(
        front(scores, paths=paths, ideas=ideas), width, shared_cache_tree.Knobs(**knobs)
    ).tolist()


def test_candidates_stay_that_are_worth_their_nodes():
    """Two candidates of half the shares under one root: a node costs a third of the price."""
    assert kept([0.5, 0.5], 2, ideas=[1, 1]) == [True, True]
    assert kept([0.5, 0.5], 2, ideas=[1, 1], node_price_ratio=1.6) == [True, False]
    # another idea is worth a half of its price: 0.5 - 1.6 / 3 + 0.05 > 0
    assert kept([0.5, 0.5], 2, ideas=[1, 2], node_price_ratio=1.6, idea_price_ratio=0.1) == [True, True]
    assert kept([0.5, 0.5], 2, ideas=[1, 2], node_price_ratio=1.6, idea_price_ratio=0.0) == [True, False]
    # a path of its own holds a node more: with two parents and a root five nodes, 0.5 against two fifths of the price
    assert kept([0.5, 0.5], 2, paths=[[0, 1], [0, 2]], ideas=[1, 1], node_price_ratio=1.2) == [True, True]
    assert kept([0.5, 0.5], 2, paths=[[0, 1], [0, 2]], ideas=[1, 1], node_price_ratio=1.3) == [True, False]
    counts = shared_cache_tree.continued(
        front([0.5, 0.5], ideas=[1, 1]), 6, shared_cache_tree.Knobs(node_price_ratio=1.6)
    )
    assert counts.tolist() == [6, 0]
    assert asdict(shared_cache_tree.Knobs()) == {
        "score_temperature_ratio": 0.2,
        "node_price_ratio": 1.0,
        "idea_price_ratio": 1.4,
    }


CROWDED = Models(draft=lambda n: float(n), target=lambda n: 10.0 * n, score_s_per_token=0.0)


def rounds(tokens, rejected):
    return Rounds(block_tokens=np.array(tokens, dtype=float), is_rejected=np.array(rejected))


def test_drafts_get_faster_when_one_has_left():
    """Two at two seconds a token until the shorter has its 10, then 20 more at one; a rejected one is written again."""
    both = rounds([[10], [30]], [[False], [False]])
    assert both.written_tokens == 40
    assert own_pace_s(both, CROWDED) == pytest.approx(20 + 20)
    assert in_step_s(both, CROWDED) == pytest.approx(40)
    assert own_pace_s(rounds([[10], [30]], [[True], [False]]), CROWDED) == pytest.approx(20 + 100)
    assert in_step_s(rounds([[10], [30]], [[True], [True]]), CROWDED) == pytest.approx(40 + 200 + 200)
    assert alone_s(both, CROWDED) == pytest.approx(10 * 20 + 20 * 10)


def test_scores_share_a_pass_in_step_and_pay_their_part_alone():
    scored = Models(draft=lambda n: 1.0, target=lambda n: 1.0, score_s_per_token=0.5, score_base_s=3.0)
    one = rounds([[10, 30]], [[False, False]])
    assert in_step_s(one, scored) == pytest.approx(40 + 20 + 6)
    assert own_pace_s(one, scored) == pytest.approx(40 + 20 + 40 * 3 / 20)  # a pass for each 20 tokens, the mean block


def test_scores_of_several_chains_add_up_and_share_one_pass():
    scored = Models(draft=lambda n: 1.0, target=lambda n: 1.0, score_s_per_token=0.5, score_base_s=3.0)
    assert [_scoring(scored, 20.0)(count) for count in (1, 4)] == [pytest.approx(0.65), pytest.approx(2.15)]


def test_tries_that_still_pay():
    assert coverage(0.5, 3) == 0.875
    assert (gain_frac(0.5, 2), gain_frac(0.5, 2, 0.8)) == (0.125, pytest.approx(0.1))
    assert saturation_tries(0.5, 0.1) == 3  # gains of 1/2, 1/4, 1/8, 1/16
    assert saturation_tries(0.5, 0.25) == 1  # exactly a quarter is not less
    assert saturation_tries(0.5, 0.5) == 0
    assert saturation_tries(0.5, 0.1, ceiling_frac=0.2) == 0
    assert saturation_tries(1.0, 1.0) == 0
    assert saturation_tries(1.0, 0.5) == 1
    for wrong in ((0.0, 0.5), (1.01, 0.5), (0.5, 0.0), (0.5, 1.5)):
        with pytest.raises(ScenarioError, match="more than 0 and at most 1"):
            saturation_tries(*wrong)


def test_a_beta_of_difficulties_by_hand():
    """Mean 1/2 and a + b = 2 is uniform: E[(1 - p)^n] = 1 / (n + 1); four equal bins have their middles."""
    even = Difficulty(mean_frac=0.5, evenness_ratio=2.0)
    assert [even.coverage(n) for n in (0, 1, 3)] == pytest.approx([0.0, 0.5, 0.75])
    assert even.bins(4).tolist() == pytest.approx([0.125, 0.375, 0.625, 0.875], abs=1e-3)
    assert Difficulty(mean_frac=0.25).coverage(2) == pytest.approx(1 - 0.75 * 1.75 / 2)
    alike = Difficulty(mean_frac=0.25, evenness_ratio=inf)
    assert (alike.coverage(2), alike.bins(9).tolist()) == (0.4375, [0.25])
    assert Difficulty(mean_frac=1.0).is_one
    for wrong in ({"mean_frac": 0.0}, {"mean_frac": 1.1}, {"mean_frac": 0.5, "evenness_ratio": 0.0}):
        with pytest.raises(ScenarioError, match="write a mean above 0"):
            Difficulty(**wrong)


def test_votes_and_checks_by_hand():
    alone, lot = WrongAnswers(num_answers=1), np.random.default_rng(0)
    assert majority_frac(np.array([0.6]), 1, alone, lot) == pytest.approx(0.6)
    assert majority_frac(np.array([0.6]), 2, alone, lot) == pytest.approx(0.36 + 0.24)
    assert majority_frac(np.array([0.6]), 3, alone, lot) == pytest.approx(0.216 + 3 * 0.36 * 0.4)
    shares = WrongAnswers(num_answers=3, rank_ratio=1.0).shares()
    assert shares.tolist() == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    assert asdict(WrongAnswers()) == {"num_answers": 20, "rank_ratio": 1.0}
    assert asdict(Checker()) == {"right_frac": 0.8, "wrong_frac": 0.3, "evenness_ratio": 2.0}
    # means of 1/2 and a + b = 2: no, once and twice yes are equally likely
    yes, no = Checker(right_frac=0.5, wrong_frac=0.25, evenness_ratio=2.0).yes(2)
    assert yes.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert no.tolist() == pytest.approx([0.625, 0.25, 0.125])  # a = 1/2, b = 3/2
    # two answers, one check: right says yes 0.8, wrong 0.3; p = 1/2: 0.55 yes, 0.45 no
    best_yes, best_no = 1 - 0.45**2, 0.45**2
    expected = best_yes * 0.4 / 0.55 + best_no * 0.1 / 0.45
    assert checked_frac(np.array([0.5]), 2, 1, Checker()) == pytest.approx(expected)
    for wrong in (
        {"right_frac": 1.1},
        {"right_frac": -0.1},
        {"wrong_frac": 1.1},
        {"wrong_frac": -0.1},
        {"evenness_ratio": 0.0},
    ):
        with pytest.raises(ScenarioError, match="fractions from 0 to 1"):
            Checker(**wrong)


def test_ways_that_nothing_cheaper_reaches():
    ways = [(3, 5), (1, 2), (2, 2), (3, 6), (4, 6), (0, 1)]
    best = frontier(ways, lambda w: w[0], lambda w: w[1])
    assert best == [(0, 1), (1, 2), (3, 6)]
    assert cheapest(best, lambda w: w[1], 2) == (1, 2)
    assert cheapest(best, lambda w: w[1], 7) is None


CALL = Call(name="x", count=2, context_tokens=10, distinct_tokens=15, fresh_tokens=5, output_tokens=4)


def test_what_a_call_keeps_and_reads():
    assert CALL.written_tokens == 8
    assert (CALL.kept_tokens(True), CALL.kept_tokens(False)) == (23, 28)
    assert (CALL.prefilled_tokens(True), CALL.prefilled_tokens(False)) == (5, 20)
    assert (CALL.attended_tokens(), CALL.read_tokens()) == (2 * 4 * 12, 4 * 19)
    twice = Graph(calls=(CALL,)).times(3).calls[0]
    assert (twice.count, twice.context_tokens, twice.distinct_tokens, twice.fresh_tokens) == (6, 10, 45, 15)


class Layer:
    count = 3

    def __init__(self, mixer):
        self.mixer = mixer


def test_sparse_attention_pays_for_its_search():
    from types import SimpleNamespace

    from orrery.models.model import CompressedAttention, LatentAttention, SoftmaxAttention

    heads = SoftmaxAttention(num_heads=4, num_kv_heads=2, head_size=8, value_head_size=6)
    assert _attention_flops(heads) == 2 * 4 * 14
    latent = LatentAttention(
        num_heads=4, q_lora_rank=0, kv_lora_rank=16, nope_head_size=8, rope_head_size=2, value_head_size=8
    )
    assert _attention_flops(latent) == 2 * 4 * 34
    compressed = {"num_heads": 4, "head_size": 8, "window_tokens": 16}
    assert _attention_flops(CompressedAttention(**compressed, ratio=4)) == 32
    assert _attention_flops(CompressedAttention(**compressed, ratio=0)) == 0
    assert _attention_flops(None) == 0
    model, graph = SimpleNamespace(num_active_parameters=7, blocks=[Layer(heads)]), Graph(calls=(CALL,))
    dense = equivalent(model, graph, 2.0)
    assert (dense.linear_flops, dense.attention_flops) == (2 * 7 * 8, 3 * 112 * 96)
    assert dense.cache_flops == 2.0 * 2.0 * 3 * 28 * 76
    assert dense.total_flops == dense.computed_flops + dense.cache_flops == 112 + 32256 + 25536
    # 12 of 10 to 14 tokens are kept: 10 + ... over two tokens mean 11, then two of 12: 22 + 24 each
    sparse = equivalent(model, graph, 2.0, sparsity=Sparsity(kept_tokens=12), cache_element_bytes=1.0)
    assert sparse.attention_flops == 3 * 112 * 2 * 46
    assert sparse.cache_flops == 2.0 * 3 * 28 * 76  # no more than there is: two sequences share 10 tokens
    searched = equivalent(model, graph, 2.0, sparsity=Sparsity(kept_tokens=4, block_tokens=8))
    assert searched.attention_flops == 3 * 112 * (2 * 16 + 96 / 16)
    assert searched.cache_flops == 2.0 * 2.0 * 3 * 28 * (2 * 16 + 76 / 16)
