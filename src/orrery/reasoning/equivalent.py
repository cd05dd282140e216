"""Operations and cache traffic of a graph in one number: equivalent flops, as if bytes were paid for in operations.

    equivalent = linear + attention + intensity x bytes of cache read

``intensity`` is what a device computes in the time of one byte, peak over bandwidth. Weights are left out: a server
reads them once for many questions, while every sequence reads its own cache. [kinetics-2025]
"""

from dataclasses import dataclass

from orrery.hardware.device import Device
from orrery.models.model import CompressedAttention, LatentAttention, Mixer, Model, SoftmaxAttention
from orrery.reasoning.graph import Call, Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparsity:
    """Attention to the ``kept_tokens`` best of the context, found by scoring one key a block; 0: no search is paid."""

    kept_tokens: float
    block_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalent:
    """The three parts, in flops."""

    linear_flops: float
    attention_flops: float
    cache_flops: float  # bytes of cache, at the device's intensity

    @property
    def computed_flops(self) -> float:
        """Operations that are really computed."""
        return self.linear_flops + self.attention_flops

    @property
    def total_flops(self) -> float:
        """All three."""
        return self.computed_flops + self.cache_flops


def intensity_flops_per_byte(device: Device, rate: str) -> float:
    """Operations of ``device`` at that rate while it reads one byte."""
    _, peak = device.peak_flops_per_s((rate,))
    return peak / device.memory_bandwidth_bytes_per_s


def equivalent(
    model: Model,
    graph: Graph,
    intensity: float,
    *,
    sparsity: Sparsity | None = None,
    cache_element_bytes: float = 2.0,
) -> Equivalent:
    """The graph as if ``model`` ran all of its calls; prefill is not counted, as it reads no cache token by token."""
    each_flops = sum(b.count * _attention_flops(b.mixer) for b in model.blocks)
    each_bytes = cache_element_bytes * sum(b.count * b.mixer.cache_elements_per_token for b in model.blocks if b.mixer)
    attended = sum(_attended_tokens(call, sparsity) for call in graph.calls)
    read = sum(_read_tokens(call, sparsity) for call in graph.calls)
    return Equivalent(
        linear_flops=2.0 * model.num_active_parameters * graph.written_tokens(),
        attention_flops=each_flops * attended,
        cache_flops=intensity * each_bytes * read,
    )


def _attended_tokens(call: Call, sparsity: Sparsity | None) -> float:
    """Query-key pairs, the search among block keys included (a score is half of a score and a sum)."""
    if sparsity is None:
        return call.attended_tokens()
    search = call.attended_tokens() / (2 * sparsity.block_tokens) if sparsity.block_tokens else 0.0
    return call.count * _retained(call, sparsity.kept_tokens) + search


def _read_tokens(call: Call, sparsity: Sparsity | None) -> float:
    """Tokens whose keys and values are read; each sequence picks its own, all no more than there is."""
    if sparsity is None:
        return call.read_tokens()
    search = call.read_tokens() / (2 * sparsity.block_tokens) if sparsity.block_tokens else 0.0
    return min(call.count * _retained(call, sparsity.kept_tokens), call.read_tokens()) + search


def _retained(call: Call, most: float) -> float:
    """Sum over an answer's tokens of min(context, most)."""
    rising = min(max(most - call.context_tokens, 0.0), call.output_tokens)
    start = min(call.context_tokens, most)
    return rising * (start + rising / 2) + (call.output_tokens - rising) * most


def _attention_flops(mixer: Mixer | None) -> float:
    """Operations of one query with one key and its value in one layer: two products of each head's width."""
    if isinstance(mixer, SoftmaxAttention):
        return 2.0 * mixer.num_heads * (mixer.head_size + mixer.value_head_size)
    if isinstance(mixer, LatentAttention):
        return 2.0 * mixer.num_heads * (2 * mixer.kv_lora_rank + mixer.rope_head_size)
    if isinstance(mixer, CompressedAttention) and mixer.ratio:
        return 4.0 * mixer.num_heads * mixer.head_size / mixer.ratio
    return 0.0
