"""A chain of filters by hand, and what it refuses."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.filters import Filter, f1_frac, through
from orrery.scenario.experiment import run_experiment

ALL = Filter(
    relevant_kept_frac=1.0,
    other_kept_frac=1.0,
    message_bytes=0.0,
    message_flops=0.0,
    energy_j_per_bytes=1.0,
    energy_j_per_flops=1.0,
)
HALF = Filter(
    relevant_kept_frac=0.5,
    other_kept_frac=0.1,
    message_bytes=4.0,
    message_flops=10.0,
    energy_j_per_bytes=0.5,
    energy_j_per_flops=0.25,
    idle_w=7.0,
)


def test_a_chain_by_hand():
    """100 a second, 20 relevant: the link takes 100 x 4 x 0.5 W, computing 100 x 10 x 0.25 + 7; 10 and 8 are left."""
    first, second, last = through([HALF, HALF], 100.0, 0.2)
    assert (first.link_w, first.compute_w) == (200.0, 257.0)
    assert (second.relevant_hz, second.other_hz) == pytest.approx((10.0, 8.0))
    assert (second.link_w, second.compute_w) == pytest.approx((36.0, 52.0))
    assert (last.relevant_hz, last.other_hz, last.total_w) == pytest.approx((5.0, 0.8, 0.0))
    assert f1_frac(first, last) == pytest.approx(2 * 5.0 / (5.8 + 20.0))


def test_a_stage_that_keeps_all_and_costs_nothing_changes_nothing():
    plain, more = through([HALF], 100.0, 0.2), through([ALL, HALF], 100.0, 0.2)
    assert more[1:] == plain
    assert more[0].total_w == 0.0


def test_what_an_early_stage_throws_away_no_later_one_pays_for():
    def drawn(*sizes):
        return run_experiment("filter-chain", sizes=sizes).rows

    plain, better = drawn(), drawn("other_kept=0.005,0.01")
    assert better[0]["total_w"] == plain[0]["total_w"]
    assert better[1]["total_w"] == pytest.approx(plain[1]["total_w"] * 5090.0 / 10094.0, rel=1e-3)
    assert better[-1]["energy_per_relevant_j"] < plain[-1]["energy_per_relevant_j"]


@pytest.mark.parametrize("size", ["rate_hz=0", "relevant_frac=1", "relevant_kept=0.9,2", "message_flops=1,2,3"])
def test_what_makes_no_sense_is_refused(size):
    with pytest.raises(ScenarioError):
        run_experiment("filter-chain", sizes=(size,))
