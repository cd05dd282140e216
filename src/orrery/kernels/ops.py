"""The work that a device is asked to do, one class an operation.

Every size may be a number or an integer array; arrays broadcast, so one op object can stand for a million kernels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Size = int | NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gemm:
    """C[m, n] = A[m, k] B[k, n], ``batch`` times; ``format`` is a linear layer's (fp8_block, int4_weight_only, …).

    ``quantises_input``: the kernel also turns 16-bit activations into ``format`` (stand-alone measurements do; engines
    usually fuse it into the norm before). ``is_cold``: the weights come from memory, as in a model with many layers;
    False is the condition of stand-alone measurements, which repeat a few weight matrices that a large cache may keep.
    ``result_bytes``: moved for one element of C where that is not the usual 16 bits written once, such as 8 for a sum
    kept in FP32 that is read, added to and written. ``kept_frac``, ``index_bits``: share of B that is not zero in a
    pattern that the device's matrix units skip, and what is stored beside each kept element. ``wide_frac``: share of
    the channel blocks whose activations keep eight bits, in products of ``int4_int4+int8``.
    """

    m: Size
    n: Size
    k: Size
    format: str
    batch: Size = 1
    quantises_input: bool = True
    is_cold: bool = True
    result_bytes: float = 0.0
    kept_frac: float = 1.0
    index_bits: float = 0.0
    wide_frac: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionPrefill:
    """Softmax attention of ``query_tokens`` new tokens a sequence against ``context_tokens`` (new ones included)."""

    batch: Size
    query_tokens: Size
    context_tokens: Size
    num_heads: Size
    num_kv_heads: Size
    head_size: Size
    format: str
    kv_format: str
    window_tokens: Size = 0
    value_head_size: Size = 0  # 0 = head_size
    is_causal: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionDecode:
    """One new token (or ``query_tokens`` to verify) a sequence against a paged cache of ``context_tokens``.

    ``is_cold``: the cache comes from memory, as in a model with many layers; False as in a loop over one layer.
    """

    batch: Size
    context_tokens: Size
    num_heads: Size
    num_kv_heads: Size
    head_size: Size
    format: str
    kv_format: str
    window_tokens: Size = 0
    query_tokens: Size = 1
    is_cold: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatentPrefill:
    """MLA over whole prompts, expanded: ``head_size`` (192) wide queries and keys, ``value_head_size`` (128) values."""

    batch: Size
    query_tokens: Size
    context_tokens: Size
    num_heads: Size
    format: str
    kv_format: str
    head_size: Size = 192
    value_head_size: Size = 128


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatentDecode:
    """MLA decode, absorbed: heads read one latent of ``head_size`` 576; its first ``value_head_size`` are values.

    ``is_cold`` as in ``AttentionDecode``.
    """

    batch: Size
    context_tokens: Size
    num_heads: Size
    format: str
    kv_format: str
    head_size: Size = 576
    value_head_size: Size = 512
    query_tokens: Size = 1
    is_cold: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatentAbsorb:
    """MLA's absorption, a product a head: ``part`` "query" takes tokens x head_size to the latent, "value" takes the
    latent back to head_size. ``is_cold`` as in ``Gemm``.
    """

    part: str  # "query" or "value"
    tokens: Size
    num_heads: Size
    format: str
    head_size: Size = 128
    latent_size: Size = 512
    is_cold: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Popularity:
    """How often tokens choose each expert: ``shares`` of all assignments, or a law that gives them.

    By law the expert of rank r gets a share that falls as r^-``exponent`` (0 = all alike; tokens still choose at
    random). ``is_dealt`` leaves nothing to chance: assignments go round the experts in turn. ``layers`` are the shares
    of each layer by itself, and ``ranks`` the rank that holds each of its experts (none: the first experts lie on the
    first rank, and so on); a kernel's time is then the mean over the layers.
    """

    exponent: float = 0.0
    shares: tuple[float, ...] = ()
    is_dealt: bool = False
    layers: tuple[tuple[float, ...], ...] = ()
    ranks: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MoE:
    """A routed feed-forward block on one device: permute, grouped products, activation, combine.

    ``tokens`` enter before routing, over all ``ep`` ranks; each device holds num_experts/ep experts of ffn_size/tp.
    ``skew`` is the exponent of the power law that expert loads follow (0 = dealt out evenly, -1 = every token picks its
    experts at random, all alike); the busiest rank is timed. ``num_redundant_experts`` are copies, over all ranks, of
    those that a ``popularity`` makes the most chosen.
    """

    tokens: Size
    hidden_size: Size
    ffn_size: Size
    num_experts: Size
    experts_per_token: Size
    format: str
    tp: Size = 1
    ep: Size = 1
    is_gated: bool = True
    skew: float | Floats = 0.0
    popularity: Popularity | None = None  # in place of ``skew``
    num_redundant_experts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Elementwise:
    """Norms, rotary embedding, activations, additions, (de)quantisation, sampling: ``tokens`` x ``width`` elements.

    ``width`` is what the op's measured tables call it: elements that one token brings in.
    """

    kind: str  # "norm", "rope", "gated_activation", "add", "embedding", "softmax", "quantise", "sample"
    tokens: Size
    width: Size
    format: str = "bf16"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recurrent:
    """A recurrent token mixer without its projections: ``tokens`` new tokens of ``sequences`` through a fixed state.

    ``state_elements`` are per sequence and layer; decoding reads and writes the whole state for one token a sequence,
    prefill keeps it in chunks and multiplies (``flops_per_token``). ``width`` elements a token enter (queries, keys and
    values together), through a convolution that keeps ``conv_elements`` of a sequence (0: there is none). ``is_cold``:
    states come from memory, as in a model with many layers; False as in a loop over one layer.
    """

    tokens: Size
    sequences: Size
    state_elements: Size
    flops_per_token: float | Floats
    format: str = "bf16"
    state_bytes_per_element: float = 4.0
    is_decode: bool = True
    width: Size = 0
    kind: str = "gated-delta-net"
    num_heads: Size = 1
    conv_elements: Size = 0
    is_cold: bool = True


Op = (
    Gemm
    | AttentionPrefill
    | AttentionDecode
    | LatentPrefill
    | LatentDecode
    | LatentAbsorb
    | MoE
    | Elementwise
    | Recurrent
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timing:
    """The answer for one op object, arrays of the broadcast shape.

    ``time_s`` is the prediction; ``compute_s`` and ``memory_s`` are the device's bare roofs (datasheet peak and
    bandwidth, minimal bytes), never larger than ``time_s`` by more than caches allow; ``overhead_s`` is the launch.
    """

    time_s: Floats
    compute_s: Floats
    memory_s: Floats
    overhead_s: Floats
    flops: Floats
    bytes: Floats

    def where(self, holds: NDArray[np.bool_], other: "Timing") -> "Timing":
        """This answer where ``holds``, the other elsewhere."""
        mine, theirs = ((t.time_s, t.compute_s, t.memory_s, t.overhead_s, t.flops, t.bytes) for t in (self, other))
        time_s, compute_s, memory_s, overhead_s, flops, moved = (
            np.where(holds, a, b) for a, b in zip(mine, theirs, strict=True)
        )
        return Timing(
            time_s=time_s, compute_s=compute_s, memory_s=memory_s, overhead_s=overhead_s, flops=flops, bytes=moved
        )
