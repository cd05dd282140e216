"""Experiments: every one runs and answers the same again; what they show at full length is marked slow."""

import json

import numpy as np
import pytest

from orrery.base.errors import OutOfRange, UnknownName
from orrery.base.experiment import counter
from orrery.cli.experiment import command
from orrery.numerics.experiments.registry import known_experiments
from orrery.numerics.experiments.studies.fp4_design_space import RECIPES
from orrery.numerics.experiments.studies.symmetric_clipping import bias_ratio
from orrery.numerics.learning.techniques.integer_linear import IntegerKnobs
from orrery.scenario.experiment import run_experiment

OURS = (
    "fp4-design-space",
    "fp4-recipes",
    "fp8-and-back",
    "fp8-and-bf16",
    "gaussian-weights",
    "integer-inference",
    "symmetric-clipping",
)


@pytest.mark.parametrize("name", OURS)
def test_every_experiment_answers_with_finite_numbers_and_counts_its_steps(name):
    description = []
    rows = known_experiments()[name](seed=1, steps=1, progress=lambda done, total: description.append((done, total)))
    assert len(rows) > 3
    assert description[-1][0] == description[-1][1] == len(description)
    for row in rows:
        assert all(np.isfinite(v) for v in row.values() if isinstance(v, float))


def test_an_experiment_repeats_itself():
    experiment = known_experiments()["integer-inference"]
    assert experiment(seed=2, steps=5) == experiment(seed=2, steps=5)
    assert experiment(seed=2, steps=5) != experiment(seed=3, steps=5)


def test_channels_beat_tensors_and_training_on_beats_rounding_afterwards():
    rows = known_experiments()["integer-inference"](steps=150)
    loss = {(r["weights"], r.get("scale"), r["rounded"]): r["loss"] for r in rows}
    decibels = {(r["weights"], r["scale"]): r["weights_sqnr_db"] for r in rows[1:]}
    for bits in ("int8", "int4"):
        assert decibels[bits, "row"] > decibels[bits, "tensor"]
        assert loss[bits, "row", "after training"] < loss[bits, "tensor", "after training"]
    for share in ("row", "tensor"):
        assert loss["int4", share, "while training"] < loss["int4", share, "after training"]
        assert decibels["int8", share] > decibels["int4", share] + 20.0  # six a bit


def test_the_design_space_marks_a_front():
    rows = known_experiments()["fp4-design-space"](steps=1)
    assert len(rows) == len(RECIPES) == 30
    front = [row for row in rows if row["is_on_front"]]
    assert front[0]["extra_operations"] == 0.0
    for row in rows:
        beaten = any(f["loss"] <= row["loss"] and f["extra_operations"] <= row["extra_operations"] for f in front)
        assert beaten


@pytest.mark.slow
def test_sharpness_loss_and_failures_rise_as_bits_go():
    rows = {row["format"]: row for row in known_experiments()["fp8-and-back"]()}
    for column in ("loss", "sharpness_frac"):
        assert rows["e8m7"][column] < rows["e8m2"][column] < rows["e8m1"][column]
    assert rows["e8m7"]["failed_frac"] == 0.0
    assert rows["e3m7"]["failed_frac"] == 1.0


def test_the_lowest_code_biases_eight_bits_in_sixteen_bit_arithmetic_only():
    assert bias_ratio(IntegerKnobs(is_symmetric=False), 0) < -0.004
    assert abs(bias_ratio(IntegerKnobs(is_symmetric=True), 0)) < 0.003
    assert abs(bias_ratio(IntegerKnobs(is_symmetric=False, arithmetic="fp32"), 0)) < 0.003


def test_names_and_limits_are_checked():
    with pytest.raises(UnknownName, match="fp4-recipes"):
        run_experiment("fp4-recipe")
    with pytest.raises(OutOfRange, match="write a seed from 0"):
        known_experiments()["fp4-recipes"](seed=-1)
    assert set(OURS) <= set(known_experiments())
    assert all(experiment.question.endswith("?") for experiment in known_experiments().values())


def test_the_counter_tells_every_step():
    description = []
    tick = counter(lambda done, total: description.append((done, total)), 3)
    for _ in range(3):
        tick()
    assert description == [(1, 3), (2, 3), (3, 3)]


def test_the_command_lists_and_runs(capsys):
    command.main([], standalone_mode=False)
    listed = capsys.readouterr().out
    assert all(name in listed for name in OURS)
    command.main(["integer-inference", "--steps", "2", "--seed", "1", "--json"], standalone_mode=False)
    answer = json.loads(capsys.readouterr().out)
    assert answer["experiment"] == "integer-inference"
    assert (answer["seed"], answer["num_steps"], len(answer["rows"])) == (1, 2, 9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_four_bit_losses_lie_above_exact_ones_and_not_far(seed):
    rows = {row["recipe"]: row for row in known_experiments()["fp4-recipes"](seed=seed)}
    assert all(0.0 < row["gap"] < 0.2 for name, row in rows.items() if name != "exact")
    assert rows["nvfp4, last block exact"]["gap"] < rows["nvfp4"]["gap"]
