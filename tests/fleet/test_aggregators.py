"""Rules that join gradients of which some are lies: by hand on a few vectors, and trained with."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.decentral.aggregators import flag, mean, median, nearest_neighbours, trimmed_mean
from orrery.scenario.experiment import run_experiment

SENT = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 1.0], [100.0, -50.0]])


def test_rules_by_hand():
    assert mean(SENT, 1) == pytest.approx([26.5, -12.25])
    assert median(SENT, 1) == pytest.approx([2.5, 0.0])
    assert trimmed_mean(SENT, 1) == pytest.approx([2.5, 0.0])
    assert trimmed_mean(SENT, 0) == pytest.approx(mean(SENT, 0))
    # each looks at its one nearest other: squared distances 1, 1 and 2; the first of the smallest is kept
    assert nearest_neighbours(SENT, 1) == pytest.approx([1.0, 0.0])


def test_a_flag_of_one_dimension_leaves_out_a_direction_that_nobody_shares():
    """Three along the first axis, a liar along the second: the mean (0.75, 2.5) keeps what lies on the first."""
    sent = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 10.0]])
    assert flag(sent, 1) == pytest.approx([0.75, 0.0], abs=1e-6)
    assert flag(sent, 2) == pytest.approx([0.75, 2.5])


def test_a_flag_of_all_dimensions_is_the_mean():
    sent = np.random.default_rng(0).standard_normal((5, 9))
    assert flag(sent, 5) == pytest.approx(sent.mean(axis=0))


def test_a_flag_of_few_dimensions_outvotes_what_the_mean_follows():
    """Random lies a hundred times as long; a dimension for each liar lets all of them in again."""
    sizes = ("workers=6", "liars=0,2", "length_ratio=100", "dimensions=1,6")
    rows = run_experiment("lying-workers", steps=20, sizes=sizes).rows
    loss = {(row["rule"], row["liars"]): row["loss_ratio"] for row in rows}
    for rule in ("median", "trimmed mean", "nearest neighbours", "flag of 1"):
        assert loss[rule, 2] < 0.9
    assert loss["mean", 2] > 10.0
    assert loss["flag of 6", 2] == pytest.approx(loss["mean", 2], rel=1e-3)
    assert loss["trimmed mean", 0] == pytest.approx(loss["mean", 0])


def test_a_subspace_does_not_see_that_a_vector_was_turned_round():
    sizes = ("workers=8", "liars=2", "lie=flipped", "dimensions=1")
    rows = run_experiment("lying-workers", steps=20, sizes=sizes).rows
    loss = {row["rule"]: row["loss_ratio"] for row in rows}
    assert loss["flag of 1"] > 1.0 > loss["median"]


@pytest.mark.parametrize(
    ("size", "words"),
    [("liars=6", "numbers from 0 to 5"), ("lie=half", "random or flipped"), ("dimensions=13", "write 1 to 12")],
)
def test_what_makes_no_sense_is_refused(size, words):
    with pytest.raises(ScenarioError, match=words):
        run_experiment("lying-workers", steps=1, sizes=(size,))
