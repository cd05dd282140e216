"""Gemma 3n: four residual streams (AltUp), a low-rank shortcut (Laurel), per-layer embeddings, shared caches."""

from orrery.models.decoder import assemble, sizes
from orrery.models.families.gemma import FULL, per_layer_embeddings, per_layer_input, types_of
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Linear, Model
from orrery.models.parts import Part, attention, layer, mlp, stack


def _laurel(hidden: int, rank: int) -> Part:
    return Part(
        linears=(
            Linear(name="laurel_left", in_features=hidden, out_features=rank, shard="replicated", role="other"),
            Linear(name="laurel_right", in_features=rank, out_features=hidden, shard="replicated", role="other"),
        ),
        other_parameters=hidden,
        norm_elements=hidden,
    )


def _alternating(hidden: int, streams: int) -> Part:
    """AltUp: a router over the streams, coefficients to predict and correct them, a norm and a scale."""
    router = Linear(name="altup_router", in_features=hidden, out_features=streams, shard="replicated", role="router")
    return Part(linears=(router,), other_parameters=streams * streams + streams**3 + 2 * hidden, norm_elements=hidden)


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(
        vocab_size=262400, head_dim=256, num_attention_heads=8, num_key_value_heads=2, intermediate_size=16384
    )
    s = sizes(c)
    width, streams = c.count("hidden_size_per_layer_input", default=256), c.size("altup_num_inputs", default=4)
    rank, window = c.size("laurel_rank", default=64), c.size("sliding_window", default=512)
    shared_from = s.layers - c.count("num_kv_shared_layers", default=15)
    listed = c.data.get("intermediate_size")
    if isinstance(listed, list):
        widths = c.per_layer(c.sizes("intermediate_size"), "intermediate_size", s.layers)
    else:
        widths = (c.size("intermediate_size"),) * s.layers

    def build(kind: tuple[bool, bool, int]) -> Block:
        is_full, reuses, ffn = kind
        mixer = attention(
            s.hidden,
            s.heads,
            s.kv_heads,
            s.head,
            qk_norm="head",
            window=0 if is_full else window,
            owns_cache=not reuses,
        )
        label = ("full" if is_full else "sliding") + reuses * " reusing"
        return layer(
            label,
            mixer,
            mlp(s.hidden, ffn),
            _laurel(s.hidden, rank),
            _alternating(s.hidden, streams),
            per_layer_input(s.hidden, width),
            hidden_size=s.hidden,
            num_norms=4,
        )

    types = types_of(c, s.layers, 5)
    kinds = [(t == FULL, i >= shared_from, widths[i]) for i, t in enumerate(types)]
    rows, projection = per_layer_embeddings(c, s.hidden, width, s.layers)
    between = 2 * (streams - 1) * s.hidden * s.hidden
    return assemble(
        c,
        name,
        stack(kinds, build),
        s.hidden,
        is_tied=True,
        default_context=32768,
        other_parameters=projection + between,
        extra_embedding=rows,
    )


FAMILY = Family(model_types=("gemma3n_text", "gemma3n"), build=_build)
