"""Element formats: every code, every rounding, and the borders between numbers, against the specifications."""

import math
from fractions import Fraction
from statistics import NormalDist

import ml_dtypes
import numpy as np
import pytest
from definition import FLOATS, LISTED, expected, sides

from orrery.base.errors import OutOfRange, ScenarioError, UnknownName
from orrery.numerics.codec.rounding import decode, encode, round_to
from orrery.numerics.families.lookup import Lookup, learned
from orrery.numerics.families.minifloat import Minifloat
from orrery.numerics.names import EXAMPLES, get_element, named_elements
from orrery.numerics.rounding import Rounding

NARROW = [n for n, e in named_elements().items() if e.bits <= 16] + list(EXAMPLES)
FRACTION_OF_FP32 = 1_000_000


def stratified(seed: int, count: int = FRACTION_OF_FP32) -> np.ndarray:
    """Bits of FP32 numbers: as many from every 4096th of the non-negative ones, NaN among them."""
    rng = np.random.default_rng(seed)
    strata = np.linspace(0, 1 << 31, 4097).astype(np.int64)
    each = count // 4096 + 1
    return (strata[:-1, None] + rng.integers(0, 1 << 19, (4096, each))).ravel().astype(np.uint32)


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Equal to the bit, the sign of zero included; any NaN equals any NaN."""
    return (a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("saturates", [True, False])
@pytest.mark.parametrize("name", FLOATS)
def test_a_stratified_million_rounds_as_the_specification_says(name, saturates):
    definition, bits = FLOATS[name], stratified(1)
    edges = [s for s, _ in definition.segments(saturates)]
    bits = np.concatenate([bits, np.array([e + d for e in edges for d in (-1, 0, 1) if e + d >= 0], dtype=np.uint32)])
    x = bits.view(np.float32)
    want = expected(bits, definition.segments(saturates))
    finite_nan = -0.0 if definition.is_signed else 0.0
    want = np.where(np.isnan(x), np.float32(finite_nan if definition.specials == "finite" else np.nan), want)
    if saturates:
        assert not np.isinf(round_to(x, name)).any()
    got = round_to(x, name, saturates=saturates)
    assert same(got, want.astype(np.float32)).all()
    if definition.is_signed:
        mirrored = -want if definition.specials != "fnuz" else -want + np.float32(0.0)
        assert same(round_to(-x, name, saturates=saturates), mirrored.astype(np.float32)).all()
    else:
        assert np.all(round_to(-x[np.isfinite(x)], name) == 0)


@pytest.mark.parametrize("name", LISTED)
def test_a_stratified_million_finds_its_listed_value(name):
    bits = stratified(7, 400_000)
    bits = bits[bits <= 0x7F800000]
    for sign, segments in sides(name).items():
        edges = np.array([s + d for s, _ in segments for d in (-1, 0, 1) if s + d > 0], dtype=np.uint32)
        x = np.concatenate([bits[bits > 0], edges])
        if name == "ue8m0" and sign < 0:
            assert np.isnan(round_to(-x.view(np.float32), name)).all()
            continue
        got = round_to(x.view(np.float32) * np.float32(sign), name)
        assert np.array_equal(got, expected(x, segments))


ML_DTYPES = {
    "e4m3fn": "float8_e4m3fn",
    "e4m3": "float8_e4m3",
    "e5m2": "float8_e5m2",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e4m3b11fnuz": "float8_e4m3b11fnuz",
    "e3m4": "float8_e3m4",
    "e2m3": "float6_e2m3fn",
    "e3m2": "float6_e3m2fn",
    "e2m1": "float4_e2m1fn",
    "bf16": "bfloat16",
    "ue8m0": "float8_e8m0fnu",
}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", ML_DTYPES)
def test_codes_and_numbers_are_those_of_ml_dtypes(name):
    other = np.dtype(getattr(ml_dtypes, ML_DTYPES[name]))
    x = np.concatenate([stratified(2, 200_000), stratified(3, 200_000) | np.uint32(1 << 31)]).view(np.float32)
    values = get_element(name).values()
    ordered = np.unique(values[np.isfinite(values)])
    borders = ((ordered[1:] + ordered[:-1]) / 2).astype(np.float32)
    x = np.concatenate([x, borders, np.nextafter(borders, np.float32(9e9)), np.nextafter(borders, np.float32(-9e9))])
    if name == "ue8m0":
        x = x[np.abs(x) >= np.finfo(np.float32).tiny]  # it takes FP32's subnormals for the next power up
    theirs = x.astype(other)
    assert same(round_to(x, name, saturates=False), theirs.astype(np.float32)).all()
    codes = encode(x, name, saturates=False)
    assert np.array_equal(codes, theirs.view(codes.dtype))
    every = np.arange(1 << get_element(name).bits, dtype=codes.dtype)
    assert np.array_equal(decode(every, name), every.view(other).astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("bits", [2, 4])
def test_whole_numbers_are_those_of_ml_dtypes_inside_their_range_and_saturate_beyond(bits):
    element = get_element(f"int{bits}")
    inside = np.arange(-(1 << (bits - 1)), 1 << (bits - 1)).astype(np.float32)
    other = getattr(ml_dtypes, f"int{bits}")
    assert np.array_equal(round_to(inside, element), inside.astype(other).astype(np.float32))
    assert round_to(np.float32([1e9, -1e9]), element).tolist() == [element.highest, -element.highest - 1]


@pytest.mark.parametrize("name", NARROW)
def test_every_code_is_read_and_written_back(name):
    element = get_element(name)
    values = element.values()
    numbers = np.flatnonzero(np.isfinite(values))
    codes = encode(values[numbers], element)
    assert np.array_equal(values[codes], values[numbers])
    if isinstance(element, Minifloat):
        assert np.array_equal(codes, numbers), "minus zero has a code of its own"
    assert np.array_equal(round_to(values[numbers], element), values[numbers])
    assert element.highest == values[numbers].max()


def allowed(element) -> dict[Fraction, int]:
    """The numbers of an element, rising, with their lowest codes."""
    numbers = sorted((Fraction(v), -c) for c, v in enumerate(element.values().tolist()) if math.isfinite(v))
    return {value: -code for value, code in numbers}


def oracle(x: float, codes: dict[Fraction, int], rounding: Rounding) -> float:
    """The number that one mode picks, by looking at all of them."""
    exact, values = Fraction(x), list(codes)
    below = max((v for v in values if v <= exact), default=values[0])
    above = min((v for v in values if v >= exact), default=values[-1])
    if rounding is Rounding.UP:
        return float(above)
    if rounding is Rounding.DOWN:
        return float(below)
    if rounding is Rounding.TOWARD_ZERO:
        return float(below if exact > 0 else above)
    if rounding is Rounding.ODD:
        return float(below if below == above or codes[below] % 2 else above)
    if exact - below == above - exact:
        return float(above if (exact > 0) == (rounding is Rounding.NEAREST_AWAY) else below)
    return float(below if exact - below < above - exact else above)


@pytest.mark.parametrize("rounding", [r for r in Rounding if not r.is_drawn and r is not Rounding.NEAREST_EVEN])
@pytest.mark.parametrize("name", ["e4m3fn", "e2m1", "e5m2", "int4", "fixed8_6", "nf4", "pot4", "ternary", "e3m2flush"])
def test_directed_modes_pick_the_neighbour_that_they_name(name, rounding):
    if rounding is Rounding.ODD and name in ("ternary", "e3m2flush"):
        return  # neighbours there are both even
    element, rng = get_element(name), np.random.default_rng(3)
    listed = allowed(element)
    values = np.array([float(v) for v in listed])
    x = np.concatenate([values, (values[1:] + values[:-1]) / 2, rng.uniform(2 * values[0], 2 * values[-1], 100)])
    x = x if x.size < 150 else rng.choice(x, 150, replace=False)
    for dtype in (np.float32, np.float64):
        cast = x.astype(dtype)
        assert round_to(cast, element, rounding=rounding).tolist() == [
            oracle(v, listed, rounding) for v in cast.tolist()
        ]


@pytest.mark.parametrize("name", ["e4m3fn", "e2m1", "int4", "nf4", "posit8_1", "ue5m3"])
def test_stochastic_rounding_is_unbiased_and_takes_only_neighbours(name):
    element, rng = get_element(name), np.random.default_rng(11)
    values = element.values()
    ordered = np.unique(values[np.isfinite(values)])
    draws = 40_000
    for low, high in zip(ordered[5:-1:7], ordered[6::7], strict=False):
        for part in (0.1, 0.5, 0.9):
            x = np.float32(low + part * (high - low))
            got = round_to(np.full(draws, x), element, rounding=Rounding.STOCHASTIC, rng=rng)
            assert set(np.unique(got)) <= {np.float32(low), np.float32(high)}
            spread = (high - low) * math.sqrt(part * (1 - part) / draws)
            assert abs(got.mean(dtype=np.float64) - x) < 5 * spread + 1e-6 * abs(high)


def test_stochastic_rounding_keeps_what_needs_no_rounding_and_asks_for_a_stream():
    x = get_element("e4m3fn").values()[:126].astype(np.float32)
    assert np.array_equal(round_to(x, "e4m3fn", rounding=Rounding.STOCHASTIC, rng=np.random.default_rng(0)), x)
    with pytest.raises(ScenarioError, match="rng"):
        round_to(x, "e4m3fn", rounding=Rounding.STOCHASTIC)
    one, two = (round_to(x + 0.01, "e4m3fn", rounding=Rounding.STOCHASTIC, rng=np.random.default_rng(5)) for _ in "ab")
    assert np.array_equal(one, two)


def test_rounding_in_place_gives_the_same():
    x = np.random.default_rng(0).standard_normal((700, 700)).astype(np.float32)
    want = round_to(x, "e3m2")
    assert round_to(x, "e3m2", out=x) is x
    assert np.array_equal(x, want)
    with pytest.raises(ScenarioError, match="contiguous floats of shape"):
        round_to(x, "e3m2", out=x.T)


def test_overflow_goes_where_the_format_says():
    x = np.float32([464.0, 464.001, 480.0, np.inf, -np.inf])
    assert round_to(x, "e4m3fn").tolist() == [448, 448, 448, 448, -448]
    assert np.isnan(round_to(x, "e4m3fn", saturates=False)).tolist() == [False, True, True, True, True]
    assert round_to(np.float32([61440.0, 61439.0]), "e5m2", saturates=False).tolist() == [np.inf, 57344]
    assert round_to(np.float32([9.0, -np.inf]), "e2m1", saturates=False).tolist() == [6, -6]


def test_zero_keeps_its_sign_where_there_is_a_code_for_it():
    zeros = np.float32([0.0, -0.0, -1e-30])
    assert np.signbit(round_to(zeros, "e4m3fn")).tolist() == [False, True, True]
    assert not np.signbit(round_to(zeros, "e4m3fnuz")).any()
    assert not np.signbit(round_to(zeros, "int8")).any()


def test_formats_without_subnormals_go_to_zero_or_the_smallest_normal_number():
    x = np.float32([0.124, 0.125, 0.126, 0.2, 0.25, 0.3])
    assert round_to(x, "e3m2flush").tolist() == [0, 0, 0.25, 0.25, 0.25, 0.3125]
    assert round_to(np.float32([0.03, 0.07, 0.2]), "e3m2").tolist() == [0, 0.0625, 0.1875]


def test_fp64_is_rounded_once():
    just_above_a_tie = 1.0 + 2.0**-4 + 2.0**-40  # FP32 would make a tie of it, and the tie goes down
    assert round_to(np.array([just_above_a_tie]), "e4m3fn").tolist() == [1.125]
    assert round_to(np.array([np.float32(just_above_a_tie)]), "e4m3fn").tolist() == [1.0]
    ints = np.array([2**31 - 1, -(2**31)])
    assert round_to(ints, "int32").tolist() == ints.tolist()


@pytest.mark.parametrize("name", ["fp16", "bf16", "tf32", "fp32"])
def test_wide_formats_agree_with_the_casts_of_numpy(name):
    x = np.concatenate([stratified(5, 100_000), stratified(6, 100_000) | np.uint32(1 << 31)]).view(np.float32)
    if name == "fp16":
        with np.errstate(over="ignore", invalid="ignore"):
            want = x.astype(np.float16)
        assert np.array_equal(encode(x, name, saturates=False)[~np.isnan(x)], want.view(np.uint16)[~np.isnan(x)])
    elif name == "fp32":
        want = x
    else:
        drop = {"bf16": 16, "tf32": 13}[name]
        bits = x.view(np.uint32).astype(np.uint64)
        bits = bits + (np.uint64(1) << np.uint64(drop - 1)) - 1 + ((bits >> np.uint64(drop)) & np.uint64(1))
        want = ((bits >> np.uint64(drop)) << np.uint64(drop)).astype(np.uint32).view(np.float32)
    got = round_to(x, name, saturates=False)
    finite = ~np.isnan(x)
    assert same(got[finite], want.astype(np.float32)[finite]).all()
    assert np.isnan(got[~finite]).all()
    assert np.array_equal(decode(encode(got, name, saturates=False), name)[finite], got[finite])


def test_posits_are_those_of_the_standard():
    """posit(8, 2) of the 2022 standard: values from its definition, written out by hand."""
    values = get_element("posit8_2").values()
    assert values[[0x00, 0x01, 0x40, 0x41, 0x48, 0x7F, 0xC0, 0xFF]].tolist() == [
        0.0,
        2.0**-24,
        1.0,
        1.125,
        2.0,
        2.0**24,
        -1.0,
        -(2.0**-24),
    ]
    assert np.isnan(values[0x80])
    tiny = round_to(np.float32([1e-30, -1e-30, 1e30, 0.0]), "posit8_2").tolist()
    assert tiny == [2.0**-24, -(2.0**-24), 2.0**24, 0.0], "never to zero, never beyond the largest"
    assert encode(np.float32([np.nan]), "posit8_2").tolist() == [0x80]


def test_a_posit_between_two_in_the_regime_goes_by_its_bits_not_by_the_middle():
    """Between 2^20 (0x7E) and 2^24 (0x7F) the next bit stands for 2^22, far below the middle."""
    got = round_to(np.float32([2.0**22 * 1.01, 2.0**22 * 0.99]), "posit8_2")
    assert got.tolist() == [2.0**24, 2.0**20]


def test_powers_multiply_by_adding_exponents():
    values = get_element("pot4").values()
    positive = values[values > 0]
    assert np.array_equal(np.log2(positive), np.round(np.log2(positive)))
    power = get_element("power4_0.5").values()
    codes = np.arange(1, 8)
    assert power[codes] == pytest.approx((codes / 7.0) ** 2.0)
    products = np.outer(power[codes], power[codes])
    assert products == pytest.approx((np.outer(codes, codes) / 49.0) ** 2.0), "|xy|^a = |x|^a |y|^a"


def test_nf4_is_made_of_quantiles_of_a_normal_distribution():
    """QLoRA, appendix E: eight quantiles above zero, seven below, from one probability to a half, scaled to one."""
    inverse, most = NormalDist().inv_cdf, 0.9677083
    above = [inverse(p) for p in np.linspace(most, 0.5, 9)[:-1].tolist()]
    below = [-inverse(p) for p in np.linspace(most, 0.5, 8)[:-1].tolist()]
    want = np.sort(np.array([*below, 0.0, *above])) / max(above)
    assert get_element("nf4").values() == pytest.approx(want, abs=2e-6)


def test_a_learned_table_has_less_error_than_the_uniform_one():
    x = np.random.default_rng(0).standard_normal(20_000)
    table = learned(x, 4)
    uniform = Lookup(name="uniform", bits=4, table=tuple(np.linspace(x.min(), x.max(), 16).tolist()))
    error = [np.mean((round_to(x, e) - x) ** 2) for e in (table, uniform)]
    assert error[0] < 0.6 * error[1]
    assert error[0] == pytest.approx(0.0095, rel=0.1), "Max 1960: the best 16 levels of a normal variable"


def test_tables_refuse_what_is_not_a_number():
    with pytest.raises(ScenarioError, match="nf4 has no code for NaN"):
        round_to(np.float32([1.0, np.nan]), "nf4")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("e9", UnknownName),
        ("int1", OutOfRange),
        ("int33", OutOfRange),
        ("posit40_1", OutOfRange),
        ("e0m3", OutOfRange),
        ("e12m3", OutOfRange),
        ("power4_9", OutOfRange),
        ("pot9", OutOfRange),
        ("bipolar0", OutOfRange),
        ("e1m0fn", OutOfRange),
        ("e11m4", OutOfRange),
        ("e4m3b2000", OutOfRange),
        ("e4m3b-2000", OutOfRange),
    ],
)
def test_names_that_make_no_format_are_refused(name, error):
    with pytest.raises(error):
        get_element(name)


def test_codes_that_do_not_exist_are_refused():
    with pytest.raises(ScenarioError, match="0 to 15; got 0 to 16"):
        decode(np.array([0, 16]), "e2m1")
    with pytest.raises(ScenarioError, match="whole numbers"):
        decode(np.array([0.5]), "e2m1")
    with pytest.raises(ScenarioError, match="array of <U1"):
        round_to(np.array(["a"]), "e2m1")
