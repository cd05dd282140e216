"""Engines that read prompts whole and keep their cache in one tensor: how long a prompt may be, and what growing costs.

Without pages a cache grows by being copied into a tensor one token longer, so each step reads and writes all of it once
more. Prompts that are read in one pass hold the activations, and where asked the logits, of all their tokens at once.
[transformers]
"""

from dataclasses import replace

from orrery.execution.compression import NOTHING, Compression, compressed, kept_tokens
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.execution.shard import cache_of

MAX_TOKENS = 1 << 26


def growing_s(deployment: Deployment, sequences: int, cached_tokens: float) -> float:
    """Time in which the caches of so many sequences are read and written once, on each device."""
    moved = 2.0 * sequences * cache_of(deployment).sequence_bytes(cached_tokens)
    return moved / deployment.cluster.device.memory_bandwidth_bytes_per_s


def in_one_pass(deployment: Deployment, sequences: float, tokens: float) -> Deployment:
    """The deployment of an engine that takes a batch's prompts in one pass; as it is where the user set a budget of
    tokens."""
    if deployment.max_num_batched_tokens:
        return deployment
    return replace(deployment, max_num_batched_tokens=max(1, round(sequences * tokens)))


def longest_prompt_tokens(
    deployment: Deployment, sequences: int, compression: Compression = NOTHING, *, has_all_logits: bool = True
) -> int:
    """The longest prompt of so many equal ones that memory takes; 0 where not even a token fits.

    The cache is compressed layer by layer, so what is kept of the prompts must fit beside one pass's activations.
    """

    def fits(tokens: int) -> bool:
        rows = sequences * (tokens if has_all_logits else 1)
        one_step = replace(deployment, max_num_batched_tokens=sequences * tokens, max_num_seqs=rows)
        memory = memory_of(one_step)
        if isinstance(memory, Infeasible):
            return False
        each = compressed(cache_of(one_step), compression).sequence_bytes(kept_tokens(compression, tokens))
        return sequences * each <= memory.kv_capacity_bytes

    low, high = 0, MAX_TOKENS
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
