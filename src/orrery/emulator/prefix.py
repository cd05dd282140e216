"""Names for the blocks of a sequence of tokens: equal where all up to the block's end is equal, as engines do it.

A block's name depends on the name of the block before it, so that equal names mean equal beginnings; a salt keeps
requests apart that must not share.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol

from orrery.emulator.settings import Settings

MASK = 2**63 - 1


class BlockNames(Protocol):
    """Names for the blocks of a server."""

    def root(self, salt: str | None, adapter: int) -> Any:
        """Start of a chain of blocks: one salt's and one adapter's, as their caches are theirs alone."""
        ...

    def follow(self, tokens: Sequence[Any], last: Any) -> list[Hashable]:
        """The names of the full blocks, in order, behind a block or a root."""
        ...

    def unwritten(self, marks: Iterable[Hashable]) -> list[Hashable]:
        """The names of blocks of which nothing is known but a mark: equal where they are, and all before."""
        ...


class NumberedBlocks:
    """Numbers of 63 bits, which are quick to make."""

    def __init__(self, settings: Settings) -> None:
        self._size = settings.block_tokens

    def root(self, salt: str | None, adapter: int) -> int:
        """A number of their own."""
        return salted(salt if adapter < 0 else f"lora {adapter} {salt or ''}")

    def follow(self, tokens: Sequence[Any], last: int) -> list[Hashable]:
        """Numbers of blocks."""
        return list(block_names(tokens, self._size, last))

    def unwritten(self, marks: Iterable[Hashable]) -> list[Hashable]:
        """The marks themselves."""
        return list(marks)


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
