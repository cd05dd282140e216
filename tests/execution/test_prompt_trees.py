"""Trees of guesses from prompt tokens: the likeliest paths, and the chain of trees."""

from itertools import product

import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.prompt_trees import likeliest, prompt_trees

GUESSES = ((0.5, 0.2, 0.1), (0.3, 0.15, 0.05), (0.2, 0.1, 0.05))


def test_the_likeliest_paths_are_those_of_all_paths():
    every = []
    for depth in (1, 2, 3):
        for path in product(range(3), repeat=depth):
            chance = 1.0
            for level, rank in zip(GUESSES, path, strict=False):
                chance *= level[rank]
            every.append(chance)
    found = [p for p, _ in likeliest(GUESSES, 3, 20)]
    assert found == pytest.approx(sorted(every, reverse=True)[:20])


def test_every_path_comes_after_its_start():
    paths = [path for _, path in likeliest(GUESSES, 3, 30)]
    assert all(path[:-1] in paths[:i] for i, path in enumerate(paths) if len(path) > 1)
    assert max(len(p) for p in (path for _, path in likeliest(GUESSES, 2, 30))) == 2


def test_a_single_sure_guess_doubles_a_step():
    assert prompt_trees(((1.0,),), 8).step_tokens == pytest.approx(2.0)


def test_room_for_everything_yields_the_whole_tree():
    whole = 1.0 + 0.8 + 0.8 * 0.5 + 0.8 * 0.5 * 0.35
    assert prompt_trees(GUESSES, 400).step_tokens == pytest.approx(whole, rel=1e-6)


def test_larger_trees_yield_more_and_ever_less_more():
    yields = [prompt_trees(GUESSES, n).step_tokens for n in (8, 16, 32, 64)]
    assert yields == sorted(yields)
    assert yields[1] - yields[0] > yields[3] - yields[2]
    assert prompt_trees(GUESSES, 32).num_tokens <= 32


def test_too_little_room_is_refused():
    with pytest.raises(ScenarioError, match="most_tokens = 4"):
        prompt_trees(GUESSES, 4)
