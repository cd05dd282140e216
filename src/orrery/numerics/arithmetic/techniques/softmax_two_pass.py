"""Two-pass softmax: no pass for the maximum, because sums are kept as mantissa and exponent apart.

e^x = m * 2^n; two such pairs add as (m1 2^(n1 - n) + m2 2^(n2 - n)) 2^n with n the larger exponent, where no power
is above one: nothing can overflow. Dukhan and Ablavatski 2020, "The Two-Pass Softmax Algorithm", section 4.
"""

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.exponential import extended_exp, scaled
from orrery.numerics.arithmetic.ledger import Ledger
from orrery.numerics.arithmetic.real import real


def rule(x: Array, step_ratio: float, knobs: NoKnobs) -> Computed:
    """Reads 2 N elements and writes N."""
    x, ledger = real(x, step_ratio), Ledger()
    total, largest = _sum(*extended_exp(ledger.read(x)))
    mantissa, exponent = extended_exp(ledger.read(x))
    y = ledger.write(scaled(mantissa * (1.0 / total), exponent - largest))
    return Computed(codes=y, step_ratio=1.0, ledger=ledger)


def _sum(mantissa: Array, exponent: Array) -> tuple[Array, Array]:
    """The pair that the pairs of the last axis add up to: halves fold onto one another, as vector lanes do."""
    if (n := mantissa.shape[-1]) == 1:
        return mantissa, exponent
    pair = (mantissa[..., : n // 2], exponent[..., : n // 2])
    total = _sum(*_add(*pair, mantissa[..., n // 2 : n // 2 * 2], exponent[..., n // 2 : n // 2 * 2]))
    return _add(*total, mantissa[..., -1:], exponent[..., -1:]) if n % 2 else total


def _add(mantissa: Array, exponent: Array, other: Array, other_exponent: Array) -> tuple[Array, Array]:
    """Two pairs at the larger exponent."""
    most = np.maximum(exponent, other_exponent)
    return scaled(mantissa, exponent - most) + scaled(other, other_exponent - most), most


TECHNIQUE = Technique(
    name="two-pass",
    extension_point="numerics.softmax",
    rule=rule,
    gains="One pass over memory less than three-pass softmax, and no overflow: 3 N memory operations.",
    costs="Every exponential is computed twice, and sums take two scalings an element.",
    claims=("two-pass-softmax",),
    command="orrery kernel softmax --device NAME --tokens N --width N --variant two-pass",
)
