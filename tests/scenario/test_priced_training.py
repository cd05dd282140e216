"""``experiment mono-forward``: what a run on a device costs that is larger than the one that is trained."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.experiment import run_experiment

SMALL = ("widths=4", "points=64", "batch=16")


def priced(*sizes, **more):
    found = run_experiment("mono-forward", steps=more.pop("steps", 2), device="l4", sizes=[*SMALL, *sizes], **more)
    return {row["rule"]: row for row in found.rows if not row["stops_early"]}


def test_said_as_it_was_trained_it_is_the_trained_run():
    row = priced()["backpropagation"]
    again = priced("priced_widths=4", "priced_batch=16", f"priced_passes={row['passes']}")["backpropagation"]
    assert all(again[part] == pytest.approx(row[part]) for part in ("time_s", "energy_j", "memory_bytes"))


def test_a_slow_loader_sets_the_pace_by_hand():
    """50 batches of 20 points a pass, three passes, a millisecond a point."""
    found = priced("priced=1000:8:3", "priced_batch=20", "priced_passes=3", "loader_s=1e-3")
    assert [row["time_s"] for row in found.values()] == pytest.approx([3 * 50 * 20 * 1e-3] * 4)


def test_passes_and_context_add_up():
    one, two = (priced("priced=1000:8:3", f"priced_passes={n}") for n in (1, 2))
    held = priced("priced=1000:8:3", "priced_passes=1", "context_bytes=1e9")
    for name, row in one.items():
        assert two[name]["time_s"] == pytest.approx(2.0 * row["time_s"])
        assert two[name]["energy_j"] == pytest.approx(2.0 * row["energy_j"])
        assert held[name]["memory_bytes"] == pytest.approx(row["memory_bytes"] + 1e9)


def test_rules_that_train_in_turn_hold_less_of_wide_layers():
    found = priced("priced=1000:784:10", "priced_widths=1000,1000,1000", "priced_batch=512")
    assert found["mono-forward"]["memory_bytes"] < found["backpropagation"]["memory_bytes"]


@pytest.mark.parametrize(
    "size", ["priced=1000", "priced=0:8:3", "priced_widths=0", "loader_s=-1", "priced_batch=-1", "priced_passes=x"]
)
def test_sizes_that_make_no_sense_are_refused(size):
    with pytest.raises(ScenarioError, match=size.split("=", maxsplit=1)[0]):
        priced(size)
