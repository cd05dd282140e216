"""How much traffic a deployment has room for: tokens of cache, the longest context, and sequences in flight.

A replica is one data-parallel rank. Its longest context is what one sequence may grow to: what the model (or
``max_model_len``) admits, unless the cache holds less. Its most sequences are what the engine lets into a step, unless
the cache holds fewer of the traffic's lengths; a request holds half of its output on average where the engine evicts,
and all of it where the engine reserves it.
"""

from dataclasses import dataclass
from math import isfinite

from orrery.base.units import figures
from orrery.execution.layout import Deployment
from orrery.execution.memory import Memory
from orrery.serving.drafted import room_for_kept
from orrery.serving.steady import batch_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Capacity of the whole deployment, except for the longest context, which one replica holds, or all of
    them where they lend each other cache."""

    kv_cache_tokens: float  # infinite where nothing grows with length
    longest_context_tokens: float
    longest_context_limit: str  # model, max_model_len or kv cache
    max_sequences: float
    max_sequences_limit: str  # max_num_seqs or kv cache
    replicas: int

    def describe(self, input_tokens: float, output_tokens: float) -> str:
        """The three in a sentence."""
        each = f" over {self.replicas} replicas" if self.replicas > 1 else ""
        tokens = f"{self.kv_cache_tokens:,.0f} tokens{each}" if isfinite(self.kv_cache_tokens) else "any length"
        context = (
            f"{self.longest_context_tokens:,.0f} tokens ({self.longest_context_limit})"
            if isfinite(self.longest_context_tokens)
            else "any length"
        )
        return (
            f"KV cache: {tokens}. Longest context: {context}. Most sequences in flight: "
            f"{figures(int(self.max_sequences), 7)} of {input_tokens:,.0f} + {output_tokens:,.0f} tokens "
            f"({self.max_sequences_limit})."
        )


def room_of(
    deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float, *, lends_cache: bool = False
) -> Room:
    """The room of a deployment for traffic of these mean lengths.

    Replicas that lend each other cache hold one sequence together.
    """
    replicas, own = deployment.layout.dp, float(deployment.model.max_context_tokens or 0)
    admitted = float(deployment.max_model_tokens) or own or float("inf")
    word = "max_model_len" if deployment.max_model_tokens else "model"
    holds, pooled = memory.kv_capacity_tokens, replicas if lends_cache else 1
    _, room = room_for_kept(deployment, memory, input_tokens, output_tokens)
    each = batch_limit(deployment, room, input_tokens, output_tokens)
    return Room(
        kv_cache_tokens=holds * replicas,
        longest_context_tokens=min(admitted, holds * pooled),
        longest_context_limit="kv cache" if holds * pooled < admitted else word,
        max_sequences=each * replicas,
        max_sequences_limit="max_num_seqs" if each >= memory.max_num_seqs else "kv cache",
        replicas=replicas,
    )
