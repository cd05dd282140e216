"""Rotations, wide features and blocks of two widths as a scenario states them; parts of a run; models as lists of
matrices."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.planner.bits.sensitivity import relative_error
from orrery.scenario import bits_checkpoint
from orrery.scenario.bits_checkpoint import layers_in, matrices
from orrery.scenario.narrow_products import (
    check_mixed_widths,
    check_stored,
    mixes_widths,
    online_rotation_of,
    wide_format_of,
    wide_frac_of,
)
from orrery.scenario.schema import read_scenario
from orrery.scenario.simulate import read_window
from orrery.scenario.tensor_file import Tensor

DENSE, MIXTURE = get_model("llama-3.2-1b"), get_model("mixtral-8x7b")
INT4, WIDE = ("int4_weight_only",), ("bf16", "fp16")


def test_blocks_that_a_rotation_turns():
    assert online_rotation_of(read_scenario({}), WIDE) is None
    assert online_rotation_of(read_scenario({"online_rotation": "32"}), INT4).block_features == 32
    assert online_rotation_of(read_scenario({"online_rotation": "2"}), INT4).block_features == 2
    folded = online_rotation_of(read_scenario({"online_rotation": "folded"}), INT4)
    assert folded != online_rotation_of(read_scenario({"online_rotation": "32"}), INT4)
    for word in ("1", "0", "7", "-2", "many", "2.0"):
        with pytest.raises(ScenarioError, match="that a Hadamard matrix is known for"):
            online_rotation_of(read_scenario({"online_rotation": word}), INT4)
    with pytest.raises(ScenarioError, match="no product is narrow in bf16, fp16"):
        online_rotation_of(read_scenario({"online_rotation": "32"}), WIDE)
    assert online_rotation_of(read_scenario({"online_rotation": "32"}), ("bf16", *INT4)) is not None


def test_features_that_stay_wide():
    assert wide_frac_of(read_scenario({}), WIDE, DENSE) == 0.0
    assert wide_frac_of(read_scenario({"wide_frac": 0}), WIDE, MIXTURE) == 0.0
    assert wide_frac_of(read_scenario({"wide_frac": 0.01}), INT4, DENSE) == 0.01
    with pytest.raises(ScenarioError, match="no product is narrow"):
        wide_frac_of(read_scenario({"wide_frac": 0.01}), WIDE, DENSE)
    with pytest.raises(ScenarioError, match="the experts of"):
        wide_frac_of(read_scenario({"wide_frac": 0.01}), INT4, MIXTURE)
    assert wide_format_of(read_scenario({}), INT4) == "bf16"
    assert wide_format_of(read_scenario({"wide_format": "fp8", "wide_frac": 0.01}), INT4) == "fp8"
    with pytest.raises(ScenarioError, match="no features are wide"):
        wide_format_of(read_scenario({"wide_format": "fp8"}), INT4)
    with pytest.raises(ScenarioError, match="the format of the weights"):
        wide_format_of(read_scenario({"wide_format": "fp8", "wide_frac": 0.01}), ("fp8",))


MIXED = {"activations": "int4+int8", "wide_frac": 0.1}


def test_blocks_of_two_widths():
    ampere, hopper = get_device("a100-sxm-80gb"), get_device("h100-sxm")
    assert mixes_widths(read_scenario(MIXED))
    assert not mixes_widths(read_scenario({"activations": "int8"}))
    assert not mixes_widths(read_scenario({}))
    check_mixed_widths(read_scenario(MIXED), INT4, DENSE, [ampere])
    for settings, weights, model, device, words in (
        (MIXED, ("int4_weight_only", "int8"), DENSE, ampere, "meet four-bit weights, not int8"),
        (MIXED, INT4, DENSE, hopper, "none of h100-sxm are known"),
        (MIXED, INT4, MIXTURE, ampere, "run in one format"),
        ({"activations": "int4+int8"}, INT4, DENSE, ampere, "wide_frac: is missing"),
        (MIXED | {"wide_format": "fp8"}, INT4, DENSE, ampere, "leave wide_format out"),
    ):
        with pytest.raises(ScenarioError, match=words):
            check_mixed_widths(read_scenario(settings), weights, model, [ampere, device])
    check_stored(read_scenario({"weights": "int4", "kv": "fp8"}))
    check_stored(read_scenario({}))
    for name in ("weights", "kv"):
        with pytest.raises(ScenarioError, match=f"{name}: int4\\+int8 is of activations alone"):
            check_stored(read_scenario({name: "int8,int4+int8"}))


@pytest.mark.parametrize(("text", "window"), [("10:20", (10, 20)), (":5", (0, 5)), ("0:0.5", (0, 0.5))])
def test_a_part_of_a_run(text, window):
    assert read_window(text) == window


@pytest.mark.parametrize("text", ["10", "20:10", "10:10", "-1:5", "1:inf", "a:b", "1:", ""])
def test_parts_that_are_none(text):
    with pytest.raises(ScenarioError, match="write START:END in seconds"):
        read_window(text)


def tensor(name, shape, dtype="F32"):
    numbers = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return Tensor(name=name, dtype=dtype, shape=shape, read=lambda: numbers)


def test_matrices_of_a_checkpoint(tmp_path, monkeypatch):
    """Projections are; embeddings, norms, heads, gates of experts and vectors are not."""
    names = ("model.embed_tokens.weight", "lm_head.weight", "x.norm.weight", "mlp.gate.weight", "router.weight")
    held = [*(tensor(name, (4, 4)) for name in names), tensor("mlp.gate_proj.weight", (4, 4)), tensor("bias", (4,))]
    monkeypatch.setattr(bits_checkpoint, "tensors_in", lambda _: held)
    file = tmp_path / "model.safetensors"
    assert [found.name for found in matrices(file)] == ["mlp.gate_proj.weight"]
    held.append(tensor("packed.weight", (4, 4), dtype="I32"))
    with pytest.raises(ScenarioError, match=r"packed\.weight is stored as I32"):
        list(matrices(file))
    with pytest.raises(ScenarioError, match=r"is no \.safetensors file"):
        list(matrices(tmp_path / "model.npz"))


def test_layers_of_a_checkpoint(tmp_path, monkeypatch):
    """Outputs come first: 4 x 6 weights take 6 features of 5 tokens to 4. A layer with a trace counts its error as it
    is, the relative one times the sum of its squares."""
    weights = tensor("a.weight", (4, 6)), tensor("b.weight", (4, 6))
    monkeypatch.setattr(bits_checkpoint, "tensors_in", lambda _: weights)
    (tmp_path / "model.safetensors").touch()
    first, second = layers_in(tmp_path, 5, ("fp8",), {"b.weight": 0.5})
    assert (first.name, first.group, first.num_parameters, first.weight_ratio) == ("a.weight", "4 x 6", 24, 1.0)
    assert (first.work.m, first.work.n, first.work.k) == (5, 4, 6)
    numbers = weights[0].read()
    error = relative_error(numbers, "fp8")
    assert first.errors == {"fp8": error}
    assert second.weight_ratio == 0.5
    assert second.errors["fp8"] == pytest.approx(error * float((numbers.astype(np.float64) ** 2).sum()))
    monkeypatch.setattr(bits_checkpoint, "MAX_ELEMENTS", 12)  # every second row stands for the whole
    (half, _) = layers_in(tmp_path, 5, ("fp8",), {})
    assert half.errors["fp8"] == relative_error(np.ascontiguousarray(numbers[::2]), "fp8")


def test_folders_without_weights(tmp_path, monkeypatch):
    with pytest.raises(ScenarioError, match=r"holds no \.safetensors file"):
        layers_in(tmp_path, 5, ("fp8",), {})
    monkeypatch.setattr(bits_checkpoint, "tensors_in", lambda _: ())
    with pytest.raises(ScenarioError, match="holds no matrix of weights"):
        layers_in(tmp_path / "model.safetensors", 5, ("fp8",), {})
