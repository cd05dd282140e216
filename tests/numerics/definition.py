"""What the specifications say, in exact rational arithmetic and plain loops: slow and obvious."""

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class Float:
    """A floating-point format by the fields of its specification."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: str  # ieee, fn, fnuz, finite
    is_signed: bool = True

    @property
    def half(self) -> int:
        return 1 << (self.exponent_bits + self.mantissa_bits)

    def magnitude(self, code: int) -> Fraction:
        """The value of a code without sign, were it a number."""
        exponent, mantissa = divmod(code, 1 << self.mantissa_bits)
        fraction = Fraction(mantissa, 1 << self.mantissa_bits)
        if exponent == 0:
            return fraction * Fraction(2) ** (1 - self.bias)
        return (1 + fraction) * Fraction(2) ** (exponent - self.bias)

    def numbers(self) -> list[int]:
        """Codes without sign that are finite numbers."""
        out = {"ieee": 1 << self.mantissa_bits, "fn": 1, "fnuz": 0, "finite": 0}[self.specials]
        return list(range(self.half - out))

    def nearest(self, saturates: bool) -> list[tuple[Fraction, bool, int | str]]:
        """Where magnitudes begin to round to something else: threshold, whether a tie goes above it, what is above."""
        codes = self.numbers()
        steps = [((self.magnitude(a) + self.magnitude(b)) / 2, b % 2 == 0, b) for a, b in pairwise(codes)]
        if not saturates and self.specials != "finite":
            last = codes[-1]  # what would come next, had the exponent no end
            beyond = (self.magnitude(last) + self.magnitude(last + 1)) / 2
            steps.append((beyond, (last + 1) % 2 == 0, "inf" if self.specials == "ieee" else "nan"))
        return steps

    def segments(self, saturates: bool) -> list[tuple[int, float]]:
        """Rising bits of non-negative FP32 numbers where the result changes, and the result from there on."""
        found = [(0, 0.0)]
        for threshold, tie_goes_up, what in self.nearest(saturates):
            first = first_bits(threshold, tie_goes_up)
            value = {"inf": np.inf, "nan": np.nan}[what] if isinstance(what, str) else float(self.magnitude(what))
            found.append((first, value))
        return found


def first_bits(threshold: Fraction, tie_goes_up: bool) -> int:
    """The bits of the smallest FP32 number above (or at) a positive threshold, by bisection."""
    low, high = 0, 0x7F800000
    while low < high:
        middle = (low + high) // 2
        value = Fraction(float(np.uint32(middle).view(np.float32)))
        if value > threshold or (value == threshold and tie_goes_up):
            high = middle
        else:
            low = middle + 1
    return low


FLOATS = {
    "e4m3fn": Float(4, 3, 7, "fn"),
    "e4m3": Float(4, 3, 7, "ieee"),
    "e4m3fnuz": Float(4, 3, 8, "fnuz"),
    "e4m3b11fnuz": Float(4, 3, 11, "fnuz"),
    "e5m2": Float(5, 2, 15, "ieee"),
    "e5m2fnuz": Float(5, 2, 16, "fnuz"),
    "e3m4": Float(3, 4, 3, "ieee"),
    "e3m2": Float(3, 2, 3, "finite"),
    "e2m3": Float(2, 3, 1, "finite"),
    "e2m1": Float(2, 1, 1, "finite"),
    "e1m2": Float(1, 2, 0, "finite"),
    "e4m2fnuz": Float(4, 2, 8, "fnuz"),
    "ue4m3": Float(4, 3, 7, "fn", is_signed=False),
    "ue5m3": Float(5, 3, 15, "fn", is_signed=False),
}


def whole(bits: int, fraction_bits: int = 0, lowest: int | None = None) -> list[tuple[Fraction, int]]:
    """Two's complement over a power of two: values with their codes."""
    least = -(1 << (bits - 1)) if lowest is None else lowest
    return [(Fraction(n, 1 << fraction_bits), n % (1 << bits)) for n in range(least, 1 << (bits - 1))]


def posit(bits: int, exponent_bits: int) -> list[tuple[Fraction, int]]:
    """Every real number of a posit, by the fields of the standard: sign, regime, exponent, fraction."""
    found = [(Fraction(0), 0)]
    for code in range(1, 1 << (bits - 1)):
        text = format(code, f"0{bits - 1}b")
        run = len(text) - len(text.lstrip(text[0]))
        power = run - 1 if text[0] == "1" else -run
        rest = text[run + 1 :]
        exponent = int((rest + "0" * exponent_bits)[:exponent_bits] or "0", 2)
        fraction = sum((Fraction(int(b), 2 ** (i + 1)) for i, b in enumerate(rest[exponent_bits:])), Fraction(1))
        value = fraction * Fraction(2) ** (power * 2**exponent_bits + exponent)
        found += [(value, code), (-value, (1 << bits) - code)]
    return found


LISTED: dict[str, list[tuple[Fraction, int]]] = {
    "int8": whole(8),
    "int4": whole(4),
    "int4sym": whole(4, lowest=-7),
    "fixed8_6": whole(8, 6),
    "uint4": [(Fraction(n), n) for n in range(16)],
    "bipolar3": [(Fraction(2 * n - 7), n) for n in range(8)],
    "pot4": [
        (Fraction(0), 0),
        *((Fraction(s) * Fraction(2) ** (n - 7), n + 8 * (s < 0)) for n in range(1, 8) for s in (1, -1)),
    ],
    "ternary": [(Fraction(0), 0), (Fraction(1), 1), (Fraction(-1), 2)],
    "ue8m0": [(Fraction(2) ** (n - 127), 2 * n) for n in range(255)],  # a tie goes up: the significand 2 is even
    "posit8_1": posit(8, 1),
    "posit8_2": posit(8, 2),
    "posit4_1": posit(4, 1),
}
"""Formats as lists of values and codes; a tie goes to the upper code if that is even, else to the lower."""


def sides(name: str) -> dict[int, list[tuple[int, float]]]:
    """By sign of the number: rising bits of its magnitude where the result changes, and the result from there on."""
    listed = sorted(LISTED[name])
    borders = [(a + b) / 2 for (a, _), (b, _) in pairwise(listed)]
    if name.startswith("posit"):  # what one more bit would show, by the same definition
        finer = {code: value for value, code in posit(int(name[5]) + 1, int(name[7]))}
        borders = [finer[(2 * low + 1) % (1 << (int(name[5]) + 1))] for (_, low), _ in pairwise(listed)]
        borders = [
            Fraction(0) if 0 in (a, b) else x for x, ((a, _), (b, _)) in zip(borders, pairwise(listed), strict=True)
        ]
    found: dict[int, list[tuple[int, float]]] = {}
    for sign in (1, -1):
        way = list(zip(borders, pairwise(listed), strict=True))[::sign]
        steps = [(0, None)]
        for border, ((low, _), (high, high_code)) in way:
            far, near, ties_far = (high, low, high_code % 2 == 0) if sign > 0 else (low, high, high_code % 2 == 1)
            size = border * sign
            if steps[0][1] is None:
                steps[0] = (0, float(near))
            if size < 0 or (size == 0 and near * sign < 0):
                steps = [(0, float(far))]
                continue
            steps.append((first_bits(size, ties_far and size > 0), float(far)))
        found[sign] = steps
    return found


def expected(bits: np.ndarray, segments: list[tuple[int, float]]) -> np.ndarray:
    """What non-negative FP32 numbers, given by their bits in any order, round to."""
    starts = np.array([s for s, _ in segments], dtype=np.int64)
    values = np.array([v for _, v in segments], dtype=np.float32)
    return values[np.searchsorted(starts, bits.astype(np.int64), side="right") - 1]


def mx_block(block: list[float], values: list[float]) -> tuple[int, list[float]]:
    """OCP Microscaling Formats 1.0, section 6.3: the shared exponent and the decoded numbers of one block."""
    largest = max(abs(Fraction(v)) for v in block)
    exponent = -127
    if largest > 0:
        exponent = max(-127, min(127, floor_log2(largest) - floor_log2(Fraction(max(values)))))
    scale = Fraction(2) ** exponent
    return exponent, [float(nearest_even(Fraction(v) / scale, values) * scale) for v in block]


def floor_log2(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= value else exponent - 1


def nearest_even(x: Fraction, values: list[float]) -> Fraction:
    """The nearest of non-negative ``values`` that rise with their codes, with x's sign; ties to the even code."""
    size = abs(x)
    above = bisect_left(values, size)
    beside = range(max(0, above - 1), min(above + 1, len(values)))
    best = min(beside, key=lambda c: (abs(Fraction(values[c]) - size), c % 2))
    return Fraction(values[best]) * (-1 if x < 0 else 1)
