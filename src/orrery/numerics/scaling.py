"""Scaling: which numbers share a scale, what the scale is stored as, and how it is chosen.

Sharing, along the last axis: ``none``, ``tensor``, ``row`` (a channel of weights, a token of activations), ``N``
numbers in a row, ``RxC`` a block of both last axes. Levels go from the inside out: NVFP4 is 16 with e4m3, then the
tensor with FP32.
"""

import re
from dataclasses import dataclass
from typing import Literal

from orrery.base.errors import ScenarioError
from orrery.numerics.element import Element

Rule = Literal["amax", "floor", "ceil", "extreme"]
"""amax: the group's largest magnitude lands on the element's largest value. floor: 2^(floor(log2 amax) - exponent of
the element's largest value), OCP Microscaling Formats 1.0, section 6.3. ceil: the smallest power of two that saturates
nothing. extreme: the number farthest from zero, with its sign, lands on the element's lowest value, which has one code
more (llama.cpp).
"""

ZeroPoint = Literal["", "integer", "minimum"]
"""Where a group need not lie about zero: a whole number of steps, as wide as an element (GPTQ), or its smallest value,
stored like the scale (llama.cpp)."""

FP32_BITS = 32

INTEGER_ZERO_BITS = 8
"""Zero points as whole numbers are stored in a byte or less."""

_SHARE = re.compile(r"(\d+)(?:x(\d+))?")

WholeTensor = Literal["tensor", "row"]


@dataclass(frozen=True, kw_only=True)
class Level:
    """Numbers that share a scale, and the scale's element; FP32 where that is None."""

    share: WholeTensor | tuple[int, int]  # rows, columns of a block
    scale: Element | None = None

    @property
    def bits(self) -> int:
        """Bits of one stored scale."""
        return self.scale.bits if self.scale else FP32_BITS

    @property
    def num_elements(self) -> int:
        """That share a scale; 0 where the tensor's shape decides."""
        return self.share[0] * self.share[1] if isinstance(self.share, tuple) else 0

    def __str__(self) -> str:
        if not isinstance(self.share, tuple):
            return self.share
        rows, columns = self.share
        return f"{columns}" if rows == 1 else f"{rows}x{columns}"


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Levels from the inside out; none: numbers stand as they are."""

    levels: tuple[Level, ...] = ()
    rule: Rule = "amax"
    zero_point: ZeroPoint = ""

    @property
    def bits_per_element(self) -> float:
        """Bits of scales and zero points for one number; those of rows and tensors are not counted."""
        counted = [level for level in self.levels if level.num_elements]
        return sum((level.bits + self._zero_bits(level)) / level.num_elements for level in counted)

    def _zero_bits(self, level: Level) -> float:
        return {"": 0, "integer": INTEGER_ZERO_BITS, "minimum": level.bits}[self.zero_point]

    @property
    def block_elements(self) -> int:
        """That share the innermost scale; 0 where the tensor's shape decides."""
        return self.levels[0].num_elements if self.levels else 0


def read_share(word: str, where: str) -> WholeTensor | tuple[int, int]:
    """A share as typed: tensor, row (also channel, token), 32, 128x128."""
    whole: dict[str, WholeTensor] = {"tensor": "tensor", "row": "row", "channel": "row", "token": "row"}
    if word in whole:
        return whole[word]
    if found := _SHARE.fullmatch(word):
        first, second = int(found[1]), int(found[2] or 0)
        if min(first, second or first) >= 1:
            return (first, second) if second else (1, first)
    raise ScenarioError(f"{where}: {word!r} is no share of a scale; write none, tensor, row, 32 or 128x128.")
