"""Pieces that layers are put together from: projections, feed-forward parts, experts.

Projections that engines run as one product are one ``Linear`` (q, k and v; gate and up). A ``Part`` is what one
piece brings to its layer; ``layer`` adds parts and norms up to a ``Block``.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from orrery.base.errors import ScenarioError
from orrery.models.model import Block, Experts, Linear, Mixer, Pass, Role, SoftmaxAttention

QkNorm = Literal["", "head", "heads", "whole"]
"""Norms of queries and keys: none; of each head, with weights that the heads share or with its own; or over all heads
at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Contribution of one part to its layer."""

    linears: tuple[Linear, ...] = ()
    mixer: Mixer | None = None
    experts: Experts | None = None
    other_parameters: int = 0
    norm_elements: int = 0
    activation_elements: int = 0
    num_norm_reduces: int = 0
    passes: tuple[Pass, ...] = ()
    kept_elements: int = 0


def attention(
    hidden_size: int,
    num_heads: int,
    num_kv_heads: int,
    head_size: int,
    *,
    value_head_size: int = 0,
    qkv_bias: bool = False,
    out_bias: bool = False,
    qk_norm: QkNorm = "",
    qk_norm_parameters: int = 1,
    window: int = 0,
    chunk: int = 0,
    is_causal: bool = True,
    has_sinks: bool = False,
    rotary: bool = True,
    gate_features: int = 0,
    out_features: int = 0,
    owns_cache: bool = True,
    shares_projection: bool = False,
) -> Part:
    """q, k and v in one product, attention, and the output projection.

    ``gate_features``: outputs of a gate on what attention returns; ``owns_cache`` False: keys and values are another
    layer's and are not projected; ``shares_projection``: values are projected with the keys' weights (but cached apart:
    only keys are rotated).
    """
    if num_heads % num_kv_heads:
        raise ScenarioError(
            f"num_attention_heads = {num_heads} does not divide by num_key_value_heads = {num_kv_heads}; "
            f"write a divisor of {num_heads}."
        )
    value = value_head_size or head_size
    q, k, v = num_heads * head_size, num_kv_heads * head_size, num_kv_heads * value
    if not owns_cache:
        k = v = 0
    elif shares_projection:
        v = 0
    normed = {"": 0, "head": (2 if k else 1) * head_size, "heads": q + k, "whole": q + k}[qk_norm]
    return Part(
        linears=(
            Linear(
                name="qkv",
                in_features=hidden_size,
                out_features=q + k + v + gate_features,
                shard="column",
                role="attention",
                has_bias=qkv_bias,
                kv_heads=num_kv_heads,
            ),
            Linear(
                name="out",
                in_features=num_heads * value,
                out_features=out_features or hidden_size,
                shard="row",
                role="attention",
                has_bias=out_bias,
            ),
        ),
        mixer=SoftmaxAttention(
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_size=head_size,
            value_head_size=value,
            window_tokens=window,
            chunk_tokens=chunk,
            is_causal=is_causal,
            has_sinks=has_sinks,
            rotary=rotary,
            owns_cache=owns_cache,
        ),
        other_parameters=normed * qk_norm_parameters + (num_heads if has_sinks else 0),
        norm_elements=q + k if qk_norm else 0,
        num_norm_reduces=1 if qk_norm == "whole" else 0,
    )


def mlp(
    hidden_size: int,
    ffn_size: int,
    *,
    is_gated: bool = True,
    bias: bool = False,
    down_bias: bool | None = None,
    role: Role = "mlp",
) -> Part:
    """A feed-forward part; gate and up are one product."""
    prefix = "shared_" if role == "shared_expert" else ""
    return Part(
        linears=(
            Linear(
                name=prefix + ("gate_up" if is_gated else "up"),
                in_features=hidden_size,
                out_features=ffn_size * (2 if is_gated else 1),
                shard="column",
                role=role,
                has_bias=bias,
            ),
            Linear(
                name=f"{prefix}down",
                in_features=ffn_size,
                out_features=hidden_size,
                shard="row",
                role=role,
                has_bias=bias if down_bias is None else down_bias,
            ),
        ),
        activation_elements=ffn_size,
    )


def moe(
    hidden_size: int,
    ffn_size: int,
    num_experts: int,
    experts_per_token: int,
    *,
    shared_ffn_size: int = 0,
    is_gated: bool = True,
    bias: bool = False,
    router_bias: bool = False,
    has_shared_gate: bool = False,
    shared_bias: bool = False,
    latent_size: int = 0,
    correction_parameters: int = 0,
    is_clamped: bool = False,
) -> Part:
    """A router, routed experts, and a shared expert of ``shared_ffn_size`` (0 = none) that every token passes.

    ``latent_size``: the width that routed experts read and write where it is not the hidden size.
    """
    if experts_per_token > num_experts:
        raise ScenarioError(
            f"num_experts_per_tok = {experts_per_token} is more than the {num_experts} experts; write at most that."
        )
    linears = [
        Linear(
            name="router",
            in_features=hidden_size,
            out_features=num_experts,
            shard="replicated",
            role="router",
            has_bias=router_bias,
        )
    ]
    if shared_ffn_size:
        linears += mlp(hidden_size, shared_ffn_size, is_gated=is_gated, bias=shared_bias, role="shared_expert").linears
    if has_shared_gate:
        linears.append(
            Linear(name="shared_gate", in_features=hidden_size, out_features=1, shard="replicated", role="router")
        )
    return Part(
        linears=tuple(linears),
        experts=Experts(
            num_experts=num_experts,
            experts_per_token=experts_per_token,
            hidden_size=latent_size or hidden_size,
            ffn_size=ffn_size,
            is_gated=is_gated,
            has_bias=bias,
            is_clamped=is_clamped,
        ),
        other_parameters=correction_parameters,
        activation_elements=shared_ffn_size,
    )


def latent_projections(hidden_size: int, latent_size: int, *, num_norms: int = 0) -> Part:
    """Into the narrower space that routed experts work in, and out of it again."""
    return Part(
        linears=(
            Linear(name="latent_in", in_features=hidden_size, out_features=latent_size, shard="replicated", role="mlp"),
            Linear(
                name="latent_out", in_features=latent_size, out_features=hidden_size, shard="replicated", role="mlp"
            ),
        ),
        other_parameters=num_norms * latent_size,
        norm_elements=num_norms * latent_size,
    )


def beside(first: Part, second: Part) -> Part:
    """``first`` with the products and norms of ``second``, which mixes no tokens and has no experts."""
    return replace(
        first,
        linears=(*first.linears, *second.linears),
        other_parameters=first.other_parameters + second.other_parameters,
        norm_elements=first.norm_elements + second.norm_elements,
        activation_elements=first.activation_elements + second.activation_elements,
        passes=(*first.passes, *second.passes),
        kept_elements=first.kept_elements + second.kept_elements,
    )


def convolutions(channels: int, kernel: int, *, name: str, dilation: int = 1) -> Part:
    """Causal convolutions of each channel by itself: ``kernel`` weights, and what they reach back to is kept.

    An element is read, written and added to what it came from.
    """
    return Part(
        other_parameters=channels * kernel,
        passes=(Pass(name=name, kind="add", elements=channels),),
        kept_elements=channels * (kernel - 1) * dilation,
    )


def with_block_indexer(
    part: Part, hidden_size: int, heads: int, head_size: int, top_tokens: int, *, ratio: int = 1, format: str = "fp8"
) -> Part:
    """Attention that looks at ``top_tokens`` tokens: an indexer of a few query heads and one key head, both normed,
    picks blocks of them. It keeps one key for ``ratio`` tokens."""
    assert isinstance(part.mixer, SoftmaxAttention)
    index = Linear(
        name="index_qk",
        in_features=hidden_size,
        out_features=(heads + 1) * head_size,
        shard="replicated",
        role="attention",
    )
    mixer = replace(
        part.mixer,
        index_heads=heads,
        index_head_size=head_size,
        top_tokens=top_tokens,
        index_ratio=ratio,
        index_format=format,
    )
    return replace(
        part,
        linears=(*part.linears, index),
        mixer=mixer,
        other_parameters=part.other_parameters + 2 * head_size,
        norm_elements=part.norm_elements + (heads + 1) * head_size,
    )


def layer(
    name: str,
    *parts: Part,
    hidden_size: int,
    num_norms: int = 2,
    norm_parameters: int = 1,
    num_reduces: int = 2,
    other_parameters: int = 0,
) -> Block:
    """One layer: its parts and ``num_norms`` norms over the hidden size of ``norm_parameters`` weights an element."""
    mixers = [p.mixer for p in parts if p.mixer is not None]
    experts = [p.experts for p in parts if p.experts is not None]
    return Block(
        name=name,
        count=1,
        linears=tuple(linear for p in parts for linear in p.linears),
        mixer=mixers[0] if mixers else None,
        experts=experts[0] if experts else None,
        other_parameters=sum(p.other_parameters for p in parts)
        + num_norms * norm_parameters * hidden_size
        + other_parameters,
        norm_elements=sum(p.norm_elements for p in parts) + num_norms * hidden_size,
        activation_elements=sum(p.activation_elements for p in parts),
        num_reduces=num_reduces,
        num_norm_reduces=sum(p.num_norm_reduces for p in parts),
        passes=tuple(x for p in parts for x in p.passes),
        kept_elements=sum(p.kept_elements for p in parts),
    )


K = TypeVar("K", bound=Hashable)


def stack(kinds: Iterable[K], build: Callable[[K], Block]) -> tuple[Block, ...]:
    """One block for each kind of layer, in order of first appearance, with how often it appears."""
    return tuple(replace(build(kind), count=count) for kind, count in Counter(kinds).items())
