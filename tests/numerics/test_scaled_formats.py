"""Scaled formats: blocks bit for bit as specified, every sharing of scales, and what is no number."""

import math
from itertools import pairwise, product

import ml_dtypes
import numpy as np
import pytest
from battery import over
from definition import mx_block
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError, UnknownName
from orrery.numerics.codec.rounding import encode, round_to
from orrery.numerics.draws import DISTRIBUTIONS, draw
from orrery.numerics.error import compare, error_of
from orrery.numerics.names import get_element
from orrery.numerics.parse import parse_format
from orrery.numerics.quantise import quantise, round_trip
from orrery.numerics.registry import known_formats
from orrery.numerics.rounding import Rounding

SPELLED = (
    "e3m4",
    "posit8_1",
    "int5/64:fp16",
    "uint4/128:fp16:zero",
    "uint4/32:fp16:minimum",
    "e2m1/16:ue5m3",
    "e4m3fn/none",
    "power4_0.5/row",
    "pot4/row",
    "bipolar3/128",
    "ternary/row",
    "fixed8_4/none",
    "e2m1/16x16:e4m3fn/tensor",
    "int4sym/32:ue8m0:ceil",
    "int4/32:fp16:extreme",
    "e2m1/7",
    "int8/3x5",
    "nf4/64:e4m3fn/tensor",
)
CODED = tuple(n for n, f in known_formats().items() if f.element is not None) + SPELLED
SHAPES = ((64,), (5, 48), (3, 7, 33), (1, 1), (2, 1000))


def wide(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-30, 30, shape))).astype(np.float32)


@over(product(CODED, SHAPES), named=lambda name, shape: f"{name} of {shape}")
def test_codes_and_scales_stand_for_what_the_round_trip_gives(name, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    stored = quantise(x, name)
    back = round_trip(x, name)
    assert back.shape == stored.codes.shape == x.shape
    assert np.array_equal(stored.dequantise(), back)
    assert np.isfinite(back).all()
    assert int(stored.codes.max()) < 1 << stored.format.element.bits


@over(CODED)
def test_a_second_round_trip_of_powers_of_two_changes_nothing(name):
    """Numbers that a format holds exactly stay: here zeros, whose scale is nothing, among a block's largest number."""
    x = np.zeros((4, 256), dtype=np.float32)
    assert np.array_equal(round_trip(x, name), x) or "bipolar" in name
    x[:, ::128] = 1.0
    once = round_trip(x, name)
    assert np.abs(round_trip(once, name) - once).max() <= 2e-3


@pytest.mark.parametrize("name", ["mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp6_e3m2", "mxfp4", "mxint8"])
def test_mx_blocks_follow_the_ocp_specification(name):
    format = parse_format(name)
    values = [v for v in format.element.values().tolist() if v >= 0 and math.isfinite(v)]
    if name != "mxint8":
        half = 1 << (format.element.bits - 1)
        values = [v for v in format.element.values()[:half].tolist() if math.isfinite(v)]
    x = np.concatenate([wide(4, (20, 32)), draw("student_t", (20, 32), 1), np.zeros((1, 32), np.float32)])
    x[5, 3:] = 0
    stored = quantise(x, format)
    for row, scale, back in zip(x.tolist(), stored.scales[:, 0].tolist(), stored.dequantise().tolist(), strict=True):
        exponent, want = mx_block(row, values)
        assert scale == 2.0**exponent
        if name == "mxint8":  # two's complement has one number more below zero: -2
            want = [w if abs(w) < values[-1] * scale else b for w, b in zip(want, back, strict=True)]
        assert back == want


def nvfp4_by_hand(x: np.ndarray, rows: int = 1) -> tuple[np.ndarray, np.ndarray, np.float32]:
    """NVIDIA's definition in steps of FP32, with ml_dtypes' casts: decoded numbers, block scales, tensor scale."""
    one, six = np.float32(1.0), np.float32(6.0)
    amax = np.abs(x).max()
    outer = np.float32(448.0 * 6.0) / amax
    blocks = x.reshape(x.shape[0] // rows, rows, x.shape[1] // 16, 16)
    block_amax = np.abs(blocks).max(axis=(1, 3))
    stored = np.clip(block_amax * (outer * (one / six)), 0, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    decode = stored * (one / outer)
    encode = np.minimum(one / decode, np.finfo(np.float32).max)
    scaled = np.clip(blocks * encode[:, None, :, None], -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
    return (scaled * decode[:, None, :, None]).reshape(x.shape), stored, outer


@pytest.mark.parametrize(("name", "rows"), [("nvfp4", 1), ("e2m1/16x16:e4m3fn/tensor", 16)])
@pytest.mark.parametrize("distribution", ["normal", "outliers", "student_t"])
def test_nvfp4_follows_nvidia_s_definition(name, rows, distribution):
    x = draw(distribution, (64, 256), 3)
    back, stored, outer = nvfp4_by_hand(x, rows)
    found = quantise(x, name)
    assert found.outer == outer
    assert np.array_equal(found.scales.reshape(stored.shape), stored)
    assert np.array_equal(found.dequantise(), back)
    assert np.array_equal(round_trip(x, name), back)


def test_deepseek_blocks_have_an_fp32_scale_each():
    x = draw("outliers", (300, 200), 1)
    got = round_trip(x, "fp8_block")
    for r in range(0, 300, 128):
        for c in range(0, 200, 128):
            part = x[r : r + 128, c : c + 128]
            scale = np.abs(part).max() / np.float32(448)
            want = (part / scale).astype(ml_dtypes.float8_e4m3fn).astype(np.float32) * scale
            assert np.array_equal(got[r : r + 128, c : c + 128], want)


def test_groups_rows_and_tensors_share_what_their_names_say():
    x = draw("normal", (6, 256), 2)
    x[2] *= 100
    assert quantise(x, "int8/tensor").scales.shape == (1, 1)
    assert quantise(x, "int8/row").scales.shape == (6, 1)
    assert quantise(x, "int8/128").scales.size == 12
    assert quantise(x, "int8/4x64").scales.shape == (2, 4)
    assert quantise(x, "int8/100").scales.shape == (6, 3), "the last group of a row is shorter"
    errors = [error_of(np.delete(x, 2, axis=0) if s == "row" else x, f"int8/{s}").sqnr_db for s in ("tensor", "row")]
    rest = np.delete(np.arange(6), 2)
    per_row, whole = (compare(x[rest], round_trip(x, f"int8/{s}")[rest]).sqnr_db for s in ("row", "tensor"))
    assert per_row > whole + 20, "one loud row costs the others nothing but where they share its scale"
    assert min(errors) > 30


def test_blocks_do_not_reach_into_the_next_matrix_of_a_stack():
    x = draw("normal", (3, 5, 8), 2)
    x[1] *= 1000
    stacked = round_trip(x, "int8/4x4")
    assert all(np.array_equal(stacked[i], round_trip(x[i], "int8/4x4")) for i in range(3))


def test_a_zero_point_serves_numbers_of_one_sign():
    x = np.random.default_rng(0).uniform(3.0, 4.0, (8, 128)).astype(np.float32)
    symmetric, integer, minimum = (error_of(x, f).sqnr_db for f in ("int4/128", "uint4/128:zero", "uint4/128:minimum"))
    assert minimum > integer > symmetric
    assert minimum > symmetric + 15


def test_the_extreme_takes_the_code_that_has_no_opposite():
    x = np.float32([[-8.0, 1.0, 7.0, 0.0], [8.0, 1.0, -7.0, 0.0]])
    assert np.array_equal(round_trip(x, "int4/4:extreme"), x)
    assert not np.array_equal(round_trip(x, "int4/4"), x)
    assert error_of(x, "int24/4:extreme").sqnr_db > 120, "too wide for a table of its values"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["mxfp4", "mxfp8", "mxint8", "int4_weight_only", "fp8_1x128", "fp8_block"])
def test_what_is_no_number_makes_its_group_no_number_and_leaves_the_others(name, bad):
    x = draw("normal", (256, 256), 0)
    clean = round_trip(x, name)
    x[3, 200] = bad
    got = round_trip(x, name)
    spoilt = np.isnan(got)
    assert spoilt[3, 200]
    assert spoilt.sum() == max(1, parse_format(name).block_elements)
    assert np.array_equal(got[~spoilt], clean[~spoilt])


@pytest.mark.parametrize("name", ["nvfp4", "fp8", "int8"])
def test_a_shared_scale_that_is_no_number_is_not_hidden(name):
    x = draw("normal", (4, 64), 0)
    x[1, 1] = np.nan
    assert np.isnan(round_trip(x, name)[1]).all()


def test_error_of_refuses_what_is_no_number():
    x = draw("normal", (4, 64), 0)
    x[1, 1:3] = np.inf
    with pytest.raises(ScenarioError, match="2 numbers that are NaN or infinite"):
        error_of(x, "mxfp4")


def test_tiny_and_huge_blocks_keep_what_fp32_can_hold():
    for size in (1e-38, 1e-30, 1e30, 3e38):
        x = np.float32([[size] * 32, [-size, *([0.0] * 31)]])
        for name in ("mxfp8", "mxfp4", "fp8_1x128", "int8"):
            back = round_trip(x, name)
            assert np.isfinite(back).all()
            assert compare(x.astype(np.float64), back.astype(np.float64)).relative_error_frac < 0.35, (name, size)


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4", "int4/128:fp16", "nf4"])
def test_stochastic_rounding_of_blocks_has_the_right_mean(name):
    x = draw("normal", (4, 128), 0)
    rng = np.random.default_rng(0)
    mean = np.mean([round_trip(x, name, rounding=Rounding.STOCHASTIC, rng=rng) for _ in range(800)], axis=0)
    largest = np.abs(x.reshape(-1, 16)).max(axis=1).repeat(16).reshape(x.shape)
    inside = np.abs(x) < 0.7 * largest  # a scale that was rounded down cuts off what lies above the last step
    assert np.abs(mean - x)[inside].max() < 0.1
    assert abs(float((mean - x)[inside].mean())) < 0.01


def test_pieces_on_disk_give_what_the_whole_gives(tmp_path):
    x = draw("outliers", (3000, 400), 1)
    np.save(tmp_path / "x.npy", x)
    on_disk = np.load(tmp_path / "x.npy", mmap_mode="r")
    out = np.lib.format.open_memmap(tmp_path / "y.npy", mode="w+", dtype=np.float32, shape=x.shape)
    for name in ("nvfp4", "mxfp8", "int8", "fp8_block"):
        round_trip(on_disk, name, out=out)
        assert np.array_equal(np.asarray(out), round_trip(x, name))
        assert error_of(on_disk, name) == error_of(x, name)


def test_memory_stays_bounded_on_a_tensor_on_disk(tmp_path):
    """Error of 64 MB with less than 24 MB beside it."""
    import tracemalloc

    on_disk = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(2048, 8192))
    on_disk[::7, ::5] = 1.5
    error_of(on_disk[:64], "nvfp4")
    tracemalloc.start()
    error_of(on_disk, "nvfp4")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 24e6


def test_more_bits_and_smaller_blocks_lose_less():
    x = draw("student_t", (256, 512), 0)
    by_bits = [error_of(x, f"int{b}/32").sqnr_db for b in range(2, 13)]
    assert all(b > a + 4 for a, b in pairwise(by_bits)), "6 dB a bit"
    by_size = [error_of(x, f"int4/{n}").sqnr_db for n in (8, 32, 128, 512)]
    assert by_size == sorted(by_size, reverse=True)


def test_an_ideal_grid_has_the_error_of_the_textbook():
    """Uniform numbers on n steps: SQNR = 20 log10(n) dB, 6.02 for each bit."""
    x = draw("uniform", (512, 512), 0)
    for bits in (4, 6, 8, 10):
        steps = 2 * get_element(f"int{bits}").highest
        assert error_of(x, f"int{bits}/tensor").sqnr_db == pytest.approx(20 * math.log10(steps), abs=0.05)


def test_distributions_are_seeded_and_named():
    for name in DISTRIBUTIONS:
        assert np.array_equal(draw(name, (8, 64), 1), draw(name, (8, 64), 1))
        assert not np.array_equal(draw(name, (8, 64), 1), draw(name, (8, 64), 2))
    with pytest.raises(UnknownName, match="distribution 'normals'"):
        draw("normals", (8, 64))


def test_bits_count_the_scales():
    bits = {
        n: parse_format(n).bits_per_element
        for n in ("mxfp4", "nvfp4", "mxint8", "int4/128:fp16", "uint4/128:fp16:zero")
    }
    assert bits == {"mxfp4": 4.25, "nvfp4": 4.5, "mxint8": 8.25, "int4/128:fp16": 4.125, "uint4/128:fp16:zero": 4.1875}
    assert parse_format("e4m3fn/128x128").bits_per_element == 8 + 32 / 16384
    assert get_element("e2m1").bits == 4


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("nvfp5", "Did you mean 'nvfp4'"),
        ("int4/0", "no share of a scale"),
        ("int4/12x", "no share"),
        ("int4/32:e9m9m9", "neither a scale"),
        ("int4/16/32", "outer level"),
        ("int4/16/tensor", "buys nothing"),
        ("int4/32:zero", "unsigned integers"),
        ("", "1 to 100 letters"),
        ("a/1/2/3", "There is no format"),
        ("int4/16:e4m3/8:e4m3/tensor", "3 levels"),
        ("x" * 500, "got 500"),
        ("e8m4/32", "too far from 1"),
        ("int32/row", "up to 24 bits"),
        ("fixed8_64/row", "too far from 1"),
        ("e4m3/32:extreme", "signed integers"),
        ("uint4/32:extreme", "signed integers"),
    ],
)
def test_what_spells_no_format_is_refused_in_words(word, message):
    with pytest.raises((ScenarioError, UnknownName), match=message):
        parse_format(word)


def test_mixtures_and_wrong_places_are_refused():
    x = draw("normal", (2, 32), 0)
    with pytest.raises(ScenarioError, match="mixture of several block formats"):
        round_trip(x, "q4_k_m")
    with pytest.raises(ScenarioError, match="contiguous float32 of shape"):
        round_trip(x, "mxfp4", out=np.empty((2, 31), np.float32))
    with pytest.raises(ScenarioError, match="one shape"):
        compare(x, x[:1])


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ">f4", ">f8", np.int8, np.int64, np.bool_, np.longdouble])
def test_any_real_numbers_are_taken(dtype):
    x = np.round(draw("normal", (8, 32), 0) * 50).astype(dtype)
    plain = x.astype(np.float32)
    assert np.array_equal(round_trip(x, "mxfp8"), round_trip(plain, "mxfp8"))
    assert np.array_equal(round_to(x, "e5m2"), round_to(plain, "e5m2"))
    assert error_of(x, "mxfp8") == error_of(plain, "mxfp8")
    assert np.array_equal(encode(x, "int8"), encode(plain, "int8"))


ELEMENTS = (
    "e4m3fn",
    "e2m1",
    "e3m2flush",
    "e8m3",
    "e1m1",
    "e2m0",
    "ue4m3",
    "int2",
    "int16",
    "int24",
    "uint4",
    "fixed8_6",
    "fixed8_-9",
    "bipolar1",
    "posit2_0",
    "posit16_1",
    "pot2",
    "power8_2",
    "nf4",
    "ternary",
    "tf32",
    "e4m3b-20",
    "e2m23",
)
SHARES = (
    "",
    "/none",
    "/tensor",
    "/row",
    "/1",
    "/3",
    "/128x128",
    "/2x5",
    "/16:e4m3/tensor",
    "/16:ue5m3",
    "/32:ue8m0:ceil",
    "/8:fp16",
    "/7:fp16:extreme",
    "/8:fp16:zero",
    "/8:minimum",
    "/16:posit8_1",
    "/row:e4m3/tensor",
    "/tensor:ue8m0",
)


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(ELEMENTS), st.sampled_from(SHARES), st.sampled_from((*SHAPES, (), (0, 4))), st.integers(0, 9))
def test_any_spelling_stores_what_it_gives_back_or_is_refused(element, share, shape, seed):
    try:
        format = parse_format(element + share)
    except ScenarioError:
        return
    x = np.asarray(np.random.default_rng(seed).standard_normal(shape) * 2.0 ** (9 * seed - 40), dtype=np.float32)
    stored = quantise(x, format)
    assert np.array_equal(stored.dequantise(), round_trip(x, format))
    assert np.isfinite(stored.dequantise()).all()


def test_a_single_number_stays_one():
    for name in ("mxfp4", "nvfp4", "int8", "bf16", "fp8_block"):
        x = np.float32(2.5)
        assert round_trip(x, name).shape == quantise(x, name).dequantise().shape == ()
        assert float(round_trip(x, name)) == float(quantise(x, name).dequantise())


def test_empty_tensors_stay_empty():
    for name in ("mxfp4", "nvfp4", "int8", "fp8", "fp8_block", "bf16"):
        assert round_trip(np.empty((0, 64), np.float32), name).shape == (0, 64)
        assert quantise(np.empty((0, 64), np.float32), name).dequantise().shape == (0, 64)


def test_a_power_of_two_rounded_up_holds_the_largest_number_and_no_more():
    """Symmetric 4 bits end at 7: 7 needs 2^0, one step above needs 2^1, 14 again 2^1, 3.5 is 2^-1, 3 too, 1.75 2^-2."""
    for largest, scale in (
        (7.0, 1.0),
        (7.0 + 2**-19, 2.0),
        (14.0, 2.0),
        (3.5, 0.5),
        (3.0, 0.5),
        (1.75, 0.25),
        (8.0, 2.0),
        (6.9, 1.0),
        (1.0, 0.25),
    ):
        block = np.full((1, 32), np.float32(largest) / 8, dtype=np.float32)
        block[0, 5] = -largest
        stored = quantise(block, "int4sym/32:ue8m0:ceil")
        assert float(np.ravel(stored.scales)[0]) == scale, largest


def test_a_power_of_two_rounded_down_keeps_the_exponent_of_the_largest_number():
    """MXFP4 ends at 6, between 4 and 8: a block's scale is 2^(exponent of its largest - 2), so 7.9 is clipped."""
    for largest, scale in ((6.0, 1.0), (4.0, 1.0), (7.9, 1.0), (8.0, 2.0), (3.99, 0.5), (1.0, 0.25)):
        block = np.zeros((1, 32), dtype=np.float32)
        block[0, 7] = largest
        assert float(np.ravel(quantise(block, "mxfp4").scales)[0]) == scale, largest
