"""Tree searches: rules deal out a width, caches count shared nodes once, and the program keeps what is worth it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from orrery.reasoning.graph import Graph
from orrery.reasoning.tree.grown import Front, Grown
from orrery.reasoning.tree.search import PRUNING, Growth, search, step_calls
from orrery.reasoning.tree.shares import by_softmax
from orrery.reasoning.tree.techniques.shared_cache_tree import Knobs, kept_of

RULES = sorted(PRUNING.techniques)
GROWTH = Growth(
    width=32, prompt_tokens=100, step_tokens=70, most_step_tokens=256, most_tokens=1024, end_frac=0.1, seed=3
)


def front(seed, count=8, depth=3):
    random = np.random.default_rng(seed)
    paths = np.concatenate(
        [np.zeros((count, 1), int)] + [random.integers(3, size=(count, 1)) + 10 * level for level in range(1, depth)],
        axis=1,
    )
    return Front(
        scores_frac=random.random(count), paths=paths, ideas=random.integers(4, size=count), branches=paths[:, 1]
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("width", [1, 5, 32])
def test_a_rule_deals_out_exactly_the_width(rule, width):
    technique = PRUNING.techniques[rule]
    counts = technique.rule(front(0), width, technique.knobs())
    assert counts.sum() == width
    assert counts.min() >= 0


def test_shares_follow_the_scores_and_cold_ones_take_all():
    assert by_softmax(np.array([0.0, 0.0, 0.0, 0.0]), 8, 1.0).tolist() == [2, 2, 2, 2]
    assert by_softmax(np.array([0.1, 0.9, 0.5]), 6, 0.01).tolist() == [0, 6, 0]
    assert by_softmax(np.array([0.0, np.log(3.0)]), 8, 1.0).tolist() == [2, 6]


def test_a_cache_holds_shared_nodes_once():
    tree = Grown(prompt_tokens=100)
    a, b = tree.add(0, 10), tree.add(0, 20)
    leaves = np.array([tree.add(a, 1), tree.add(a, 2), tree.add(b, 3)])
    assert tree.kept_tokens(leaves) == 100 + 10 + 20 + 1 + 2 + 3
    assert tree.kept_tokens(leaves[:2]) == 100 + 10 + 1 + 2
    assert tree.path_tokens(leaves).tolist() == [111, 112, 123]


@pytest.mark.parametrize("seed", range(6))
def test_the_program_is_solved_nearly_as_well_as_by_trying_all(seed):
    knobs, here = Knobs(), front(seed)
    shares = by_softmax(here.scores_frac, 16, knobs.score_temperature_ratio)
    num_nodes, num_ideas = np.unique(here.paths).size, np.unique(here.ideas).size

    def worth(retained):
        nodes = np.unique(here.paths[retained]).size + retained.sum()
        covered = np.unique(here.ideas[retained]).size
        gain = shares[retained].sum() / shares.sum() - knobs.node_price_ratio * nodes / (num_nodes + retained.size)
        return gain + knobs.idea_price_ratio * covered / num_ideas

    best = max(worth(np.array(remaining, bool)) for remaining in itertools.product([0, 1], repeat=8) if any(remaining))
    assert worth(kept_of(here, 16, knobs)) >= 0.97 * best


def test_dear_nodes_and_worthless_ideas_leave_one_candidate():
    retained = kept_of(front(1), 16, Knobs(node_price_ratio=100.0, idea_price_ratio=0.0))
    assert retained.sum() == 1
    assert kept_of(front(1), 1000, Knobs(node_price_ratio=0.0)).all()


@pytest.mark.parametrize("rule", RULES)
def test_a_search_never_widens_and_ends(rule):
    steps = search(GROWTH, rule)
    widths = [step.num_candidates for step in steps]
    assert widths[0] == 32
    assert widths == sorted(widths, reverse=True)
    assert all(step.kept_tokens <= 100 + step.num_candidates * (step.path_tokens + step.step_tokens) for step in steps)


def test_pruning_by_cache_keeps_less_than_by_score_and_diversity_keeps_most():
    def retained(rule):
        wide = (search(replace(GROWTH, width=128, seed=seed), rule) for seed in range(3))
        return sum(step.kept_tokens for steps in wide for step in steps)

    assert 1.2 * retained("shared-cache-tree") < retained("balanced-tree") < retained("diverse-tree")


def test_steps_as_calls_write_and_read_what_was_grown():
    steps = search(GROWTH, "balanced-tree")
    calls = step_calls(steps, 4)
    assert Graph(calls=calls).written_tokens() == pytest.approx(
        4 * sum(step.num_candidates * step.step_tokens for step in steps)
    )
    for step, call in zip(steps, calls[::2], strict=True):
        assert call.kept_tokens(True) == pytest.approx(4 * step.kept_tokens)
