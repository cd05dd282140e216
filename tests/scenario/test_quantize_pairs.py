"""Pairs of formats of weights and activations: by hand, off, limits, tables, and what is refused."""

import json

import numpy as np
import pytest

from orrery import quantize
from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.scenario.quantize_pairs import front

RNG = np.random.default_rng(3)
WEIGHTS = RNG.standard_normal((8, 16)).astype(np.float32)
PAIRS = {"formats": "int4sym/row", "recipes": "gptq", "activation_formats": "int8sym/tensor,bf16"}


@pytest.fixture
def seen(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, RNG.standard_normal((512, 16)).astype(np.float32))
    return str(path)


def rounded(values, bits, axis):
    """Symmetric integers with one scale along an axis, the largest magnitude on the last point."""
    scale = np.abs(values).max(axis=axis, keepdims=True) / (2 ** (bits - 1) - 1)
    return np.rint(values / scale) * scale


def test_a_pair_by_hand(seen):
    """Rounded weights, a scale a row, times activations of 8 bits, one scale for all, on the rows that judge."""
    answer = quantize(WEIGHTS, activations=seen, **PAIRS | {"recipes": "round-to-nearest"})
    numbers = np.load(seen).astype(np.float64)
    alike = [m for m in answer.layers if m.activations == "int8sym/tensor"]
    assert len(alike) == 1
    weights = rounded(WEIGHTS.astype(np.float64), 4, 1)
    x = numbers  # the order is drawn: the error of all rows is near that of those that judge
    exact, found = x @ WEIGHTS.T.astype(np.float64), rounded(x, 8, None) @ weights.T
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert alike[0].output_error_frac == pytest.approx(error, rel=0.1)


def test_wide_activations_lose_what_the_weights_lose(seen):
    """Exact ones, and 16 bits, cost nothing beside four bits of weights; a pair of two narrow formats loses more."""
    answer = quantize(WEIGHTS, activations=seen, **PAIRS | {"activation_formats": "int3sym/tensor,int8sym/tensor,fp32"})
    by = {p.activations: p for p in answer.pairs}
    assert by["int3sym/tensor"].output_sqnr_db < by["int8sym/tensor"].output_sqnr_db
    assert by["int8sym/tensor"].output_sqnr_db == pytest.approx(by["fp32"].output_sqnr_db, abs=0.5)
    assert [p.bits for p in answer.pairs] == sorted(p.bits for p in answer.pairs)


def test_without_them_activations_are_rounded_like_the_weights(seen):
    plain = quantize(WEIGHTS, activations=seen, formats="int6sym/tensor", recipes="round-to-nearest")
    alike = quantize(
        WEIGHTS,
        activations=seen,
        formats="int6sym/tensor",
        recipes="round-to-nearest",
        activation_formats="int6sym/tensor",
    )
    assert plain.pairs == ()
    assert plain.layers[0].activations == "int6sym/tensor"
    assert plain.layers[0].output_sqnr_db == alike.layers[0].output_sqnr_db == alike.pairs[0].output_sqnr_db


def test_tables_and_fronts(seen):
    """Products of 4 and 8 bits with sums of 1024: an integer with a float has no circuit that is counted."""
    answer = quantize(
        WEIGHTS,
        activations=seen,
        formats="int4sym/row,int6sym/row",
        recipes="gptq",
        activation_formats="int4sym/tensor,e4m3finite/tensor",
        cost="lut",
        sum_terms=1024,
    )
    luts = {(p.weights, p.activations): p.num_luts for p in answer.pairs}
    assert luts["int4sym/row", "int4sym/tensor"] < luts["int6sym/row", "int4sym/tensor"]
    assert luts["int4sym/row", "e4m3finite/tensor"] is None
    best = [p for p in answer.pairs if p.is_best_of_luts]
    assert best
    assert [p.output_sqnr_db for p in best] == sorted(p.output_sqnr_db for p in best)
    assert [p for p in answer.pairs if p.is_best_of_bits] == front(answer.pairs, lambda p: p.bits)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"activation_formats": "int8"}, "serve recipes alone"),
        ({"recipes": "gptq", "cost": "lut"}, "is of pairs of formats"),
        ({"recipes": "gptq", "activation_formats": "int8", "cost": "dsp"}, "in lut alone"),
        ({"recipes": "gptq", "activation_formats": "int8", "sum_terms": 8}, "has no effect without cost"),
        ({"recipes": "gptq", "activation_formats": "int99"}, "int99"),
    ],
)
def test_what_is_refused(settings, words):
    with pytest.raises(Exception, match=words) as raised:
        quantize(WEIGHTS, formats="int4sym/row", **settings)
    assert isinstance(raised.value, ScenarioError | ValueError)


def test_the_command_prints_pairs(capsys):
    words = ["quantize", "weights", "--rows", "16", "--columns", "16", "--formats", "int4sym/row", "--recipes", "gptq"]
    assert run([*words, "--activation-formats", "int8sym/tensor", "--cost", "lut"]) == 0
    assert "int8sym/tensor" in capsys.readouterr().out
    assert run([*words, "--activation-formats", "int8sym/tensor", "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert (pair["activations"], pair["num_luts"], pair["is_best_of_bits"]) == ("int8sym/tensor", None, True)
