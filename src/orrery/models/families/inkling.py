"""Inkling: windows with their own number of key/value heads, relative positions, and short convolutions everywhere.

Keys, values and what both halves of a layer return pass a convolution over a few tokens each; a narrow product of the
hidden state makes each head's relative positions. Routed experts stand beside shared ones that the router weighs too.
The few tokens that a convolution keeps of each sequence are not counted as cache. Source: transformers 5.24.0.
"""

from orrery.models.decoder import assemble, sizes
from orrery.models.families.deepseek import is_sparse
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Linear, Model
from orrery.models.parts import Part, attention, beside, layer, mlp, moe, stack

WINDOWED, WHOLE = "hybrid_sliding", "hybrid"
DEFAULTS = {
    "vocab_size": 201024,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "swa_num_key_value_heads": 16,
    "sliding_window_size": 512,
    "d_rel": 16,
    "rel_extent": 1024,
    "conv_kernel_size": 4,
    "intermediate_size": 24576,
    "moe_intermediate_size": 3072,
    "n_routed_experts": 256,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "max_position_embeddings": 131072,
}
FULL_EVERY = 6
"""One in so many layers attends to everything where the config lists none."""


def _experts(c: Fields, hidden: int) -> Part:
    """The router has a row and a scale for shared experts too."""
    width, shared = c.size("moe_intermediate_size"), c.count("n_shared_experts")
    count, chosen = c.size("n_routed_experts"), c.size("num_experts_per_tok")
    return moe(hidden, width, count, chosen, shared_ffn_size=shared * width, correction_parameters=shared * hidden + 1)


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(**DEFAULTS)
    s, kernel = sizes(c), c.size("conv_kernel_size")

    def build(kind: tuple[str, bool]) -> Block:
        window = c.size("sliding_window_size") if kind[0] == WINDOWED else 0
        heads = c.size("swa_num_attention_heads", default=s.heads) if window else s.heads
        kv_heads = c.size("swa_num_key_value_heads") if window else s.kv_heads
        head = c.size("swa_head_dim", default=s.head) if window else s.head
        relative = Linear(
            name="relative",
            in_features=s.hidden,
            out_features=heads * c.size("d_rel"),
            shard="column",
            role="attention",
        )
        positions = c.size("d_rel") * (window or c.size("rel_extent"))
        convolutions = kernel * (2 * kv_heads * head + 2 * s.hidden)
        mixer = attention(s.hidden, heads, kv_heads, head, qk_norm="head", window=window, rotary=False)
        part = beside(mixer, Part(linears=(relative,), other_parameters=positions + convolutions))
        feed = _experts(c, s.hidden) if kind[1] else mlp(s.hidden, c.size("intermediate_size"))
        label = ("sliding " if window else "full ") + ("moe" if kind[1] else "dense")
        return layer(label, part, feed, hidden_size=s.hidden)

    types = c.kinds(s.layers, (WINDOWED, WHOLE))
    local = set(c.sizes("local_layer_ids"))
    types = types or tuple(
        WINDOWED if (i in local if local else (i + 1) % FULL_EVERY) else WHOLE for i in range(s.layers)
    )
    blocks = stack(zip(types, is_sparse(c, s.layers), strict=True), build)
    return assemble(c, name, blocks, s.hidden, other_parameters=s.hidden)  # a norm behind the embedding


FAMILY = Family(model_types=("inkling_text",), build=_build)
