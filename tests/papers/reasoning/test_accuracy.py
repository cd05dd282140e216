"""Streams of the paper on regret of test-time compute, beside counting."""

import pytest

from orrery.reasoning.coverage import Difficulty
from orrery_papers.meta_rl_finetuning.regret import Stream


def test_stopping_when_done_needs_fewer_episodes_and_regret_adds_up():
    stream = Stream(difficulty=Difficulty(mean_frac=0.5, evenness_ratio=2.0), num_episodes=4)
    assert stream.needed_episodes() == pytest.approx(1 + 1 / 2 + 1 / 3 + 1 / 4)
    assert stream.regret_episodes() == pytest.approx(1 / 2 + 1 / 3 + 1 / 4 + 1 / 5)
    assert stream.progress() == pytest.approx([1 / 2, 1 / 6, 1 / 12, 1 / 20])
    assert stream.progress().sum() == pytest.approx(stream.solved_frac()) == pytest.approx(0.8)
    assert Stream(difficulty=stream.difficulty, num_episodes=1).saving_ratio() == 1.0
