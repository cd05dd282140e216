"""Loss of a model whose products run in floats of E exponent and M mantissa bits, scales shared by B elements.

    L = n / N^alpha + d / D^beta + epsilon + D^beta / N^alpha  log2(B) / (gamma (E + 1/2)^delta (M + 1/2)^nu)

N parameters (embeddings not counted), D tokens. The last term grows with the tokens: beyond the critical data size
more of them make the model worse. Source: Scaling Laws for Floating Point Quantization Training, arXiv 2501.02423.
"""

from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.numerics.laws.coefficients import coefficients

LAW = "fp-quantisation"
WIDTHS = tuple(range(3, 17))
"""Widths whose splits are compared: sign, at least one exponent and one mantissa bit, up to 16 bits."""

SIZES = 10.0 ** np.linspace(5.0, 18.0, 2601)
"""Model sizes among which a compute budget is spent: steps of 1.2 %."""

Floats = NDArray[np.float64]
Value = float | Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """Coefficients of the law, in whatever units make it come out in nats."""

    n: float
    alpha: float
    d: float
    beta: float
    epsilon: float
    gamma: float
    delta: float
    nu: float
    num_flops_per_bit: float


@cache
def published() -> Law:
    """The law with the paper's coefficients."""
    return Law(**coefficients(LAW))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One training run in one float, and what the law says of it."""

    num_parameters: float
    num_tokens: float
    exponent_bits: int
    mantissa_bits: int
    block_elements: int
    law: Law = field(default_factory=published)

    @property
    def split(self) -> tuple[int, int]:
        """Exponent and mantissa bits."""
        return self.exponent_bits, self.mantissa_bits

    @property
    def bits(self) -> int:
        """All bits of one number, sign included."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def loss(self) -> float:
        """Nats a token."""
        return float(loss(self.num_parameters, self.num_tokens, *self.split, self.block_elements, self.law))

    @property
    def lossless(self) -> float:
        """Loss (nats per token) of the same run in exact arithmetic."""
        return float(lossless(self.num_parameters, self.num_tokens, self.law))

    @property
    def critical_tokens(self) -> float:
        """Beyond these the model gets worse."""
        return float(critical_tokens(self.num_parameters, *self.split, self.block_elements, self.law))

    @property
    def compute_flops(self) -> float:
        """Cost of the run, in 16-bit operations."""
        return float(compute_flops(self.num_parameters, self.num_tokens, self.bits, self.law))


def loss(
    parameters: Value, tokens: Value, exponent_bits: Value, mantissa_bits: Value, block: Value, law: Law | None = None
) -> Value:
    """Nats a token; ``law``: other coefficients than the paper's, here and below."""
    low = added(parameters, tokens, exponent_bits, mantissa_bits, block, law)
    return lossless(parameters, tokens, law) + low


def lossless(parameters: Value, tokens: Value, law: Law | None = None) -> Value:
    """The part that no precision removes."""
    c = law or published()
    return c.n / parameters**c.alpha + c.d / tokens**c.beta + c.epsilon


def added(
    parameters: Value, tokens: Value, exponent_bits: Value, mantissa_bits: Value, block: Value, law: Law | None = None
) -> Value:
    """Loss added by low precision: D^beta / N^alpha times the coarseness of the format."""
    c = law or published()
    return tokens**c.beta / parameters**c.alpha * _coarseness(exponent_bits, mantissa_bits, block, c)


def _coarseness(exponent_bits: Value, mantissa_bits: Value, block: Value, c: Law) -> Value:
    fineness = (exponent_bits + 0.5) ** c.delta * (mantissa_bits + 0.5) ** c.nu
    return np.log2(block) / (c.gamma * fineness)


@cache
def best_split(bits: int, law: Law | None = None) -> tuple[int, int]:
    """Exponent and mantissa bits that add least at a width; the split depends on nothing else."""
    if bits < WIDTHS[0]:
        raise OutOfRange(f"A float of {bits} bits has no exponent and mantissa to divide; write {WIDTHS[0]} or more.")
    c = law or published()
    return min(((e, bits - 1 - e) for e in range(1, bits - 1)), key=lambda split: float(_coarseness(*split, 2, c)))


def critical_tokens(
    parameters: Value, exponent_bits: Value, mantissa_bits: Value, block: Value, law: Law | None = None
) -> Value:
    """The tokens at which the loss is least, dL / dD = 0; infinite where every element has its own scale."""
    c = law or published()
    coarse = _coarseness(exponent_bits, mantissa_bits, block, c)
    with np.errstate(divide="ignore"):
        return (np.divide(c.d, coarse) * parameters**c.alpha) ** (0.5 / c.beta)


def compute_flops(parameters: Value, tokens: Value, bits: Value, law: Law | None = None) -> Value:
    """Cost in 16-bit operations, in proportion to the bits: 6 N D at 16."""
    return (law or published()).num_flops_per_bit * bits * parameters * tokens


def spend(compute: float, bits: int, block: int, law: Law | None = None) -> Run:
    """The model size and data that make the loss least for a budget at one width."""
    exponent, mantissa = best_split(bits, law)
    tokens = np.asarray(compute / compute_flops(SIZES, 1.0, bits, law))
    losses = np.asarray(loss(SIZES, tokens, exponent, mantissa, block, law))
    best = int(losses.argmin())
    return Run(
        num_parameters=float(SIZES[best]),
        num_tokens=float(tokens[best]),
        exponent_bits=exponent,
        mantissa_bits=mantissa,
        block_elements=block,
        law=law or published(),
    )


def best_width(compute: float, block: int, law: Law | None = None) -> Run:
    """The width, model size and data that make the loss least for a budget."""
    return min((spend(compute, bits, block, law) for bits in WIDTHS), key=lambda run: run.loss)
