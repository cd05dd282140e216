"""What the specifications say, in exact rational arithmetic and plain loops: slow and obvious."""

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
        steps = [
            ((self.magnitude(a) + self.magnitude(b)) / 2, b % 2 == 0, b)
            for a, b in pairwise(codes)
        ]  # fmt: skip
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
    """The nearest of non-negative ``values`` in the order of their codes, with x's sign; ties to the even code."""
    size = abs(x)
    best = min(range(len(values)), key=lambda c: (abs(Fraction(values[c]) - size), c % 2))
    return Fraction(values[best]) * (-1 if x < 0 else 1)
