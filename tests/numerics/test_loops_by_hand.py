"""The inner loops of rounding, coding and scaling against their definitions, a few numbers at a time."""

from fractions import Fraction
from math import copysign, floor, frexp, inf, isnan, nan

import numpy as np
import pytest

from orrery.numerics.codec import _kernel as loops

MIN_EXPONENT, MANTISSA_BITS, SUB_EXPONENT = -6, 3, -9
"""A ladder with 8 steps to a binade from 2^-6 on, and steps of 2^-9 below: E4M3's, here up to 448."""

SIZES = [0.0, 1.0, 1.0625, 1.1875, 1.25, 1.3, 3.3, 17.0, 447.0, 448.0, 449.0, 1e30, inf]
SMALL = [2.0**-6, 1.4 * 2.0**-7, 2.5 * 2.0**-9, 3.5 * 2.0**-9, 0.5 * 2.0**-9, 0.3 * 2.0**-9, 1e-30]
NUMBERS = [sign * v for v in (*SIZES, *SMALL) for sign in (1.0, -1.0)]
LIMITS = [448.0, -448.0, 500.0, -600.0, 77.0, -0.0]
"""Highest, lowest, what is beyond them becomes, what NaN becomes, and what keeps the sign of zero."""

MODES = {
    loops.NEAREST_EVEN: round,
    loops.TOWARD_ZERO: int,
    loops.UP: lambda s: -floor(-s),
    loops.DOWN: floor,
    loops.NEAREST_AWAY: lambda s: (1 if s >= 0 else -1) * floor(abs(s) + Fraction(1, 2)),
    loops.NEAREST_ZERO: lambda s: (1 if s >= 0 else -1) * -floor(-(abs(s) - Fraction(1, 2))),
    loops.ODD: lambda s: s if s == int(s) else int(s) + (int(s) % 2 == 0) * (1 if s > 0 else -1),
}


def on_the_ladder(v, whole):
    """One number by definition: its count of steps made whole."""
    if isnan(v):
        return copysign(77.0, v)
    if abs(v) == inf:
        return 500.0 if v > 0 else -600.0
    binade = frexp(v)[1] - 1 if v else -1000
    step = Fraction(2) ** (binade - MANTISSA_BITS if binade >= MIN_EXPONENT else SUB_EXPONENT)
    y = copysign(float(whole(Fraction(v) / step) * step), v)
    return 500.0 if y > 448 else -600.0 if y < -448 else y


def same(found, expected):
    """Equal, zeros with their signs."""
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # infinity less itself, in plain Python
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_way_of_rounding_is_its_definition(mode, kind):
    x = np.array([*NUMBERS, nan, -nan], dtype=kind)
    out = np.empty_like(x)
    loops.round_f64(x, out, MIN_EXPONENT, MANTISSA_BITS, SUB_EXPONENT, np.array(LIMITS), mode, np.empty(0))
    same(out, np.array([on_the_ladder(float(v), MODES[mode]) for v in x], dtype=kind))


def test_rounding_to_the_nearest_in_single_precision():
    x = np.array([*NUMBERS, nan, -nan], dtype=np.float32)
    out = np.empty_like(x)
    loops.round_nearest_f32(x, out, MIN_EXPONENT, MANTISSA_BITS, SUB_EXPONENT, np.array(LIMITS, np.float32))
    same(out, np.array([on_the_ladder(float(v), round) for v in x], dtype=np.float32))
    positive = np.array([*LIMITS[:5], 0.0], np.float32)
    loops.round_nearest_f32(np.float32([-0.0, 0.0]), out[:2], MIN_EXPONENT, MANTISSA_BITS, SUB_EXPONENT, positive)
    same(out[:2], np.float32([0.0, 0.0]))


def test_drawn_rounding_goes_away_where_the_rest_reaches_the_chance():
    """1.0625 is half a step above 1; a drawn number of 0.5 takes it up, one of 0.51 does not. Equal chances: any rest
    goes away above 0.5; what lies on the ladder never moves."""

    def drawn(mode, x, chance):
        out = np.empty(len(x))
        limits = np.array(LIMITS)
        loops.round_f64(np.array(x), out, MIN_EXPONENT, MANTISSA_BITS, SUB_EXPONENT, limits, mode, np.array(chance))
        return out.tolist()

    half = [1.0625, 1.0625, -1.0625, 1.125, -1.0]
    assert drawn(loops.STOCHASTIC, half, [0.5, 0.51, 0.5, 1e-9, 1.0]) == [1.125, 1, -1.125, 1.125, -1]
    assert drawn(loops.STOCHASTIC_EQUAL, half, [0.51, 0.5, 0.9, 0.9, 0.9]) == [1.125, 1, -1.125, 1.125, -1]


def test_powers_of_two():
    """Up from 1.5 times a power; not below 2^-127; beyond the largest what is said; none of what is not positive."""
    x = np.array([1, 1.4999, 1.5, 2.9, 3, 2**-126, 1.49 * 2**-127, 1.51 * 2**-127, 1e-45, 1.6 * 2.0**127], np.float32)
    out = np.empty_like(x)
    loops.round_powers_f32(x, out, np.float32(99))
    assert out.tolist() == [1, 1, 2, 2, 4, 2**-126, 2**-127, 2**-126, 2**-127, 99]
    loops.round_powers_f32(np.float32([0, -1, nan]), out[:3], np.float32(99))
    assert np.isnan(out[:3]).all()


def test_fewer_mantissa_bits_of_single_precision():
    """1 + 2^-8 is half a step of 7 bits: even stays at 1; with 2^-7 more it goes up. All 23 bits: nothing moves."""
    x = np.float32([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 3 * 2**-8, 3 * 2.0**-134, 5.0, -5.0, nan])
    out = np.empty_like(x)
    loops.round_bits_f32(x, out, 7, np.float32([4, -4, 9, -8, 0, 0]))
    same(out[:7], np.float32([1, 1 + 2**-6, 1 + 2**-7, -1 - 2**-6, 2 * 2.0**-133, 9, -8]))
    assert np.isnan(out[7])
    loops.round_bits_f32(np.float32([4, -4]), out[:2], 7, np.float32([4, -4, 9, -8, 0, 0]))
    assert out[:2].tolist() == [4, -4]
    loops.round_bits_f32(x, out, 23, np.float32([10, -10, 9, -8, 0, 0]))
    np.testing.assert_array_equal(out, x)


TABLE, THRESHOLDS = [-2.0, -0.5, 0.0, 3.0], [-1.25, -0.25, 1.5]


def test_entries_of_a_table():
    """As many entries up as there are thresholds below; a threshold itself stays down."""
    x = [-9.0, -1.25, -1.2, -0.25, -0.2, 1.5, 1.6, nan]
    entry = [0, 0, 1, 1, 2, 2, 3, 8]
    want = [*TABLE, *[0] * 4, 7.0]
    out = np.empty(len(x))
    loops.look_up_f64(np.array(x), out, np.array(TABLE), np.array(THRESHOLDS), 7.0)
    assert out.tolist() == [want[i] for i in entry]
    for v, i in zip(x, entry, strict=True):
        bits = int(np.float32(v).view(np.int32))
        order = ((bits ^ 0x7FFFFFFF) if bits < 0 else bits) >> 16  # negative numbers in falling order of magnitude
        starts = np.where(np.arange(2**16 + 1) > order + 2**15, 3, 0).astype(np.int32)
        one = np.empty(1, np.float32)
        loops.look_up_f32(np.float32([v]), one, np.float32(TABLE), np.float32(THRESHOLDS), starts, 7.0)
        assert one[0] == want[i]


CODED = {0.0: 0, 2.0**-9: 1, 7 * 2.0**-9: 7, 2.0**-6: 8, 1.5 * 2.0**-6: 12, 1.0: 56, 1.875: 63, 448.0: 126, 1e6: 120}
"""Numbers on that ladder and their codes, none above 120 here."""


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_codes_of_floats(kind):
    """Eight bits: sign, four of the exponent with a bias of 7, three of the mantissa; a NaN keeps its sign."""
    cut, bias, encode, codes = (
        (20, 127, loops.encode_f32, np.uint8) if kind is np.float32 else (49, 1023, loops.encode_f64, np.uint64)
    )
    y = np.array([*CODED, *(-v for v in CODED), nan, -nan], kind)
    found = np.empty(len(y), codes)
    encode(y, found, cut, (bias - 7) << 3, 2.0**-6, 2.0**9, 8, 0x7F, 0x80, 120)
    plain = [min(code, 120) for code in CODED.values()]
    assert found.tolist() == [*plain, *(0x80 + code for code in plain), 0x7F, 0xFF]
    encode(y[: len(CODED)], found[: len(CODED)], cut, (bias - 7) << 3, 2.0**-6, 2.0**9, 0, 0x7F, 0, 255)
    assert found[: len(CODED)].tolist()[:-1] == [*CODED.values()][:-1]


def test_codes_that_are_the_upper_bits():
    """BF16: 16 bits of FP32, rounded to even; what is beyond the most stays there."""
    x = np.float32([1, 1 + 2**-8, 1 + 3 * 2**-8, -2, 3e38, inf, nan, -nan, 0, -0.0])
    codes = np.empty(len(x), np.uint16)
    loops.encode_bits_f32(x, codes, 7, 16, 0x7FC0, 0x7F00)
    assert codes.tolist() == [0x3F80, 0x3F80, 0x3F82, 0xC000, 0x7F00, 0x7F00, 0x7FC0, 0xFFC0, 0, 0x8000]


def test_codes_of_whole_numbers_and_back():
    """Quarters in four bits of two's complement; the code that counts as -8 is read as -7 where it is left out."""
    y, codes = [0.0, 0.25, -0.25, 1.75, -2.0], [0, 1, 15, 7, 8]
    short, long = np.empty(5, np.uint8), np.empty(5, np.uint64)
    loops.encode_fixed_f32(np.float32(y), short, np.float32(4), 15)
    loops.encode_fixed_f64(np.array(y), long, 4.0, 15)
    assert short.tolist() == long.tolist() == codes
    out = np.empty(5, np.float32)
    loops.decode_fixed(short, 8, -8, np.float32(0.25), out)
    assert out.tolist() == y
    loops.decode_fixed(short, 8, -7, np.float32(0.25), out)
    assert out.tolist() == [*y[:4], -1.75]
    loops.decode_fixed(short, 0, 0, np.float32(0.5), out)
    assert out.tolist() == [0, 0.5, 7.5, 3.5, 4]
    loops.decode_table(np.uint8([2, 0, 1]), np.float32([5, 6, 7]), out[:3])
    assert out[:3].tolist() == [7, 5, 6]


ROWS = np.float32([[1, -5, 2, 3, -4], [-0.5, 0.25, nan, 9, -inf]])
"""Two rows of two groups of three: the last one has two."""


def test_ends_of_groups():
    most, low, high = (np.empty((2, 2), np.float32) for _ in range(3))
    loops.group_amax(ROWS, 3, most)
    np.testing.assert_array_equal(most, np.float32([[5, 4], [nan, inf]]))
    loops.group_ends(ROWS, 3, low, high)
    np.testing.assert_array_equal(low, np.float32([[-5, -4], [nan, -inf]]))
    np.testing.assert_array_equal(high, np.float32([[2, 3], [nan, 9]]))


def test_groups_divided_multiplied_and_shifted():
    scale, out = np.float32([[2, 0], [4, -1]]), np.empty_like(ROWS)
    loops.divide_groups(ROWS, 3, scale, out)
    np.testing.assert_array_equal(out, np.float32([[0.5, -2.5, 1, 0, 0], [-0.125, 0.0625, nan, -9, inf]]))
    loops.multiply_groups(ROWS, 3, scale, out)
    np.testing.assert_array_equal(out, np.float32([[2, -10, 4, 0, -0.0], [-2, 1, nan, -9, inf]]))
    loops.add_groups(ROWS, 3, scale, out)
    np.testing.assert_array_equal(out, np.float32([[3, -3, 4, 3, -4], [3.5, 4.25, nan, 8, -inf]]))


@pytest.mark.parametrize("divides", [True, False])
@pytest.mark.parametrize("size", [16, 20, 3])
def test_groups_are_scaled_rounded_and_scaled_back(size, divides):
    """Loops of 16, and what is left over; a divisor of zero makes zeros; beyond 448 numbers saturate."""
    x = np.float32(np.linspace(-3.0, 3.0, 41))[None, :]
    groups = -(-41 // size)
    encode = np.float32([[2.0 ** (i % 5 - 2) for i in range(groups)]])
    encode[0, 1] = 0.0 if divides else 2.0**9
    decode = np.float32([[1.5 + i for i in range(groups)]])
    out = np.empty_like(x)
    limits = np.float32([448, -448, 500, -600, 77, 0])
    loops.round_groups_f32(x, size, encode, divides, decode, out, MIN_EXPONENT, MANTISSA_BITS, SUB_EXPONENT, limits)
    for i, v in enumerate(x[0].tolist()):
        f, d = float(encode[0, i // size]), float(decode[0, i // size])
        if divides and f == 0:
            assert out[0, i] == 0
            continue
        y = on_the_ladder(v / f if divides else v * f, round)
        assert out[0, i] == np.float32(max(min(y, 448.0), -448.0) * d)


def test_sums_of_errors():
    """Beside what the sums hold already: 1 -> 1.5, -2 -> 0, 0 -> 0 and 3 -> 2.75."""
    x, y = np.array([1.0, -2.0, 0.0, 3.0]), np.array([1.5, 0.0, 0.0, 2.75])
    sums = np.arange(7.0)
    loops.add_errors(x, y, sums)
    assert sums.tolist() == [0 + 14, 1 + 9.8125, 2 + 9.75, 3 + 4.3125, 4 + 2.25, 5, 6 + 1]
    sums[5] = 0.25
    loops.add_errors(x, y, sums)
    assert sums[5] == 2


def test_sums_of_sizes():
    """Two that are not finite, one beyond 2 (2 itself is not), squares of the finite ones, and the largest."""
    x = np.array([nan, -inf, -3.0, 2.0, 0.5])
    sums = np.array([10.0, 20.0, 30.0, 0.0])
    loops.add_sizes(x, 2.0, sums)
    assert sums.tolist() == [12, 21, 30 + 13.25, 3]
