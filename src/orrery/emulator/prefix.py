"""Names for the blocks of a sequence of tokens: equal where everything up to the block's end is equal, as engines do it.

A block's name depends on the name of the block before it, so that equal names mean equal beginnings; a salt keeps
requests apart that must not share.
"""

from collections.abc import Sequence
from typing import Any

MASK = 2**63 - 1


def block_names(tokens: Sequence[Any], block_tokens: int, salt: str | None) -> list[int]:
    """The names of the full blocks, in order."""
    names: list[int] = []
    last = hash(salt) if salt else 0
    for end in range(block_tokens, len(tokens) + 1, block_tokens):
        last = hash((last, *tokens[end - block_tokens : end])) & MASK
        names.append(last)
    return names
