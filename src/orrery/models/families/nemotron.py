"""NVIDIA's Nemotron: Nemotron-4 and Minitron (squared ReLU, LayerNorm), Llama-Nemotron cut by architecture search, and
Nemotron-H / Nemotron 3, whose layers are one mixer each: Mamba 2, attention, feed-forward or experts."""

from orrery.models.decoder import Recipe, assemble, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import MOST, Fields
from orrery.models.model import Block, Linear, Model
from orrery.models.parts import Part, attention, latent_projections, layer, mlp, moe, stack
from orrery.models.recurrent import mamba2

FFN_MULTIPLE = 256
"""DeciLM rounds its feed-forward widths (2/3 of ffn_mult x hidden size) up to this."""

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
WORDS = {"linear_attention": "mamba", "full_attention": "attention"}
H_DEFAULTS = {
    "vocab_size": 131072,
    "head_dim": 128,
    "num_key_value_heads": 8,
    "intermediate_size": 21504,
    "ssm_state_size": 128,
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "n_groups": 8,
    "conv_kernel": 4,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 7688,
    "moe_shared_expert_intermediate_size": 7688,
}


def _minitron(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=256000, intermediate_size=24576)
    bias = c.flag("attention_bias")
    recipe = Recipe(
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=c.flag("mlp_bias"),
        is_gated=False,
        norm_parameters=2,
        default_context=4096,
    )
    return decoder(c, name, recipe)


def _searched(c: Fields, name: str) -> Model:
    """DeciLM: the key/value heads of every layer; its successors' block_configs: for every layer the group size (or no
    attention) and the feed-forward multiple (or none).
    """
    hidden, heads = c.size("hidden_size"), c.size("num_attention_heads")
    head = c.size("head_dim", default=0, least=0) or c.divide(hidden, "hidden_size", heads, "num_attention_heads")
    layers = c.size("num_hidden_layers")
    if grouped := c.sizes("num_key_value_heads_per_layer"):
        grouped = c.per_layer(grouped, "num_key_value_heads_per_layer", layers)
        kinds = [(kv_heads, c.size("intermediate_size"), False) for kv_heads in grouped]
    else:
        listed = c.per_layer(c.items("block_configs"), "block_configs", layers)
        kinds = [_searched_kind(c, x, hidden, heads) for x in listed]

    def build(kind: tuple[int, int, bool]) -> Block:
        kv_heads, ffn, is_linear = kind
        parts: list[Part] = []
        if kv_heads:
            parts.append(attention(hidden, heads, kv_heads, head))
        elif is_linear:
            linear = Linear(name="linear", in_features=hidden, out_features=hidden, shard="column", role="attention")
            parts.append(Part(linears=(linear,)))
        if ffn:
            parts.append(mlp(hidden, ffn))
        label = ("attention" if kv_heads else "no attention") + f", ffn {ffn}"
        return layer(label, *parts, hidden_size=hidden, num_norms=len(parts), num_reduces=len(parts))

    return assemble(c, name, stack(kinds, build), hidden, default_context=131072)


def _searched_kind(c: Fields, entry: object, hidden: int, heads: int) -> tuple[int, int, bool]:
    """(key/value heads or 0, feed-forward width or 0, attention replaced by a linear layer)."""
    block = Fields({"block_configs": entry}, c.where).table("block_configs") or Fields({}, c.where)
    empty = Fields({}, c.where)
    mixer, feed = block.table("attention") or empty, block.table("ffn") or empty
    group = mixer.count("n_heads_in_group")
    kv_heads = 0
    if group and not mixer.flag("no_op"):
        kv_heads = c.divide(heads, "num_attention_heads", group, "n_heads_in_group")
    multiple = 0.0 if feed.flag("no_op") else feed.number("ffn_mult", default=0.0)
    if multiple < 0:
        raise feed.wrong("ffn_mult", multiple, "a number above 0")
    width = int(2 * multiple * hidden / 3)
    return kv_heads, -(-width // FFN_MULTIPLE) * FFN_MULTIPLE, mixer.flag("replace_with_linear")


def _pattern(c: Fields, letters: str, words: str) -> tuple[str, ...]:
    """Kinds of layers from a pattern string (M, *, -, E) or a list of words."""
    if listed := c.words(words):
        found = tuple(WORDS.get(w, w) for w in listed)
    else:
        found = tuple(LETTERS.get(x, x) for x in c.word(letters) if x not in "|")
    if len(found) > MOST["num_layers"]:
        raise c.wrong(words, f"{len(found)} layers", f"at most {MOST['num_layers']}")
    if unknown := set(found) - set(LETTERS.values()):
        raise c.wrong(letters if letters in c else words, min(unknown), "of " + ", ".join(LETTERS.values()))
    return found


def _experts(c: Fields, hidden: int) -> tuple[Part, ...]:
    """Experts of one hidden product (squared ReLU); with moe_latent_size they work in a narrower space."""
    latent = c.count("moe_latent_size")
    routed = moe(
        hidden,
        c.size("moe_intermediate_size"),
        c.size("n_routed_experts"),
        c.size("num_experts_per_tok"),
        shared_ffn_size=c.count("moe_shared_expert_intermediate_size"),
        is_gated=False,
        latent_size=latent,
    )
    if not latent:
        return (routed,)
    return routed, latent_projections(hidden, latent)


def _hybrid(c: Fields, name: str) -> Model:
    c = c.with_defaults(head_dim=c.data.get("attention_head_dim")).with_defaults(**H_DEFAULTS)
    c = c.with_defaults(num_hidden_layers=1)
    s = sizes(c)
    bias = c.flag("use_bias")

    def build(kind: str) -> Block:
        match kind:
            case "mamba":
                parts = (
                    mamba2(
                        s.hidden,
                        c.size("mamba_num_heads"),
                        c.size("mamba_head_dim"),
                        c.size("ssm_state_size"),
                        c.size("n_groups", "mamba_n_groups"),
                        c.size("conv_kernel", "mamba_d_conv"),
                        bias=bias,
                        conv_bias=c.flag("use_conv_bias", default=True),
                    ),
                )
            case "attention":
                parts = (attention(s.hidden, s.heads, s.kv_heads, s.head),)
            case "mlp":
                width = c.size("intermediate_size")
                parts = (mlp(s.hidden, width, is_gated=False, bias=c.flag("mlp_bias")),)
            case _:
                parts = _experts(c, s.hidden)
        return layer(kind, *parts, hidden_size=s.hidden, num_norms=1, num_reduces=1)

    kinds = _pattern(c, "hybrid_override_pattern", "layers_block_type")
    if not kinds:
        raise c.wrong("hybrid_override_pattern", None, 'a string such as "M-M*-", one letter a layer')
    mtp = _pattern(c, "mtp_hybrid_override_pattern", "mtp_layers_block_type") or ("attention", "moe")
    drafts = 0
    if count := c.count("num_nextn_predict_layers"):
        each = sum(build(kind).num_parameters for kind in mtp) + 2 * s.hidden * s.hidden + 3 * s.hidden
        drafts = count * each
    return assemble(c, name, stack(kinds, build), s.hidden, default_context=4096, draft_parameters=drafts)


BUILD = {
    "nemotron": _minitron,
    "nemotron-nas": _searched,
    "deci": _searched,
    "nemotron_nas": _searched,
    "nemotron_h": _hybrid,
}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
