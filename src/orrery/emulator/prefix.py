"""Names for the blocks of a sequence of tokens: equal where all up to the block's end is equal, as engines do it.

A block's name depends on the name of the block before it, so that equal names mean equal beginnings; a salt keeps
requests apart that must not share.
"""

from collections.abc import Sequence
from typing import Any

MASK = 2**63 - 1


def salted(salt: str | None) -> int:
    """The parent hash of the first block."""
    return hash(salt) & MASK if salt else 0


def block_names(tokens: Sequence[Any], block_tokens: int, last: int) -> list[int]:
    """The names of the full blocks, in order, behind a block (or a salt) that is named ``last``."""
    names: list[int] = []
    for end in range(block_tokens, len(tokens) + 1, block_tokens):
        last = hash((last, *tokens[end - block_tokens : end])) & MASK
        names.append(last)
    return names
