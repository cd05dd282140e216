"""Binary floating point with any split of exponent and mantissa: "e4m3fn", "e3m2", "e5m2fnuz", "ue5m3", "e4m3b11fnuz".

A code is sign, biased exponent, mantissa; value = (-1)^s 2^(max(e, 1) - bias) (m / 2^M + [e > 0]). Four ways to spend
codes on what is no number: ``ieee`` (top exponent: infinity and NaN), ``fn`` (only all ones: NaN), ``fnuz`` (only the
code of negative zero: NaN) and ``finite`` (none). OCP 8-bit Floating Point Specification 1.0; OCP Microscaling Formats
1.0; Noune et al. 2022 for fnuz.
"""

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.numerics.element import MAX_TABULATED_BITS, Element, Floats, Ladder

Specials = Literal["ieee", "fn", "fnuz", "finite"]

FP64_REACH = 960
"""Powers of two, up or down, in which FP64 has room to compute."""

_NAME = re.compile(r"(u?)e(\d+)m(\d+)(?:b(-?\d+))?(ieee|fnuz|fn|finite|flush)?")


@dataclass(frozen=True, kw_only=True)
class Minifloat(Element):
    """A floating-point format of ``exponent_bits`` and ``mantissa_bits``."""

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: Specials
    is_signed: bool = True
    has_subnormals: bool = True  # without them, what lies below the smallest normal number goes to it or to zero
    has_zero: bool = True  # without it, code 0 is the smallest power of two (scales)

    def __post_init__(self) -> None:
        if not (1 <= self.exponent_bits <= 10 and 0 <= self.mantissa_bits <= 52 and self.bits <= 64):
            raise OutOfRange(f"{self.name}: write 1 to 10 exponent bits and 0 to 52 mantissa bits.")
        if not (self.bias >= (1 << self.exponent_bits) - FP64_REACH and self.bias + self.mantissa_bits <= FP64_REACH):
            raise OutOfRange(
                f"{self.name}: with a bias of {self.bias} its numbers lie beyond FP64; write a nearer one."
            )
        if not self.highest > 0:
            raise OutOfRange(f"{self.name} has no number but zero left; write more bits or other specials.")

    @property
    def bits(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Sign, exponent and mantissa."""
        return self.is_signed + self.exponent_bits + self.mantissa_bits

    @property
    def prefers_scale(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Sixteen bits and more, or FP32's range, hold most tensors as they are."""
        return self.bits < 16 and self.exponent_bits < 8

    @property
    def is_fp32_scale(self) -> bool:
        """Whether it is FP32's exponent alone."""
        return self.exponent_bits == 8 and self.bias == 127 and not (self.mantissa_bits or self.has_zero)

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number."""
        return (1 if self.has_zero else 0) - self.bias

    @cached_property
    def highest(self) -> float:
        """The largest finite value."""
        return self._magnitude(self._last_code())

    def _last_code(self) -> int:
        """The highest code, without sign, that is a finite number."""
        all_ones = (1 << (self.exponent_bits + self.mantissa_bits)) - 1
        if self.specials == "ieee":
            return all_ones - (1 << self.mantissa_bits)
        return all_ones - (self.specials == "fn")

    def _magnitude(self, code: int) -> float:
        exponent, mantissa = code >> self.mantissa_bits, code & ((1 << self.mantissa_bits) - 1)
        if exponent == 0 and self.has_zero:
            fraction = mantissa if self.has_subnormals else 0
            return math.ldexp(fraction, self.min_exponent - self.mantissa_bits)
        return math.ldexp((1 << self.mantissa_bits) + mantissa, exponent - self.bias - self.mantissa_bits)

    @cached_property
    def layout(self) -> Ladder:
        """Doubling spacing down to the smallest normal number, constant below it."""
        highest = self.highest
        above = {"ieee": math.inf, "finite": highest}.get(self.specials, math.nan)
        lowest = -highest if self.is_signed else self._magnitude(0)
        below = -above if self.is_signed else lowest
        nan_as = math.nan if self.specials != "finite" else (-0.0 if self.is_signed else 0.0)
        sub = self.min_exponent - (self.mantissa_bits if self.has_subnormals else 0)
        return Ladder(
            min_exponent=self.min_exponent,
            mantissa_bits=self.mantissa_bits,
            sub_exponent=sub,
            highest=highest,
            lowest=lowest,
            above=above,
            below=below,
            nan_as=nan_as,
            has_negative_zero=self.is_signed and self.specials != "fnuz",
        )

    @property
    def nan_code(self) -> int:
        """The code that NaN takes; of negative zero where the format has no NaN, as ml_dtypes does."""
        sign = 1 << (self.exponent_bits + self.mantissa_bits)
        if self.specials == "ieee":  # quiet: the mantissa's first bit
            return self._last_code() + 1 + ((1 << self.mantissa_bits) >> 1)
        if self.specials == "fn":
            return sign - 1
        return sign if self.is_signed else 0

    def values(self) -> Floats:
        """Every code's value."""
        if self.bits > MAX_TABULATED_BITS:
            raise OutOfRange(f"{self.name} has 2^{self.bits} codes: too many to list.")
        half = 1 << (self.exponent_bits + self.mantissa_bits)
        last = self._last_code()
        magnitudes = np.array([self._magnitude(c) if c <= last else math.nan for c in range(half)])
        if self.specials == "ieee":
            magnitudes[last + 1] = math.inf
        if not self.is_signed:
            return magnitudes
        negative = -magnitudes
        if self.specials == "fnuz":
            negative[0] = math.nan
        return np.concatenate([magnitudes, negative])


def read(name: str) -> Minifloat | None:
    """The minifloat that ``name`` spells out; None where it spells something else.

    ``u`` is unsigned, ``b`` a bias, ``flush`` no subnormals. Without a suffix, up to seven bits are ``finite``, e4m3 is
    ``fn`` and all else ``ieee``: what their specifications say.
    """
    if not (found := _NAME.fullmatch(name)):
        return None
    unsigned, exponent_bits, mantissa_bits, bias, suffix = found.groups()
    e, m = int(exponent_bits), int(mantissa_bits)
    usual: Specials = "finite" if 1 + e + m <= 7 else "fn" if (e, m) == (4, 3) or unsigned else "ieee"
    specials = usual if suffix in (None, "flush") else cast(Specials, suffix)
    return Minifloat(
        name=name,
        exponent_bits=e,
        mantissa_bits=m,
        specials=specials,
        is_signed=not unsigned,
        bias=int(bias) if bias else (1 << max(0, e - 1)) - (specials != "fnuz"),
        has_subnormals=suffix != "flush",
    )
