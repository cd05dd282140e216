"""The inner loops of rounding, coding and scaling: few operations an element and no branch, so that they vectorise.

A number x of binade e lies on a ladder with steps of 2^q, q = e - mantissa_bits above the ladder's smallest exponent
and constant below it. x 2^-q is exact, is rounded to a whole number, and is scaled back, which is exact again: this
is correct as long as 2^q and 2^-q are normal numbers of the type computed in; the caller chooses the type. Formats with
all of FP32's exponents are rounded on their bits instead.
"""

import numpy as np

from orrery.base.compiled import (
    Codes,
    Entries,
    Floats,
    LongCodes,
    Numbers,
    ShortCodes,
    Singles,
    Singles2,
    Words,
    bits_of_float,
    bits_of_single,
    compiled,
    float_of_bits,
    single,
    single_of_bits,
    word,
)

NEAREST_EVEN, NEAREST_AWAY, TOWARD_ZERO, UP, DOWN, NEAREST_ZERO, ODD, STOCHASTIC, STOCHASTIC_EQUAL = range(9)


def _word(bits: int) -> word:
    """32 bits as a signed number."""
    return np.int32((bits ^ 0x80000000) - 0x80000000)


def _nearest_f32(v: single, least: word, cut: word, sub: word) -> single:
    """One number, nearest even on a ladder without end."""
    e = ((bits_of_single(v) >> np.int32(23)) & np.int32(255)) - np.int32(127)
    q = min(e - cut if e >= least else sub, np.int32(126))
    return np.rint(v * single_of_bits((np.int32(127) - q) << np.int32(23))) * single_of_bits(
        (np.int32(127) + q) << np.int32(23)
    )


@compiled
def round_nearest_f32(
    x: Singles, out: Singles, min_exponent: int, mantissa_bits: int, sub_exponent: int, limits: Singles
) -> None:
    """Nearest even on a ladder whose steps are normal FP32 numbers; limits as in ``round_f64``."""
    highest, lowest, above, below, nan_as, zero = limits[0], limits[1], limits[2], limits[3], limits[4], limits[5]
    least, cut, sub = np.int32(min_exponent), np.int32(mantissa_bits), np.int32(sub_exponent)
    for i in range(x.size):
        v = x[i]
        y = _nearest_f32(v, least, cut, sub)
        y = above if y > highest else y
        y = below if y < lowest else y
        y = y if v == v else (nan_as if bits_of_single(v) >= 0 else -nan_as)
        out[i] = y + zero  # minus zero, or zero where the format has no minus zero


@compiled
def round_powers_f32(x: Singles, out: Singles, above: single) -> None:
    """Nearest power of two, from 2^-127 to 2^127, by the significand; NaN for what is not above zero."""
    for i in range(x.size):
        v = x[i]
        u = bits_of_single(v)
        power = (u + np.int32(0x400000)) & np.int32(0x7F800000) if u >= np.int32(0x600000) else np.int32(0x400000)
        y = single_of_bits(power)
        y = above if power == np.int32(0x7F800000) else y
        out[i] = y if v > 0 else np.float32(np.nan)


@compiled
def round_f64(
    x: Numbers,
    out: Numbers,
    min_exponent: int,
    mantissa_bits: int,
    sub_exponent: int,
    limits: Floats,
    mode: int,
    chance: Floats,
) -> None:
    """Any mode on any ladder, computed in FP64; ``chance``: a number in (0, 1] for each element if drawn.

    ``limits``: highest, lowest, what is beyond them becomes, what NaN becomes, and what is added to keep or drop
    the sign of zero.
    """
    highest, lowest, above, below, nan_as, zero = limits[0], limits[1], limits[2], limits[3], limits[4], limits[5]
    least, cut, sub = np.int64(min_exponent), np.int64(mantissa_bits), np.int64(sub_exponent)
    for i in range(x.size):
        v = np.float64(x[i])
        e = ((bits_of_float(v) >> np.int64(52)) & np.int64(2047)) - np.int64(1023)
        q = min(e - cut if e >= least else sub, np.int64(1022))
        unit = float_of_bits((np.int64(1023) + q) << np.int64(52))
        s = v * float_of_bits((np.int64(1023) - q) << np.int64(52))
        if mode == NEAREST_EVEN:
            s = np.rint(s)
        elif mode == TOWARD_ZERO:
            s = np.trunc(s)
        elif mode == UP:
            s = np.ceil(s)
        elif mode == DOWN:
            s = np.floor(s)
        else:
            low = np.trunc(s)
            rest = np.abs(s - low)
            if mode == STOCHASTIC:
                goes_away = rest >= chance[i]
            elif mode == STOCHASTIC_EQUAL:
                goes_away = rest > 0 and chance[i] > 0.5
            elif mode == ODD:
                goes_away = rest > 0 and low == 2 * np.trunc(low / 2)
            else:
                goes_away = rest > 0.5 or (rest == 0.5 and mode == NEAREST_AWAY)
            s = low + np.copysign(1.0, s) if goes_away else low
        y = np.copysign(s * unit, v)
        y = above if y > highest else y
        y = below if y < lowest else y
        y = y if v == v else (nan_as if bits_of_float(v) >= 0 else -nan_as)
        out[i] = y + zero


@compiled
def round_bits_f32(x: Singles, out: Singles, mantissa_bits: int, limits: Singles) -> None:
    """Nearest even to fewer mantissa bits of FP32, subnormals included: on the bits; limits as in ``round_f64``."""
    highest, lowest, above, below = limits[0], limits[1], limits[2], limits[3]
    cut = np.int32(23 - mantissa_bits)
    odd = np.int32(min(cut, 1))
    half = ((np.int32(1) << cut) >> np.int32(1)) - odd
    keep = np.int32(-1) << cut
    for i in range(x.size):
        v = x[i]
        u = bits_of_single(v)
        y = single_of_bits((u + half + ((u >> cut) & odd)) & keep)
        y = above if y > highest else y
        y = below if y < lowest else y
        out[i] = v if v != v else y


@compiled
def look_up_f32(x: Singles, out: Entries, table: Entries, thresholds: Singles, starts: Words, nan_as: float) -> None:
    """The entry of ``table`` for every number: as many entries up as there are thresholds below it.

    ``starts``: thresholds below each of the 2^16 stretches of numbers that agree in the upper half of their bits,
    in rising order.
    """
    for i in range(x.size):
        v = x[i]
        u = bits_of_single(v)
        stretch = ((u ^ ((u >> np.int32(31)) & np.int32(0x7FFFFFFF))) >> np.int32(16)) + np.int32(32768)
        low, high = starts[stretch], starts[stretch + 1]
        while low < high:
            middle = (low + high) >> 1
            if v > thresholds[middle]:
                low = middle + 1
            else:
                high = middle
        out[i] = table[low] if v == v else nan_as


@compiled
def look_up_f64(x: Floats, out: Entries, table: Entries, thresholds: Floats, nan_as: float) -> None:
    """``look_up_f32`` for FP64, by bisection alone."""
    for i in range(x.size):
        v, low, high = x[i], 0, thresholds.size
        while low < high:
            middle = (low + high) >> 1
            if v > thresholds[middle]:
                low = middle + 1
            else:
                high = middle
        out[i] = table[low] if v == v else nan_as


WHOLE = 2.0**52
"""A whole number below this, added to it, stands in the last bits of the sum."""


@compiled
def encode_f32(
    y: Singles,
    codes: Codes,
    cut: int,
    offset: int,
    smallest: float,
    scale: float,
    sign_bit: int,
    nan_code: int,
    nan_sign: int,
    most: int,
) -> None:
    """Codes of numbers on a ladder of floats: sign, biased exponent, mantissa.

    From ``smallest`` on a code is the number's own bits without the ``cut`` last ones, less ``offset``; below, the
    count of smallest steps. ``most``: the code of infinity, or above all codes. A NaN's sign flips ``nan_sign`` of its
    code.
    """
    shift = np.int32(32 - sign_bit)
    mask = _word(1 << (sign_bit - 1)) if sign_bit > 0 else np.int32(0)
    dropped, less, nan, flipped = np.int32(cut), np.int32(offset), np.int32(nan_code), _word(nan_code ^ nan_sign)
    least, steps, top = np.float32(smallest), np.float32(scale), np.int32(most)
    for i in range(y.size):
        v = y[i]
        u = bits_of_single(v)
        a = np.abs(v)
        big = min(((u & np.int32(0x7FFFFFFF)) >> dropped) - less, top)
        small = np.int32(min(least, a) * steps)
        code = (big if a >= least else small) | ((u >> shift) & mask)
        codes[i] = code if v == v else (nan if u >= 0 else flipped)


@compiled
def encode_f64(
    y: Floats,
    codes: LongCodes,
    cut: int,
    offset: int,
    smallest: float,
    scale: float,
    sign_bit: int,
    nan_code: int,
    nan_sign: int,
    most: int,
) -> None:
    """``encode_f32`` for ladders that need FP64."""
    mask = np.int64(1) << (sign_bit - 1) if sign_bit > 0 else np.int64(0)
    nan, flipped, dropped = np.int64(nan_code), np.int64(nan_code ^ nan_sign), np.uint64(cut)
    for i in range(y.size):
        v = y[i]
        u = bits_of_float(v)
        a = np.abs(v)
        size = np.uint64(u & np.int64(0x7FFFFFFFFFFFFFFF)) >> dropped  # which vector units know without a sign only
        big = min(np.int64(size) - offset, most)
        small = bits_of_float(min(smallest, a) * scale + WHOLE) & np.int64(0xFFFFFFFFFFFFF)
        code = (big if a >= smallest else small) | (mask if u < 0 else np.int64(0))
        codes[i] = code if v == v else (nan if u >= 0 else flipped)


@compiled
def encode_bits_f32(x: Singles, codes: Codes, mantissa_bits: int, sign_bit: int, nan_code: int, most: int) -> None:
    """Rounding and coding in one where codes are the upper bits of FP32; ``most`` as the largest magnitude's code."""
    cut = np.int32(23 - mantissa_bits)
    odd = np.int32(min(cut, 1))
    half = ((np.int32(1) << cut) >> np.int32(1)) - odd
    sign, top, nan = _word(1 << (sign_bit - 1)), np.int32(most), np.int32(nan_code)
    for i in range(x.size):
        v = x[i]
        u = bits_of_single(v)
        size = u & np.int32(0x7FFFFFFF)
        code = min((size + half + ((size >> cut) & odd)) >> cut, top)
        code = code if v == v else nan
        codes[i] = code | (sign if u < 0 else np.int32(0))


@compiled
def encode_fixed_f32(y: Singles, codes: Codes, scale: single, mask: int) -> None:
    """Two's complement codes of whole numbers over a power of two, which have at most 32 bits."""
    retained = _word(mask)
    for i in range(y.size):
        codes[i] = np.int32(y[i] * scale) & retained


@compiled
def encode_fixed_f64(y: Floats, codes: LongCodes, scale: float, mask: int) -> None:
    """``encode_fixed_f32`` for up to 64 bits."""
    for i in range(y.size):
        codes[i] = np.int64(y[i] * scale) & mask


@compiled
def decode_table(codes: ShortCodes, table: Singles, out: Singles) -> None:
    """Values by table."""
    for i in range(codes.size):
        out[i] = table[codes[i]]


@compiled
def decode_fixed(codes: ShortCodes, sign: int, lowest: int, scale: single, out: Singles) -> None:
    """Values of whole numbers in two's complement; ``sign``: the bit that counts negative, 0 where none does."""
    bit, least = np.int32(sign), np.int32(lowest)
    for i in range(codes.size):
        out[i] = np.float32(max((np.int32(codes[i]) ^ bit) - bit, least)) * scale


@compiled
def group_amax(x: Singles2, size: int, out: Singles2) -> None:
    """The largest magnitude of every ``size`` numbers of each row; NaN or infinity where one is in the group.

    Magnitudes are compared as integers: in IEEE's encoding these have the same order, with NaN last. Here and below a
    group is a slice of its own, so that the loop over it starts at zero and becomes vector code.
    """
    for r in range(x.shape[0]):
        for g in range(out.shape[1]):
            group = x[r, g * size : (g + 1) * size]
            most = np.int32(0)
            for i in range(group.size):
                most = max(most, bits_of_single(group[i]) & np.int32(0x7FFFFFFF))
            out[r, g] = single_of_bits(most)


@compiled
def group_ends(x: Singles2, size: int, lowest: Singles2, highest: Singles2) -> None:
    """The smallest and the largest number of every ``size`` of each row; NaN where one is there."""
    for r in range(x.shape[0]):
        for g in range(lowest.shape[1]):
            group = x[r, g * size : (g + 1) * size]
            low = high = group[0]
            for i in range(group.size):
                v = group[i]
                low = v if v < low or v != v else low
                high = v if v > high or v != v else high
            lowest[r, g], highest[r, g] = low, high


LANES = 16
"""Numbers that a loop of fixed length treats at once: groups of 16 would be too short for one of any length."""


@compiled
def round_groups_f32(
    x: Singles2,
    size: int,
    encode: Singles2,
    divides: bool,
    decode: Singles2,
    out: Singles2,
    min_exponent: int,
    mantissa_bits: int,
    sub_exponent: int,
    limits: Singles,
) -> None:
    """Every number over (or times) its group's ``encode``, rounded as ``round_nearest_f32``, times ``decode``.

    What is too large saturates. A group whose divisor is 0 holds zeros; one with NaN in it has the scale NaN.
    """
    highest, lowest, zero = limits[0], limits[1], limits[5]
    least, cut, sub = np.int32(min_exponent), np.int32(mantissa_bits), np.int32(sub_exponent)
    for r in range(x.shape[0]):
        for g in range(decode.shape[1]):
            start, stop = g * size, min((g + 1) * size, x.shape[1])
            f, d = encode[r, g], decode[r, g]
            if divides and f == 0:
                out[r, start:stop] = 0
                continue
            for b in range(start, stop, LANES):
                lane, result = x[r, b : min(b + LANES, stop)], out[r, b : min(b + LANES, stop)]
                if lane.size == LANES and not divides:
                    for i in range(LANES):
                        y = _nearest_f32(lane[i] * f, least, cut, sub)
                        result[i] = (max(min(y, highest), lowest) + zero) * d
                elif lane.size == LANES:
                    for i in range(LANES):
                        y = _nearest_f32(lane[i] / f, least, cut, sub)
                        result[i] = (max(min(y, highest), lowest) + zero) * d
                else:
                    for i in range(lane.size):
                        y = _nearest_f32(lane[i] / f if divides else lane[i] * f, least, cut, sub)
                        result[i] = (max(min(y, highest), lowest) + zero) * d


@compiled
def divide_groups(x: Singles2, size: int, scale: Singles2, out: Singles2) -> None:
    """Every number over its group's scale; 0 where the scale is 0."""
    for r in range(x.shape[0]):
        for g in range(scale.shape[1]):
            group, result, s = x[r, g * size : (g + 1) * size], out[r, g * size : (g + 1) * size], scale[r, g]
            if s == 0:
                result[:] = 0
            else:
                for i in range(group.size):
                    result[i] = group[i] / s


@compiled
def multiply_groups(x: Singles2, size: int, scale: Singles2, out: Singles2) -> None:
    """Every number times its group's scale."""
    for r in range(x.shape[0]):
        for g in range(scale.shape[1]):
            group, result, s = x[r, g * size : (g + 1) * size], out[r, g * size : (g + 1) * size], scale[r, g]
            for i in range(group.size):
                result[i] = group[i] * s


@compiled
def add_groups(x: Singles2, size: int, term: Singles2, out: Singles2) -> None:
    """Every number plus its group's term."""
    for r in range(x.shape[0]):
        for g in range(term.shape[1]):
            group, result, s = x[r, g * size : (g + 1) * size], out[r, g * size : (g + 1) * size], term[r, g]
            for i in range(group.size):
                result[i] = group[i] + s


@compiled
def add_errors(x: Numbers, y: Numbers, sums: Floats) -> None:
    """Adds to sums: x squared, y squared, x y, (y - x) squared, y - x, the largest |y - x|, and numbers made zero."""
    xx, yy, xy, ee, e, most, zeros = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6]
    for i in range(x.size):
        a, b = np.float64(x[i]), np.float64(y[i])
        d = b - a
        xx += a * a
        yy += b * b
        xy += a * b
        ee += d * d
        e += d
        most = max(most, np.abs(d))
        zeros += 1.0 if b == 0.0 and a != 0.0 else 0.0
    sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6] = xx, yy, xy, ee, e, most, zeros


@compiled
def add_sizes(x: Numbers, bound: float, sums: Floats) -> None:
    """Adds to sums: how many are no finite numbers, how many of the others beyond ``bound``, squares, the largest."""
    bad, beyond, squares, most = sums[0], sums[1], sums[2], sums[3]
    for i in range(x.size):
        size = np.abs(np.float64(x[i]))
        is_finite = size < np.inf
        size = size if is_finite else 0.0
        bad += 0.0 if is_finite else 1.0
        beyond += 1.0 if size > bound else 0.0
        squares += size * size
        most = max(most, size)
    sums[0], sums[1], sums[2], sums[3] = bad, beyond, squares, most
