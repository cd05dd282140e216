"""Errors of formats on tensors: surveys, sums over several, rotations and columns left wide, by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError, UnknownName
from orrery.numerics.error import error_of
from orrery.numerics.parse import parse_format
from orrery.scenario.format_signal import signal_of
from orrery.scenario.quantize import quantize, wide_blocks_frac, wide_columns
from orrery.scenario.signal import on_front, pool, survey, tensors_of, why_not

FP32_MAX = (2 - 2**-23) * 2.0**127


def test_a_survey_by_hand():
    """Root of 9 + 16; the largest is 4 over a root mean square of 5 / 2."""
    found = survey(np.array([[3.0, -4.0], [0.0, 0.0]], np.float32))
    assert (found.num_elements, found.norm, found.largest) == (4, 5.0, 4.0)
    assert found.crest_factor == pytest.approx(4.0 / 2.5)
    assert why_not(found) == ("", 0)
    assert survey(np.zeros(3, np.float32)).crest_factor == 1.0


@pytest.mark.parametrize(
    ("numbers", "words", "count"),
    [
        ([], "it has no numbers", 0),
        ([1.0, math.nan, math.inf, -math.inf], "3 of 4 numbers are NaN or infinite", 3),
        ([FP32_MAX, -2 * FP32_MAX, 1.0], "1 of 3 numbers are beyond FP32", 1),
    ],
)
def test_tensors_whose_error_means_nothing(numbers, words, count):
    assert why_not(survey(np.array(numbers))) == (words, count)


def test_errors_of_two_tensors_are_those_of_all_numbers():
    """One of four is half too small, then both of two are 1 too large: a noise of 1/4 + 2 and a signal of 9.25 + 32."""
    known = error_of(np.ones(4, np.float32), parse_format("int8/tensor"))
    quarter = {"mean_square_error": 0.25 / 4, "max_abs_error": 0.5, "mean_error": -0.5 / 4, "zeros_frac": 0.25}
    ones = {"mean_square_error": 1.0, "max_abs_error": 1.0, "mean_error": 1.0, "zeros_frac": 0.0}
    first, second = np.array([2.5, 1.0, 1.0, -1.0]), np.array([4.0, -4.0])
    found = pool(
        [
            (survey(first), replace(known, **quarter, num_elements=4)),
            (survey(second), replace(known, **ones, num_elements=2)),
        ]
    )
    assert (found.num_elements, found.max_abs_error) == (6, 1.0)
    assert found.mean_square_error == pytest.approx(2.25 / 6)
    assert found.mean_error == pytest.approx((-0.5 + 2.0) / 6)
    assert found.zeros_frac == pytest.approx(1 / 6)
    assert found.relative_error_frac == pytest.approx(math.sqrt(2.25 / 41.25))
    assert found.sqnr_db == pytest.approx(10 * math.log10(41.25 / 2.25))


def test_zeros_have_no_error():
    numbers = np.zeros(8, np.float32)
    found = pool([(survey(numbers), error_of(numbers, parse_format("int8/tensor")))])
    assert (found.relative_error_frac, found.sqnr_db) == (0.0, math.inf)


def test_a_front_keeps_what_nothing_beats():
    """Of costs 1, 2, 2, 3 the dearer of equal gain falls, and of equal cost the one that gains less; twins stay."""
    assert on_front([1, 2, 2, 3], [5, 5, 7, 6]) == [True, False, True, False]
    assert on_front([1, 1], [5, 5]) == [True, True]
    assert on_front([1, 1, 2], [5, 4, 6]) == [True, False, True]


def test_sources_are_arrays_draws_or_files():
    name, (tensor,) = tensors_of("normal", (4, 8), 0)
    assert (name, tensor.dtype, tensor.shape) == ("normal", "drawn", (4, 8))
    numbers = np.arange(6).reshape(2, 3)
    name, (tensor,) = tensors_of(numbers, (4, 8), 0)
    assert (name, tensor.name, tensor.shape) == ("array", "array", (2, 3))
    assert np.array_equal(tensor.read(), numbers)
    with pytest.raises(ScenarioError, match="bool holds no real numbers"):
        tensors_of(np.array([True]), (4, 8), 0)
    with pytest.raises(UnknownName, match="normal"):
        tensors_of("norml", (4, 8), 0)


def notes_of(width, rotated_elements=0):
    """What is noted of two rows of ones that are turned."""
    notes: list[str] = []
    np.save("rows.npy", np.ones((2, width), np.float32))
    signal_of(
        [parse_format("fp32")], ["rows.npy"], rotates=True, seed=0, notes=notes, rotated_elements=rotated_elements
    )
    return notes


def test_rows_are_turned_by_the_widest_matrix_that_divides_them(tmp_path, monkeypatch):
    """Six are three pairs, twelve have a matrix of their own, and seven none."""
    monkeypatch.chdir(tmp_path)
    for width, block in ((6, 2), (12, 12), (16, 16), (24, 24), (28, 28), (10, 2)):
        assert notes_of(width) == [
            f"rotate: rows of {width} by blocks of {block}; the rotation's own time is not counted"
        ]
    (left,) = notes_of(7)
    assert left.endswith("has rows of 7, which no Hadamard matrix divides; it was left as it is")
    assert notes_of(16, rotated_elements=4)[0].startswith("rotate: rows of 16 by blocks of 4;")
    with pytest.raises(ScenarioError, match="rows of 16, no multiple of 12"):
        notes_of(16, rotated_elements=12)


def test_a_pair_that_is_turned_keeps_its_small_number(tmp_path, monkeypatch):
    """127 and 0.4 in whole numbers are 127 and 0. Turned they are 127.4 and 126.6 over the root of 2, up to signs: 127
    steps, and 126.2, of which 0.2 are lost."""
    monkeypatch.chdir(tmp_path)
    np.save("pair.npy", np.array([[127.0, 0.4]], np.float32))
    format = parse_format("int8/tensor")
    plain, turned = (
        signal_of([format], ["pair.npy"], rotates=is_turned, seed=0, notes=[])[format.name]["pair.npy"].max_abs_error
        for is_turned in (False, True)
    )
    step = 127.4 / math.sqrt(2) / 127
    assert plain == pytest.approx(0.4)
    assert turned == pytest.approx((126.6 / 127.4 * 127 - 126) * step, rel=1e-3)


def test_files_without_a_tensor_that_can_be_measured_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("some.npz", good=np.ones(4, np.float32), bad=np.array([math.nan, 1.0], np.float32))
    notes: list[str] = []
    format = parse_format("int8/tensor")
    found = signal_of([format], ["some.npz"], rotates=False, seed=0, notes=notes)
    assert found[format.name]["some.npz"].num_elements == 4
    assert notes == ["some.npz: bad was left out: 1 of 2 numbers are NaN or infinite"]
    np.save("bad.npy", np.array([math.nan]))
    with pytest.raises(ScenarioError, match=r"bad\.npy holds no tensor that can be measured"):
        signal_of([format], ["bad.npy"], rotates=False, seed=0, notes=[])


def test_columns_above_a_limit():
    """Of three axes the last one counts: 5 is above 4 and 4 is not."""
    numbers = np.zeros((2, 3, 4))
    numbers[1, 2, 0], numbers[0, 0, 2] = -5.0, 4.0
    assert wide_columns(numbers, 4.0).tolist() == [True, False, False, False]
    assert wide_columns(numbers[0], 3.0).tolist() == [False, False, True, False]
    assert wide_columns(numbers, None).size == 0
    assert wide_columns(numbers[0, 0], 1.0).size == 0


@pytest.mark.parametrize(
    ("columns", "wide", "frac"), [(256, 0, 0.0), (256, 1, 0.5), (256, 128, 0.5), (256, 129, 1.0), (300, 5, 1 / 3)]
)
def test_blocks_of_128_columns_that_hold_a_wide_one(columns, wide, frac):
    assert wide_blocks_frac(np.arange(columns) < wide) == pytest.approx(frac)


def test_no_columns_no_blocks():
    assert wide_blocks_frac(np.zeros(0, np.bool_)) == 0.0


def test_bits_of_a_tensor_with_columns_left_wide():
    """Of 8 columns one stays in 16 bits: seven of 8 bits and a scale of 32 for the tensor; two tensors alike."""
    numbers = np.ones((16, 8), np.float32)
    numbers[3, 5] = 100.0
    found = quantize(numbers, formats="int8/tensor", wide_above=50.0)
    (row,), (total,) = found.results, found.totals
    scale_bits = parse_format("int8/tensor").scaling.levels[0].bits
    assert row.size_bytes == 16 * 7 + scale_bits / 8 + 2 * 16
    assert row.wide_frac == 1 / 8
    assert row.wide_blocks_frac == 1.0
    assert row.bits_per_element == total.bits_per_element == 8 * row.size_bytes / 128
    assert row.crest_factor == pytest.approx(1.0)
    assert row.error.max_abs_error < 1e-6
    with pytest.raises(ScenarioError, match=r"all columns of array are above 0\.5"):
        quantize(np.ones((4, 4), np.float32), formats="int8/tensor", wide_above=0.5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rows": 2**14, "columns": 2**14 + 1}, "at most 268,435,456 numbers are drawn"),
        ({"seeds": 2}, "seeds: are those of recipes alone"),
        ({"cost": "lut"}, "cost: is of pairs of formats"),
        ({"activation_formats": "int4/tensor", "cost": "area"}, "counted in lut alone"),
        ({"tensors": "layer*"}, r"'layer\*' matches none of 1; they are called like normal"),
        ({"rounding": "nearst"}, "nearest"),
        ({"formats": None}, "formats: is missing"),
    ],
)
def test_questions_about_tensors_that_mean_nothing(settings, words):
    asked = {name: value for name, value in ({"formats": "int8/tensor"} | settings).items() if value is not None}
    with pytest.raises((ScenarioError, UnknownName), match=words):
        quantize("normal", **asked)


def test_what_is_not_used_is_said():
    array = np.ones((4, 4), np.float32)
    assert quantize(array, formats="int8/tensor", rows=8).notes == ("rows, columns: not used (nothing is drawn)",)
    assert quantize(array, formats="int8/tensor").notes == ()
    (drawn,) = quantize("normal", formats="int8/tensor", rows=4, columns=4, seed=3).notes
    assert drawn.startswith("drawn numbers (seed 3) are no model's")
    (wide,) = quantize(array, formats="int8/tensor", wide_above=2).notes
    assert wide.startswith("wide_above: columns above 2 stay in 16 bits")


def test_progress_counts_every_tensor_format_and_seed(tmp_path):
    """Two tensors in two formats are four steps, and in one format with two seeds as many: the second goes on."""
    path = tmp_path / "two.npz"
    np.savez(path, a=np.ones((4, 4), np.float32), b=np.ones((4, 4), np.float32))
    told: list[tuple[int, int]] = []
    quantize(path, formats="int8/tensor,int4/tensor", on_progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 4), (1, 4), (2, 4), (2, 4), (3, 4), (4, 4)]
    told.clear()
    seeds = {"recipes": "gptq", "seeds": 2}
    quantize(path, formats="int4/row", **seeds, on_progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == [0, 1, 1, 2, 2, 3, 3, 4]
    assert {total for _, total in told} == {4}
