"""`orrery quantize`: errors that another library confirms, files that are partly wrong, and what stands on the page."""

import csv
import importlib
import json
import math

import ml_dtypes
import numpy as np
import pytest

import orrery
from orrery.numerics.parse import parse_format
from orrery.numerics.quantise import quantise as to_codes
from orrery.scenario.quantize import quantize
from orrery.scenario.signal import stored_bytes

SMALL = ("--rows", "64", "--columns", "96")


def output_of(describe, *arguments):
    code, out, err = describe("quantize", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.fixture
def weights(tmp_path):
    array = np.random.default_rng(3).standard_normal((64, 96)).astype(np.float32)
    np.save(tmp_path / "w.npy", array)
    return tmp_path / "w.npy", array


def test_errors_are_those_of_another_library_that_rounds(describe, weights):
    path, x = weights
    found = output_of(describe, path, "--formats", "e4m3fn/none,e5m2/none,bf16")
    for row, dtype in zip(
        found["results"], (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16), strict=True
    ):
        error = x.astype(dtype).astype(np.float64) - x
        assert row["sqnr_db"] == pytest.approx(10 * np.log10((x.astype(np.float64) ** 2).sum() / (error**2).sum()))
        assert row["max_abs_error"] == np.abs(error).max()
        assert row["mean_error"] == pytest.approx(error.mean())
        assert row["shape"] == [64, 96]


def test_totals_are_those_of_all_numbers_together(tmp_path):
    rng = np.random.default_rng(5)
    parts = {"a": rng.standard_normal(1000), "b": 100 * rng.standard_normal(10), "c": np.zeros(7)}
    np.savez(tmp_path / "x.npz", **{name: part.astype(np.float32) for name, part in parts.items()})
    found = quantize(tmp_path / "x.npz", formats="e4m3fn/none").totals[0]
    whole = quantize(np.concatenate(list(parts.values())).astype(np.float32), formats="e4m3fn/none").results[0].error
    for name in (
        "num_elements",
        "sqnr_db",
        "mean_square_error",
        "max_abs_error",
        "mean_error",
        "relative_error_frac",
        "zeros_frac",
    ):
        assert getattr(found.error, name) == pytest.approx(getattr(whole, name)), name
    assert found.num_tensors == 3


@pytest.mark.parametrize("shape", [(7, 37), (128, 256), (5,), (3, 130, 20)])
@pytest.mark.parametrize("format", ["nvfp4", "mxfp4", "fp8", "int8", "fp8_block", "uint4/16:fp16:zero", "bf16", "q4_1"])
def test_bytes_are_codes_and_every_scale_that_is_stored(shape, format):
    known = parse_format(format)
    stored = to_codes(np.random.default_rng(0).standard_normal(shape).astype(np.float32), known)
    bits = -(-stored.codes.size * known.element_bits // 8) * 8
    if levels := known.scaling.levels:
        zeros = {"": 0, "integer": 8, "minimum": levels[0].bits}[known.scaling.zero_point]
        bits += stored.scales.size * (levels[0].bits + zeros) + 32 * (len(levels) > 1)
    assert stored_bytes(shape, known) == bits / 8


def test_a_tensor_that_cannot_be_measured_is_declined_and_the_rest_goes_on(describe, tmp_path):
    np.savez(
        tmp_path / "x.npz",
        good=np.ones((4, 32), dtype=np.float32),
        empty=np.zeros((0, 3)),
        words=np.array(["a"]),
        bad=np.array([1.0, math.nan, math.inf]),
        huge=np.array([1e300, 1.0]),
        flags=np.array([True]),
    )
    code, out, _ = describe("quantize", tmp_path / "x.npz", "--formats", "mxfp4,fp8", "--json")
    found = json.loads(out)
    assert code == 0
    assert {r["tensor"] for r in found["results"]} == {"good"}
    declined = {d["tensor"]: (d["count"], d["reason"]) for d in found["declined"]}
    assert declined["bad"] == (2, "2 of 3 numbers are NaN or infinite")
    assert declined["huge"] == (1, "1 of 2 numbers are beyond FP32")
    assert declined["empty"] == (0, "it has no numbers")
    assert {"words", "flags"} < declined.keys()
    assert found["totals"][0]["num_elements"] == 128
    _, page, _ = describe("quantize", tmp_path / "x.npz", "--formats", "mxfp4")
    assert "declined: bad" in page


def test_nothing_left_is_bad_input(describe, tmp_path):
    np.save(tmp_path / "x.npy", np.full((2, 2), np.nan))
    code, _, err = describe("quantize", tmp_path / "x.npy", "--formats", "mxfp4")
    assert code == 2
    assert "No tensor could be quantised. x: 4 of 4 numbers are NaN or infinite." in err


def test_the_best_at_its_bits_is_not_beaten_by_any_that_is_as_narrow(describe):
    found = output_of(describe, "normal", "--formats", "nvfp4,mxfp4,nvint4,mxfp8,fp8,mxint8,bf16,fp32", *SMALL)
    totals = found["totals"]
    assert [t["bits_per_element"] for t in totals] == sorted(t["bits_per_element"] for t in totals)
    keeps = {t["format"]: math.inf if t["sqnr_db"] is None else t["sqnr_db"] for t in totals}
    for t in totals:
        rivals = [keeps[o["format"]] for o in totals if o["bits_per_element"] <= t["bits_per_element"] and o is not t]
        assert t["is_best"] == (keeps[t["format"]] > max(rivals, default=-math.inf))
    assert {t["format"] for t in totals if t["is_best"]} >= {"fp32", "mxfp4"}
    assert next(t for t in totals if t["format"] == "fp32")["relative_error_frac"] == 0.0


def test_stochastic_rounding_follows_its_seed_and_every_tensor_has_its_own_draws(describe):
    ask = ("normal", "--formats", "mxfp4", "--rounding", "stochastic", *SMALL)
    first, again, other = (output_of(describe, *ask, *more)["results"] for more in ((), ("--seed", 0), ("--seed", 1)))
    assert first == again
    assert first != other
    nearest = output_of(describe, "normal", "--formats", "mxfp4", *SMALL)["results"]
    assert first[0]["sqnr_db"] < nearest[0]["sqnr_db"]


@pytest.mark.parametrize("mode", ["nearest-away", "toward-zero", "up", "down", "NEAREST_EVEN"])
def test_every_rounding_can_be_asked_for(describe, mode):
    found = output_of(describe, "normal", "--formats", "mxfp4", "--rounding", mode, *SMALL)["results"][0]
    assert (found["mean_error"] > 0.01) == (mode == "up")
    assert (found["mean_error"] < -0.01) == (mode == "down")


def test_recipes_are_judged_on_activations(describe, tmp_path, weights):
    path, _ = weights
    np.save(tmp_path / "acts.npy", np.random.default_rng(4).standard_normal((3, 40, 96)).astype(np.float32))
    found = output_of(
        describe,
        path,
        "--formats",
        "mxfp4,int4_weight_only",
        "--recipes",
        "gptq,hadamard+gptq",
        "--activations",
        tmp_path / "acts.npy",
    )
    recipes = [(m["format"], m["recipe"]) for m in found["layers"]]
    assert recipes == [
        (f, r) for f in ("mxfp4", "int4_weight_only") for r in ("round-to-nearest", "gptq", "hadamard+gptq")
    ]
    assert all(0 < m["output_sqnr_db"] < 60 for m in found["layers"])
    assert not any("drawn" in note for note in found["notes"])
    drawn = output_of(describe, path, "--formats", "mxfp4", "--recipes", "gptq")
    assert any("activations are drawn (activations, seed 0)" in note for note in drawn["notes"])
    assert "hadamard" in describe("quantize", path, "--formats", "mxfp4", "--recipes", "hadamard")[1]


def test_a_recipe_that_cannot_be_leaves_a_note_and_the_others_stand(describe, weights):
    found = output_of(describe, weights[0], "--formats", "mxfp4", "--recipes", "weight-equalisation,hadamard")
    assert [m["recipe"] for m in found["layers"]] == ["round-to-nearest", "hadamard"]
    assert any("weight-equalisation was left out" in note for note in found["notes"])


def test_tensors_are_chosen_by_name(describe, tmp_path):
    np.savez(tmp_path / "x.npz", **{"mlp.up": np.ones((2, 2)), "mlp.down": np.ones((2, 2)), "norm": np.ones(2)})
    found = output_of(describe, tmp_path / "x.npz", "--formats", "fp8", "--tensors", "*mlp*")
    assert [r["tensor"] for r in found["results"]] == ["mlp.up", "mlp.down"]


def test_results_are_written_whole(describe, tmp_path, weights):
    names = ("e.csv", "e.parquet", "e.json")
    out = [word for name in names for word in ("--out", tmp_path / name)]
    found = output_of(describe, weights[0], "normal", "--formats", "nvfp4,fp32", *SMALL, *out)
    rows = list(csv.DictReader((tmp_path / "e.csv").read_text().splitlines()))
    assert [r["format"] for r in rows] == ["nvfp4", "fp32"] * 2
    assert float(rows[0]["sqnr_db"]) == pytest.approx(found["results"][0]["sqnr_db"])
    assert rows[1]["sqnr_db"] == ""
    assert rows[0]["shape"] == "64x96"
    assert json.loads((tmp_path / "e.json").read_text()) == found
    table = importlib.import_module("duckdb").sql(f"SELECT format, sqnr_db FROM '{tmp_path / 'e.parquet'}'").fetchall()
    assert table[0] == ("nvfp4", pytest.approx(found["results"][0]["sqnr_db"]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e.csv", "e.json", "e.parquet", "w.npy"]


@pytest.mark.parametrize("columns", ["50", "80", "140"])
def test_the_page_names_every_format_and_draws_where_there_is_room(describe, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    code, page, notes = describe("quantize", "weights", "outliers", "--formats", "nvfp4,mxfp8,bf16", *SMALL)
    assert code == 0
    for word in ("nvfp4", "mxfp8", "bf16", "outliers", "a*"):
        assert word in page
    assert ("+----" in page) == (columns != "50")
    assert max(map(len, page.splitlines())) <= int(columns)
    assert "seed 0" in notes


def test_a_question_can_be_saved_and_asked_again(describe, tmp_path):
    path = tmp_path / "mine.toml"
    first = output_of(describe, "normal", "--formats", "nvfp4", *SMALL, "--save-scenario", path)
    assert output_of(describe, "--scenario", path) == first
    assert output_of(describe, "uniform", "--scenario", path)["results"][0]["source"] == "uniform"


WRONG = {
    "nothing": ((), "sources: are missing"),
    "no formats": (("normal",), "formats: is missing"),
    "unknown format": (("normal", "--formats", "nvfp5"), "Did you mean 'nvfp4'"),
    "a mixture": (("normal", "--formats", "q4_k_m"), "is a mixture of several block formats"),
    "wrong spelling": (("normal", "--formats", "int4/0"), "is no share of a scale"),
    "unknown distribution": (("gaussian", "--formats", "fp8"), "There is no distribution 'gaussian'"),
    "no such file": (("none.npy", "--formats", "fp8"), "cannot be read"),
    "another kind of file": ((__file__, "--formats", "fp8"), "end in .npy, .npz, .safetensors"),
    "unknown rounding": (("normal", "--formats", "fp8", "--rounding", "nearst-even"), "Did you mean 'nearest-even'"),
    "no tensor matches": (("normal", "--formats", "fp8", "--tensors", "*x*"), "matches none of 1"),
    "unknown recipe": (("normal", "--formats", "fp8", "--recipes", "gtpq"), "Did you mean 'gptq'"),
    "activations alone": (("normal", "--formats", "fp8", "--activations", "x.npy"), "serve recipes alone"),
    "no rows": (("normal", "--formats", "fp8", "--rows", "0"), "rows: got '0'; write a whole number from 1"),
    "more than memory": (("normal", "--formats", "fp8", "--rows", "999999", "--columns", "999999"), "are drawn"),
    "a seed below zero": (("normal", "--formats", "fp8", "--seed", "-1"), "seed: got '-1'"),
    "out without a kind": (("normal", "--formats", "fp8", "--out", "x.txt"), "does not say what to write"),
    "out without a folder": (("normal", "--formats", "fp8", "--out", "nowhere/x.csv"), "there is no folder"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_message(describe, case):
    arguments, words = WRONG[case]
    code, out, err = describe("quantize", *arguments)
    assert code == 2
    assert words in err
    assert out == ""


def test_arrays_and_names_are_sources_from_python():
    x = np.random.default_rng(0).standard_normal((32, 64))
    found = quantize(x, "uniform", formats="int8", rows=8, columns=8)
    assert [r.tensor for r in found.results] == ["array", "uniform"]
    assert found.results[0].error.num_elements == x.size
    with pytest.raises(orrery.OrreryError, match="no real numbers"):
        quantize(np.array(["a"]), formats="int8")


def test_progress_is_told_up_to_the_end():
    classification = []
    quantize(
        "normal", "uniform", formats="fp8,mxfp4", rows=4, columns=32, on_progress=lambda *x: classification.append(x)
    )
    assert classification[0] == (0, 4)
    assert classification[-1] == (4, 4)
    assert [done for done, _ in classification] == sorted(done for done, _ in classification)
