"""Structured sparsity of weights: N of every M are kept, each with its place among the M."""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparsity:
    """N of M weights in a row of M that follow each other."""

    num_kept: int
    num_of: int

    @property
    def kept_frac(self) -> float:
        """Share of the weights that are kept."""
        return self.num_kept / self.num_of

    @property
    def index_bits(self) -> int:
        """Bits that say where a kept weight stands: 2 of 4 take two, as sparse tensor cores read them."""
        return (self.num_of - 1).bit_length() if self.num_kept < self.num_of else 0

    def __str__(self) -> str:
        """Text of the pattern: 2:4."""
        return f"{self.num_kept}:{self.num_of}"


def read_sparsity(text: str) -> Sparsity:
    """The pattern that a text states.

    >>> read_sparsity("2:4").kept_frac, read_sparsity("2:4").index_bits
    (0.5, 2)
    """
    left, _, of = text.partition(":")
    if not (left.isdecimal() and of.isdecimal() and 1 <= int(left) <= int(of) <= 64):
        raise ScenarioError(f"sparsity: got {text!r}; write how many of how many weights are kept, such as 2:4.")
    return Sparsity(num_kept=int(left), num_of=int(of))
