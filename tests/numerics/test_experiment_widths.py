"""Widths of experiments in number formats are the user's."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.experiment import run_experiment


def test_fixed_points_take_the_widths_that_are_set_and_wider_ones_lose_less():
    rows = run_experiment("qfx", steps=20, sizes=["bits=3,12"]).rows
    assert {row["width_bits"] for row in rows} == {0, 3, 12}
    loss = {(row["width_bits"], row["points"]): row["loss"] for row in rows}
    assert loss[3, "no overflow"] > loss[12, "no overflow"]


def test_noise_takes_the_bits_that_are_set():
    rows = run_experiment("gaussian-weights", steps=2, sizes=["noise_bits=5"]).rows
    assert [row["trained"] for row in rows] == ["exact", "noise of 5 bits"]


@pytest.mark.parametrize(("name", "size"), [("qfx", "bits=1"), ("qfx", "bits=x"), ("gaussian-weights", "noise_bits=0")])
def test_widths_that_there_are_not_are_refused(name, size):
    with pytest.raises(ScenarioError, match="comma-separated numbers"):
        run_experiment(name, steps=1, sizes=[size])
