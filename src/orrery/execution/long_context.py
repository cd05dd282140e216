"""Cost of long contexts, all of it through the size of the cache: four numbers of one deployment. [fu-2024]

Fewer users at once, a longer prompt, a longer decode step, and a longer change between users, whose caches wait in the
host's memory.
"""

from dataclasses import dataclass
from math import floor

import numpy as np

from orrery.execution.batch import Batch
from orrery.execution.compression import NOTHING, Compression, compressed, compressing_s, kept_tokens
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.execution.shard import cache_of, shard
from orrery.execution.step import step
from orrery.execution.transfer import host_link


@dataclass(frozen=True, slots=True, kw_only=True)
class LongContext:
    """The four penalties at one context, and the bytes behind them."""

    context_tokens: int
    kv_bytes: float  # of one sequence on all devices
    concurrency: int  # sequences whose caches fit at once
    prefill_s: float  # of one prompt alone, compression included
    decode_step_s: float  # at that concurrency (or of one sequence, where none fits)
    one_decode_step_s: float  # of one sequence
    context_switch_s: float  # one cache out to the host and another one in


def long_context(
    deployment: Deployment, context_tokens: int, compression: Compression = NOTHING
) -> LongContext | Infeasible:
    """Concurrency, prefill, decode step and context switch at one context; what is missing where weights do not fit."""
    memory = memory_of(deployment)
    if isinstance(memory, Infeasible):
        return memory
    retained = kept_tokens(compression, context_tokens)
    each = compressed(cache_of(deployment), compression).sequence_bytes(retained)
    fits = min(float(memory.max_num_seqs), memory.kv_capacity_bytes / each) if each > 0 else float(memory.max_num_seqs)
    layout = deployment.layout
    kv_bytes = each * layout.tp * layout.cp / shard(deployment).stage_share
    seen = max(1, round(retained * compression.kept_bytes_frac))  # as much to read as so many whole tokens
    prefill_s, many_s, one_s = _steps_s(deployment, context_tokens, seen, max(1, floor(fits)))
    link = host_link(deployment)
    return LongContext(
        context_tokens=context_tokens,
        kv_bytes=kv_bytes,
        concurrency=floor(fits),
        prefill_s=prefill_s + compressing_s(deployment, compression, context_tokens),
        decode_step_s=many_s,
        one_decode_step_s=one_s,
        context_switch_s=2.0 * (link.latency_s + kv_bytes / link.bandwidth_bytes_per_s),
    )


def _steps_s(deployment: Deployment, context_tokens: int, seen: int, sequences: int) -> tuple[float, float, float]:
    """A prompt alone, a decode step of many sequences, and of one."""
    batch = Batch(
        prompt_sequences=np.array([1, 0, 0]),
        prompt_tokens=np.array([context_tokens, 0, 0]),
        prompt_context_tokens=np.array([context_tokens, 0, 0]),
        decode_sequences=np.array([0, sequences, 1]),
        decode_context_tokens=np.array([0, seen, seen]),
    )
    prefill_s, many_s, one_s = (float(t) for t in step(deployment, batch).time_s)
    return prefill_s, many_s, one_s
