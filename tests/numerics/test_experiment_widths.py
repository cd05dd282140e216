"""Widths of experiments in number formats are the user's."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.numerics.experiments.tasks import own_text
from orrery.scenario.experiment import run_experiment


def test_fixed_points_take_the_widths_that_are_set_and_wider_ones_lose_less():
    rows = run_experiment("qfx", steps=20, sizes=["bits=3,12"]).rows
    assert {row["width_bits"] for row in rows} == {0, 3, 12}
    loss = {(row["width_bits"], row["points"]): row["loss"] for row in rows}
    assert loss[3, "no overflow"] > loss[12, "no overflow"]


def test_noise_takes_the_bits_that_are_set():
    rows = run_experiment("gaussian-weights", steps=2, sizes=["noise_bits=5"]).rows
    assert [row["trained"] for row in rows] == ["exact", "noise of 5 bits"]


def written(folder, **arrays):
    np.savez(folder / "own.npz", **arrays)
    return str(folder / "own.npz")


def test_noise_learns_the_users_own_text(tmp_path):
    # 0 1 2 0 1 2 … in the first three quarters, 0 2 1 0 2 1 … in the last: what is learnt is wrong where it is judged
    same = np.tile([0, 1, 2], 400)
    other = np.concatenate([np.tile([0, 1, 2], 300), np.tile([0, 2, 1], 100)])
    drawn = own_text({"tokens": other}, 16)
    x, y = drawn.learned.draw(50, np.random.default_rng(0))
    assert (x.shape, drawn.num_inputs) == ((50, 16), 3)
    assert ((x + 1) % 3 == y).all()
    x, y = drawn.judged.draw(50, np.random.default_rng(0))
    assert ((x + 2) % 3 == y).all()
    losses = [
        run_experiment("gaussian-weights", steps=60, sizes=["noise_bits=6"], data=written(tmp_path, tokens=text)).rows[
            0
        ]["loss"]
        for text in (same, other)
    ]
    assert losses[0] < 0.05
    assert losses[1] > 1.0


@pytest.mark.parametrize("tokens", [np.arange(10), np.full(400, 0.5), np.full(400, -1), np.zeros((20, 20)), None])
def test_texts_that_are_none_are_refused(tokens, tmp_path):
    data = written(tmp_path, words=[1]) if tokens is None else written(tmp_path, tokens=tokens)
    with pytest.raises(ScenarioError, match="whole numbers from 0 to 4095"):
        run_experiment("gaussian-weights", steps=2, data=data)


@pytest.mark.parametrize(("name", "size"), [("qfx", "bits=1"), ("qfx", "bits=x"), ("gaussian-weights", "noise_bits=0")])
def test_widths_that_there_are_not_are_refused(name, size):
    with pytest.raises(ScenarioError, match="comma-separated numbers"):
        run_experiment(name, steps=1, sizes=[size])
