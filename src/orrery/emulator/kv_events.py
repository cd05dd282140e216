"""Events of vLLM's prefix cache in its own form: blocks stored and removed, or all of them cleared.

As vLLM 0.33.0 has it (``vllm/distributed/kv_events.py`` of its wheel): a batch is a MessagePack array of a time, events
and the engine's rank; an event is a map with its kind under ``type``. Fields with a default are left out where they
have it. One batch is told for one step, with the numbers of hashes in 64 bits.
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import cast

from msgspec import Struct

from orrery.emulator.engine_blocks import Block
from orrery.serving.live.cache_watch import CacheChange

DEVICE, HOST = "GPU", "CPU"


class _Event(Struct, omit_defaults=True, tag=True):
    """One event."""


class BlockStored(_Event):
    """Blocks that follow each other are in the cache."""

    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str | None
    lora_name: str | None
    extra_keys: list[tuple[str, ...] | None] | None = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None


class BlockRemoved(_Event):
    """Blocks have left the cache."""

    block_hashes: list[int]
    medium: str | None
    group_idx: int | None = None


class AllBlocksCleared(_Event):
    """The cache is empty."""


Event = BlockStored | BlockRemoved | AllBlocksCleared


class EventBatch(Struct, array_like=True, omit_defaults=True):
    """Changes of one step."""

    ts: float
    events: list[Event]
    data_parallel_rank: int | None = None


def events_by_cache(changes: Iterable[CacheChange], spec_kind: str) -> dict[int, list[Event]]:
    """Events of each cache; removals first, as they made the room."""
    found: dict[int, list[Event]] = {}
    for change in changes:
        events = found.setdefault(change.cache, [])
        if change.is_empty:
            found[change.cache] = [AllBlocksCleared()]
            continue
        medium = HOST if change.is_host else DEVICE
        events += [
            BlockRemoved(block_hashes=[_block(name).number], medium=medium, group_idx=0) for name in change.removed
        ]
        events += [_stored(run, medium, spec_kind) for run in _runs([_block(name) for name in change.stored])]
    return found


def _block(name: Hashable) -> Block:
    return cast(Block, name)


def _runs(blocks: Sequence[Block]) -> list[list[Block]]:
    """Blocks that follow each other, together."""
    runs = [[block] for block in blocks[:1]]
    for before, block in pairwise(blocks):
        if block.parent == before.number:
            runs[-1].append(block)
        else:
            runs.append([block])
    return runs


def _stored(run: list[Block], medium: str, spec_kind: str) -> BlockStored:
    first = run[0]
    return BlockStored(
        block_hashes=[block.number for block in run],
        parent_block_hash=first.parent,
        token_ids=[token for block in run for token in block.tokens],
        block_size=len(first.tokens),
        lora_id=first.adapter.number if first.adapter else None,
        medium=medium,
        lora_name=first.adapter.name if first.adapter else None,
        extra_keys=[block.extra_keys for block in run],
        group_idx=0,
        kv_cache_spec_kind=spec_kind,
    )
