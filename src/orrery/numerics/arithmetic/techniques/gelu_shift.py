"""ShiftGELU of I-ViT: x times a sigmoid of 1.702 x, by shifts and one integer division.

1.702 ~ 1.1011 in binary; sigmoid(p) = e^(p - m) / (e^(p - m) + e^-m) with m the largest p of the row, so that every
exponential is of a negative number. Li and Gu 2023, "I-ViT", section 3.4.
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.exponential import shift_exp
from orrery.numerics.arithmetic.integer import ExpKnobs, check_step, codes, share
from orrery.numerics.arithmetic.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class GeluKnobs(ExpKnobs):
    """More bits of range than softmax needs, because e^-m must survive; 23 as in the authors' code."""

    num_shift_bits: int = 23


def rule(x: Array, step_ratio: float, knobs: GeluKnobs) -> Computed:
    """Two passes over a row: its largest element, then the products; 2 N codes read, N written."""
    check_step(step_ratio)
    x, ledger = codes(x, step_ratio), Ledger()
    most = np.maximum(np.max(_steeper(ledger.read(x)), axis=-1, keepdims=True), 0)
    held = ledger.read(x)
    above, _ = shift_exp(_steeper(held) - most, step_ratio, knobs.num_shift_bits)
    below, _ = shift_exp(-most, step_ratio, knobs.num_shift_bits)
    y = ledger.write(held * share(above, above + below, knobs.num_output_bits))
    return Computed(codes=y, step_ratio=step_ratio * 0.5**knobs.num_output_bits, ledger=ledger)


def _steeper(x: Array) -> Array:
    """1.6875 x by shifts, for 1.702 x."""
    return x + (x >> 1) + (x >> 3) + (x >> 4)


TECHNIQUE = Technique(
    name="shift-gelu",
    extension_point="numerics.gelu",
    rule=rule,
    knobs=GeluKnobs,
    gains="GELU by shifts, adds, one integer division and one multiplication of narrow codes.",
    costs="Within some 0.04 of GELU; a row whose largest element is beyond num_shift_bits * 0.41 loses its small ones.",
    claims=("i-vit",),
)
