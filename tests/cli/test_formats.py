"""`orrery formats`: facts that another library confirms, and what formats gain and lose side by side."""

import json
import math

import ml_dtypes
import numpy as np
import pytest

from orrery.numerics.codec.rounding import round_to
from orrery.numerics.names import named_elements
from orrery.numerics.parse import parse_format
from orrery.numerics.registry import known_formats
from orrery.scenario.compare_formats import compare_formats
from orrery.scenario.format_facts import facts_of
from orrery.scenario.format_speed import registered
from orrery.scenario.formats import list_formats, show_format
from orrery.scenario.signal import on_front


def output_of(describe, *arguments):
    code, out, err = describe("formats", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


ALIKE = {
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3": ml_dtypes.float8_e4m3,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e3m4": ml_dtypes.float8_e3m4,
    "e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
    "bf16": ml_dtypes.bfloat16,
}


@pytest.mark.parametrize("name", ALIKE)
def test_facts_are_those_of_another_library(name):
    facts, info = facts_of(named_elements()[name]), ml_dtypes.finfo(ALIKE[name])
    assert facts.highest == float(info.max)
    if name != "ue8m0":  # its smallest number is a power of two like all others
        assert facts.smallest_normal == float(info.smallest_normal)
        assert facts.smallest == float(info.smallest_subnormal)
    assert facts.range_decades == pytest.approx(math.log10(facts.highest / facts.smallest))


@pytest.mark.parametrize("element", [e for e in named_elements().values() if e.bits <= 16], ids=lambda e: e.name)
def test_values_are_counted_as_they_are_listed(element):
    values = element.values()
    assert facts_of(element).num_values == len(np.unique(values[np.isfinite(values)]))


def test_values_that_are_too_many_to_list_are_counted():
    assert facts_of(named_elements()["fp32"]).num_values == 2 * 255 * 2**23 - 1
    assert [facts_of(parse_format(n).element).num_values for n in ("int4", "int4sym", "uint4", "e3m2flush")] == [
        16,
        15,
        16,
        57,
    ]


def test_the_list_has_every_format_and_element(describe):
    found = output_of(describe, "list")
    assert {r["name"] for r in found["formats"]} == set(known_formats())
    assert {r["name"] for r in found["elements"]} == set(named_elements())
    assert all(r["bits_per_element"] > 0 and r["source"] for rows in found.values() for r in rows)
    nvfp4 = next(r for r in found["formats"] if r["name"] == "nvfp4")
    assert (nvfp4["element"], nvfp4["highest"], nvfp4["smallest_normal"], nvfp4["smallest"]) == ("e2m1", 6, 1, 0.5)


@pytest.mark.parametrize("columns", ["80", "140"])
def test_the_list_fits_the_terminal(describe, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    _, page, _ = describe("formats", "list")
    assert max(map(len, page.splitlines())) <= int(columns)
    assert "mxfp4_weight_only" in page
    assert "QServe" in page  # a source has a line of its own where there is no column for it


def test_everything_in_the_list_can_be_shown():
    for row in list_formats().rows:
        shown = show_format(row.name if row.group == "format" else f"{row.name}/none")
        assert shown.element == row.element
        json.dumps(shown.to_json(), allow_nan=False)
        has_zero = row.element is not None and round_to([0.0], row.element.name)[0] == 0.0
        assert all(0.0 <= y <= 1.0 for _, y in shown.curve) or not has_zero, row.name


def test_what_is_shown_is_what_the_codec_does(describe):
    found = output_of(describe, "show", "e4m3fn/none")
    assert found["edges"]["unscaled 672"] == "448 (saturated; else NaN)"
    assert found["nan_codes"] == [127, 255]
    assert found["values"][126] == 448.0
    assert found["native_on"] == {}
    scaled = output_of(describe, "show", "mxfp4")
    assert scaled["edges"]["a group with NaN"] == "all of it becomes NaN"
    assert scaled["edges"]["a group of zeros"] == "zeros"
    assert scaled["scales"][0] == "one ue8m0 scale for 32 in a row"
    assert scaled["native_on"]["b200"] == "fp4"
    assert "h100-sxm" not in scaled["native_on"]
    assert scaled["scale_bits_per_element"] == 0.25
    errors = [r["error_frac"] for r in scaled["relative_error"]]
    assert max(errors) == 1.0  # below half of the smallest number all is lost
    assert max(errors[:16]) == pytest.approx(0.2, abs=0.01)  # 2.5 goes to 2: the worst between normal numbers


def test_names_that_are_both_an_element_and_a_format_are_told_apart(describe):
    code, page, notes = describe("formats", "show", "e2m1")
    assert code == 0
    assert page.startswith("nvfp4")
    assert "the element alone is e2m1/none" in notes
    assert show_format("e2m1/none").format.scaling.levels == ()


def test_a_mixture_has_bits_and_says_why_no_more(describe):
    code, page, notes = describe("formats", "show", "q4_k_m")
    assert code == 0
    assert "4.85" in page
    assert "nothing rounds to it" in notes


def test_a_comparison_has_what_is_asked_in_its_order(describe):
    found = output_of(describe, "compare", "nvfp4", "mxfp4", "int4/128:fp16", "nvfp4", "--on", "normal,outliers")
    assert [r["format"] for r in found["results"]] == ["nvfp4", "mxfp4", "int4/128:fp16"]
    for row in found["results"]:
        assert row["sqnr_db"] == row["on"]["normal"]["sqnr_db"]
        assert row["speed"] is None
    assert found["base"] is None
    assert found["results"][0]["sqnr_db"] > found["results"][1]["sqnr_db"]


def test_on_a_device_speed_is_told_against_bf16(describe):
    found = output_of(describe, "compare", "nvfp4", "fp8", "int4_weight_only", "bf16", "--device", "b200")
    nvfp4, fp8, int4, bf16 = (r["speed"] for r in found["results"])
    assert found["base"]["speed"] == bf16
    assert bf16["prefill"]["speedup_ratio"] == bf16["decode"]["speedup_ratio"] == bf16["memory_ratio"] == 1.0
    assert nvfp4["peak_flops_per_s"] == 2 * fp8["peak_flops_per_s"] == 4 * bf16["peak_flops_per_s"]
    assert nvfp4["memory_ratio"] == 16 / 4.5
    assert 1.0 < fp8["prefill"]["speedup_ratio"] < nvfp4["prefill"]["speedup_ratio"] < 4.0
    assert nvfp4["scales_per_element"] == 1 / 16
    assert nvfp4["cast_bytes_per_element"] == 2 + 4.5 / 8
    assert (int4["rate"], int4["prefill"]["cast_s"]) == ("bf16", 0.0)
    for speed in (nvfp4, fp8, int4):
        for product, base in ((speed["prefill"], bf16["prefill"]), (speed["decode"], bf16["decode"])):
            spent = product["product_s"] + product["cast_s"]
            assert product["speedup_ratio"] == pytest.approx(base["product_s"] / spent)
            assert product["interval"]["low_80"] < product["product_s"] < product["interval"]["high_80"]


def test_what_a_device_cannot_multiply_runs_unpacked_and_a_note_says_so():
    found = compare_formats("nvfp4", "mxfp6", "e3m2/24:ue8m0", "e2m1/32:ue8m0", device="h100-sxm")
    by_name = {r.format: r for r in found.results}
    assert by_name["nvfp4"].speed.runs_as == "int4_weight_only"
    assert by_name["nvfp4"].speed.rate == "bf16"
    assert by_name["e3m2/24:ue8m0"].speed is None
    assert by_name["e2m1/32:ue8m0"].speed.runs_as == "mxfp4_weight_only"
    message = "\n".join(found.notes)
    for words in (
        "nvfp4: h100-sxm does not multiply it",
        "mxfp6: int8_weight_only reads 8 bits an element, not",
        "e3m2/24:ue8m0: no kernel",
        "e2m1/32:ue8m0: the same numbers as mxfp4",
    ):
        assert words in message


def test_spellings_find_the_registered_format_of_the_same_numbers():
    same = {
        "e2m1/16:e4m3fn/tensor": "nvfp4",
        "int4/128:fp16": "int4_weight_only",
        "e4m3/32:ue8m0": None,
        "e4m3fn/32:ue8m0": "mxfp8",
        "e2m1/32:ue8m0:ceil": None,
        "int8sym/row": "int8",
    }
    for spelled, name in same.items():
        found = registered(parse_format(spelled))
        assert (found.name if found else None) == name, spelled


def test_a_format_without_a_codec_is_compared_by_what_is_known(describe):
    found = output_of(describe, "compare", "q4_k_m", "q4_0", "--device", "l40s")
    assert found["results"][0]["sqnr_db"] is None
    assert found["results"][0]["speed"]["memory_ratio"] == pytest.approx(16 / 4.85)
    assert found["results"][0]["fronts"] == []
    assert any("is a mixture" in note for note in found["notes"])


def test_rotation_helps_where_there_are_outliers_and_not_where_all_is_normal():
    plain, turned = (
        compare_formats("int4/row", on="normal,outliers", rotate=r).results[0].errors for r in (False, True)
    )
    assert turned["outliers"].sqnr_db > plain["outliers"].sqnr_db + 1.0
    assert turned["normal"].sqnr_db == pytest.approx(plain["normal"].sqnr_db, abs=0.2)


def test_own_tensors_are_compared_and_those_that_cannot_be_are_named(describe, tmp_path):
    np.savez(tmp_path / "x.npz", w=np.ones((8, 32)), bad=np.array([np.nan]), odd=np.ones((3, 37)))
    found = output_of(describe, "compare", "mxfp8", "--on", tmp_path / "x.npz", "--rotate")
    assert found["results"][0]["num_elements"] == 8 * 32 + 3 * 37
    assert any("bad was left out: 1 of 1 numbers" in note for note in found["notes"])
    assert any("rows of 37, which no Hadamard matrix divides" in note for note in found["notes"])


def test_a_model_is_served_in_the_formats_that_can_be_predicted(describe):
    found = output_of(describe, "compare", "fp8", "e3m2/24:ue8m0", "--device", "h100-sxm", "--model", "llama-3.1-8b")
    fp8, spelled = found["results"]
    assert fp8["served"]["output_tokens_per_s"] > found["base"]["served"]["output_tokens_per_s"]
    assert fp8["served"]["ttft_s"] > 0
    assert spelled["served"] is None
    assert any("e3m2/24:ue8m0: no kernel" in note for note in found["notes"])


def test_a_model_that_does_not_fit_is_a_note(describe):
    found = output_of(describe, "compare", "fp8", "--device", "l4", "--model", "llama-3.1-405b")
    assert found["results"][0]["served"] is None
    assert any("cannot run" in note for note in found["notes"])


def test_integers_meet_floats_at_some_crest_factor(describe):
    found = output_of(describe, "compare", "nvfp4", "nvint4")
    rows = {(r["format"], r["crest_factor"]): r["sqnr_db"] for r in found["by_crest"]}
    assert {r["block_elements"] for r in found["by_crest"]} == {16}
    assert rows["nvint4", 1.5] > rows["nvfp4", 1.5]
    assert rows["nvint4", 3.0] < rows["nvfp4", 3.0]


def test_the_front_is_what_no_other_point_beats():
    rng = np.random.default_rng(0)
    costs, gains = rng.integers(0, 6, 40).tolist(), rng.integers(0, 6, 40).tolist()
    for i, is_best in enumerate(on_front(costs, gains)):
        worse = [j for j in range(40) if costs[j] <= costs[i] and gains[j] >= gains[i]]
        assert is_best == all((costs[j], gains[j]) == (costs[i], gains[i]) for j in worse)


@pytest.mark.parametrize("columns", ["50", "80", "140"])
def test_the_page_fits_and_draws_where_there_is_room(describe, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    ask = ("compare", "nvfp4", "mxfp4", "fp8", "int4_weight_only", "--device", "b200", "--model", "llama-3.1-8b")
    code, page, _ = describe("formats", *ask)
    assert code == 0
    for word in ("x bf16, prefill", "x bf16, decode"):
        assert (word in page) == (columns != "50")
    if columns != "50":
        assert max(map(len, page.splitlines())) <= int(columns)
        for word in ("int4_weight_only", "TFLOP/s", "scales", "output tokens/s", "crest factor"):
            assert word in page


def test_a_comparison_can_be_saved_and_asked_again(describe, tmp_path):
    path = tmp_path / "mine.toml"
    first = output_of(describe, "compare", "nvfp4", "--on", "uniform", "--save-scenario", path)
    assert output_of(describe, "compare", "--scenario", path) == first


WRONG = {
    "unknown name": (("show", "nvfp5"), "Did you mean 'nvfp4'"),
    "nothing to compare": (("compare",), "formats: are missing"),
    "unknown format": (("compare", "fp8", "mvfp4"), "Did you mean 'nvfp4'"),
    "unknown device": (("compare", "fp8", "--device", "h10O"), "There is no device"),
    "unknown engine": (("compare", "fp8", "--device", "b200", "--engine", "vlm"), "There is no engine"),
    "model without device": (("compare", "fp8", "--model", "llama-3.1-8b"), "needs a device"),
    "unknown distribution": (("compare", "fp8", "--on", "gaussian"), "There is no distribution"),
    "seed of words": (("compare", "fp8", "--seed", "x"), "seed: got 'x'"),
    "no such command": (("lst",), "lst"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_message(describe, case):
    arguments, words = WRONG[case]
    code, out, err = describe("formats", *arguments)
    assert code == 2
    assert words in err
    assert out == ""


def test_a_model_that_nobody_knows_is_an_error_not_a_note(describe):
    code, _, err = describe("formats", "compare", "nvfp4", "--device", "b200", "--model", "lama-3.1-8b")
    assert code == 2
    assert "There is no model 'lama-3.1-8b'. Did you mean" in err


def test_without_a_command_all_formats_are_listed(describe):
    code, out, _ = describe("formats")
    assert code == 0
    assert "mxfp8_e5m2" in out
