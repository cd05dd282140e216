"""Patterns of sparse weights that a device multiplies faster than dense ones."""

from functools import cache
from pathlib import Path

from orrery.base.sources import Fact, read_facts

FILE = Path(__file__).parent / "facts" / "sparsity.toml"
ANY = "any"
"""Whichever N of M: of chips whose multipliers are wired as one likes."""


@cache
def sparse_facts() -> dict[str, Fact]:
    """The pattern of each generation of devices that has one, with its source."""
    return dict(read_facts(FILE)[0])


def pattern_of(generation: str) -> str:
    """The pattern that devices of a generation multiply faster; blank where none is known."""
    found = sparse_facts().get(generation)
    return str(found.value) if found else ""
