"""Inkling: windows with their own number of key/value heads, relative positions, and short convolutions everywhere.

Keys, values and what both halves of a layer return pass a convolution over a few tokens each; a narrow product of the
hidden state makes each head's relative positions. Routed experts stand beside shared ones that the router weighs too.
Drafting layers are dense.
Published configs name some sizes otherwise than transformers saves them. Source: transformers 5.24.0.
"""

from dataclasses import replace

from orrery.models.decoder import assemble, sizes
from orrery.models.families.deepseek import is_sparse, with_drafts
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Linear, Model
from orrery.models.parts import Part, attention, beside, convolutions, layer, mlp, moe, stack

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
NOTE = "short convolutions run as fast as additions of as many elements: no kernel of theirs was measured"
FULL_EVERY = 6
"""One in so many layers attends to everything where the config lists none."""


def _experts(c: Fields, hidden: int) -> Part:
    """The router has a row and a scale for shared experts too."""
    width, shared = c.size("moe_intermediate_size"), c.count("n_shared_experts")
    count, chosen = c.size("n_routed_experts"), c.size("num_experts_per_tok")
    return moe(hidden, width, count, chosen, shared_ffn_size=shared * width, correction_parameters=shared * hidden + 1)


def _renamed(c: Fields) -> Fields:
    """Published names for those of transformers: there ``intermediate_size`` is an expert's."""
    names = {
        "conv_kernel_size": "sconv_kernel_size",
        "max_position_embeddings": "model_max_length",
        "first_k_dense_replace": "dense_mlp_idx",
    }
    found = {new: c.data[old] for new, old in names.items() if old in c}
    if "dense_intermediate_size" not in c:
        return c.with_defaults(**found)
    found |= {"moe_intermediate_size": c.data.get("intermediate_size")}
    return Fields({**c.data, "intermediate_size": c.data["dense_intermediate_size"]}, c.where, c.reads).with_defaults(
        **{k: v for k, v in found.items() if v is not None}
    )


def _build(c: Fields, name: str) -> Model:
    c = _renamed(c).with_defaults(**DEFAULTS)
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
        short = convolutions(2 * kv_heads * head + 2 * s.hidden, kernel, name="short convolutions")
        mixer = attention(s.hidden, heads, kv_heads, head, qk_norm="head", window=window, rotary=False)
        part = beside(beside(mixer, Part(linears=(relative,), other_parameters=positions)), short)
        feed = _experts(c, s.hidden) if kind[1] else mlp(s.hidden, c.size("intermediate_size"))
        label = ("sliding " if window else "full ") + ("moe" if kind[1] else "dense")
        return layer(label, part, feed, hidden_size=s.hidden)

    types = c.kinds(s.layers, (WINDOWED, WHOLE))
    local = set(c.sizes("local_layer_ids"))
    types = types or tuple(
        WINDOWED if (i in local if local else (i + 1) % FULL_EVERY) else WHOLE for i in range(s.layers)
    )
    blocks = stack(zip(types, is_sparse(c, s.layers), strict=True), build)
    model = assemble(c, name, blocks, s.hidden, other_parameters=s.hidden)  # a norm behind the embedding
    model = replace(model, published=(*model.published, ("layers", NOTE)))
    drafts = c.table("mtp_config") or c
    return with_drafts(model, build((WINDOWED, False)), drafts.count("num_nextn_predict_layers", "num_mtp_layers"))


FAMILY = Family(model_types=("inkling_text", "inkling_mm_model"), build=_build)
