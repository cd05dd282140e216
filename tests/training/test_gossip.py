"""Averages of networks that start apart: their variance by hand, and what scaling it back does."""

from math import sqrt

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.experiment import run_experiment
from orrery.training.small.gossip import gossip, matrices, scaled_to
from orrery.training.small.workers import Workers


def test_rows_are_scaled_about_their_mean():
    """1 and 3 have variance 1 about 2; with variance 4 they are 0 and 4."""
    assert scaled_to(np.array([[1.0, 3.0]]), np.array([4.0])) == pytest.approx(np.array([[0.0, 4.0]]))


def test_matrices_are_found_in_the_vector():
    problem = Workers(3, 0)
    inputs, hidden, classes = problem.widths
    first, second = matrices(problem)
    assert (first.start, first.stop) == (0, inputs * hidden)
    assert (second.start, second.stop) == (inputs * hidden + hidden, inputs * hidden + hidden + hidden * classes)


def found(**more):
    return gossip(Workers(6, 0), **({"steps": 30, "every": 1, "keeps_variance": False, "shares_start": False} | more))


def test_the_mean_of_three_strangers_has_a_third_of_their_variance():
    assert found(steps=1).spreads_ratio[1] == pytest.approx(1.0 / sqrt(3.0), rel=0.03)
    assert found(steps=1, keeps_variance=True).spreads_ratio[1] == pytest.approx(1.0, rel=0.02)


def test_scaling_ends_the_delay_and_changes_nothing_among_networks_that_agree():
    plain, scaled = found(), found(keeps_variance=True)
    alike, alike_scaled = found(shares_start=True), found(shares_start=True, keeps_variance=True)
    assert alike.losses_ratio[-1] < scaled.losses_ratio[-1] < 0.75 * plain.losses_ratio[-1]
    assert alike_scaled.losses_ratio == pytest.approx(alike.losses_ratio, rel=0.01)


def test_networks_that_never_meet_keep_their_variance():
    alone = found(every=0, steps=10)
    assert alone.spreads_ratio == pytest.approx(np.ones(11), abs=0.02)
    assert found(every=0, steps=10, keeps_variance=True).losses_ratio.tolist() == alone.losses_ratio.tolist()


def test_the_experiment_has_all_four_ways():
    rows = run_experiment("gossip-variance", steps=2, sizes=("workers=3", "every=2")).rows
    assert len(rows) == 4 * 3
    with pytest.raises(ScenarioError, match="write 1 to 2"):
        run_experiment("gossip-variance", steps=2, sizes=("every=3",))
