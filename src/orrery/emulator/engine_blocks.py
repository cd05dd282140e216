"""Blocks of a cache under the names that vLLM gives them, with the fields of its events.

As vLLM 0.33.0 does by default (``vllm/v1/core/kv_cache_utils.py`` and ``vllm/utils/hashing.py`` of its wheel): a
block's hash is the SHA-256 of a pickled tuple: the hash before it, the numbers of its tokens, and what else keeps
caches apart (the adapter's name and path, then a salt, at the first block alone). The first one stands behind the hash
of a seed, PYTHONHASHSEED where that is set. Events tell the last 64 bits.
"""

import os
import pickle
from collections.abc import Hashable, Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from zlib import crc32

from orrery.emulator.prefix import BlockNames, NumberedBlocks
from orrery.emulator.settings import Settings

SEED = "vllm-none-hash"
HASH_BYTES = 8
"""Length of a hash in events."""

ID_MASK = 2**31 - 1
"""Mask of token ids, which consumers read in 32 bits."""


class Adapter(NamedTuple):
    """An adapter as requests choose it."""

    number: int
    name: str
    path: str


class Block:
    """One block behind another; equal hashes are equal blocks."""

    __slots__ = ("adapter", "digest", "parent", "salt", "tokens")

    def __init__(
        self, digest: bytes, parent: "Block | None", tokens: tuple[int, ...], adapter: Adapter | None, salt: str
    ) -> None:
        self.digest, self.tokens, self.adapter, self.salt = digest, tokens, adapter, salt
        self.parent = parent.number if parent is not None and parent.tokens else None

    @property
    def number(self) -> int:
        """The hash as events have it."""
        return int.from_bytes(self.digest[-HASH_BYTES:])

    @property
    def extra_keys(self) -> tuple[str, ...] | None:
        """Parts of its hash beside its tokens and the block before it."""
        found = (*((self.adapter.name,) if self.adapter else ()), *((self.salt,) if self.salt else ()))
        return found or None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class EngineBlocks:
    """Names of blocks as the engine gives them."""

    def __init__(self, settings: Settings) -> None:
        self._size, self._lora = settings.block_tokens, settings.lora
        self._none = _hash(os.environ.get("PYTHONHASHSEED", SEED))

    def root(self, salt: str | None, adapter: int) -> Block:
        """A block of no tokens, which carries the salt to the first one."""
        found = self._lora.named(adapter) if self._lora is not None and adapter >= 0 else None
        chosen = Adapter(adapter + 1, *found) if found is not None else None
        return Block(self._none, None, (), chosen, salt or "")

    def follow(self, tokens: Sequence[Any], last: Block) -> list[Hashable]:
        """Blocks of token ids: a client's own, or of texts made here, which have no ids of 32 bits, a checksum."""
        found: list[Hashable] = []
        for end in range(self._size, len(tokens) + 1, self._size):
            ids = tuple(t if isinstance(t, int) else crc32(t) & ID_MASK for t in tokens[end - self._size : end])
            salt, adapter = "" if last.tokens else last.salt, last.adapter
            keys = (
                *((("lora", adapter.name, adapter.path),) if adapter else ()),
                *((("cache_salt", salt),) if salt else ()),
            )
            last = Block(_hash((last.digest, ids, keys or None)), last, ids, adapter, salt)
            found.append(last)
        return found

    def unwritten(self, marks: Iterable[Hashable]) -> list[Hashable]:
        """Blocks that repeat one token, drawn from the mark."""
        tokens = [crc32(repr(mark).encode()) & ID_MASK for mark in marks for _ in range(self._size)]
        return self.follow(tokens, self.root(None, -1))


def names_for(settings: Settings) -> BlockNames:
    """Names for the blocks of a server: the engine's own where events are published."""
    return NumberedBlocks(settings) if settings.kv_events is None else EngineBlocks(settings)


def _hash(value: object) -> bytes:
    return sha256(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)).digest()
