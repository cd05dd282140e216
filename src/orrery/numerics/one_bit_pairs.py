"""Products of bipolar weights and activations, bit by bit on one-bit units: ``bipolar2_bipolar4``."""

import re
from functools import lru_cache

from orrery.numerics.format import Format
from orrery.numerics.names import get_element

_PAIR = re.compile(r"bipolar(?P<weights>[1-8])_bipolar(?P<activations>[1-8])")
_ONE = re.compile(r"bipolar[1-8]")


@lru_cache(maxsize=256)
def pair_bits(name: str) -> tuple[int, int] | None:
    """Bits of the weights and of the activations; None where ``name`` is of another format.

    >>> pair_bits("bipolar2_bipolar4"), pair_bits("bipolar2")
    ((2, 4), None)
    """
    found = _PAIR.fullmatch(name)
    return (int(found["weights"]), int(found["activations"])) if found else None


def pair_of(weights: str, activations: str) -> str:
    """The product's format where both operands are bipolar, with a scale a row; blank otherwise."""
    return f"{weights}_{activations}" if _ONE.fullmatch(weights) and _ONE.fullmatch(activations) else ""


@lru_cache(maxsize=256)
def one_bit_pair(name: str) -> Format | None:
    """The format that ``name`` spells out; None where it spells none."""
    bits = pair_bits(name)
    if bits is None:
        return None
    return Format(
        name=name,
        title=f"bipolar weights of {bits[0]} and activations of {bits[1]} bits, multiplied bit by bit",
        kind="integer",
        element=get_element(f"bipolar{bits[0]}"),
        rates=("int1", "int8"),
        source="Ma et al., arXiv:2409.17870",
    )
