"""Zamba2: Mamba 2 in every layer; before some of them one of a few shared transformer blocks, in turn.

A shared block reads the layer's input beside the embedding, twice as wide, and a square product of the layer's own
puts what it returns into the Mamba layer's input. Each use keeps a cache and, beside the shared weights, adapters of
its own: in the feed-forward part always, in queries, keys and values where the config says so. A layer with a shared
block is two blocks here. First configs name some keys otherwise. Source: transformers 5.24.0, configuration and
modelling files.
"""

from dataclasses import replace

from orrery.models.decoder import HIDDEN, LAYERS, assemble
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Linear, Model
from orrery.models.parts import Part, attention, layer, mlp, stack
from orrery.models.recurrent import mamba2

WORDS = {"m": "mamba", "g": "hybrid"}
FORMER = {
    "intermediate_size": "ffn_hidden_size",
    "mamba_d_state": "state_size",
    "mamba_d_conv": "conv_dimension",
    "mamba_expand": "expansion_factor",
    "adapter_rank": "lora_rank",
    "use_shared_attention_adapter": "use_shared_attention_lora",
}
DEFAULTS = {
    "vocab_size": 32000,
    "mamba_d_state": 64,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_ngroups": 1,
    "num_attention_heads": 32,
    "num_mem_blocks": 1,
    "adapter_rank": 128,
}
FIRST, EVERY, LATE = 6, 6, (47, 51)
"""Where shared blocks stand if no list says so: the seventh layer and every sixth after it, and two late ones."""


def _adapter(name: str, inputs: int, rank: int, outputs: int) -> tuple[Linear, Linear]:
    down = Linear(name=f"{name}_adapter_a", in_features=inputs, out_features=rank, shard="replicated", role="other")
    up = Linear(name=f"{name}_adapter_b", in_features=rank, out_features=outputs, shard="column", role="other")
    return down, up


def _shared(c: Fields, hidden: int, copies: int) -> Block:
    """One use of a shared block; its weights are held ``copies`` times in all."""
    heads, wide, rank = c.size("num_attention_heads"), 2 * hidden, c.size("adapter_rank")
    ffn, bias = c.size("intermediate_size", default=4 * hidden), c.flag("add_bias_linear")
    mixer = attention(
        wide,
        heads,
        c.size("num_key_value_heads", default=heads),
        c.divide(wide, "2 x hidden_size", heads, "num_attention_heads"),
        out_features=hidden,
        rotary=c.flag("use_mem_rope"),
    )
    feed = mlp(hidden, ffn, bias=bias)
    shared = tuple(replace(x, copies=copies) for x in (*mixer.linears, *feed.linears))
    adapters = list(_adapter("gate_up", hidden, rank, 2 * ffn))
    if c.flag("use_shared_attention_adapter"):
        adapters += [x for name in "qkv" for x in _adapter(name, wide, rank, wide)]
    own = Linear(name="into_mamba", in_features=hidden, out_features=hidden, shard="replicated", role="other")
    part = Part(
        linears=(*shared, *adapters, own),
        mixer=mixer.mixer,
        norm_elements=wide + hidden,
        activation_elements=ffn,
    )
    return layer("shared", part, hidden_size=hidden, num_norms=0)


def _uses(c: Fields, layers: int) -> list[bool]:
    """Which layers begin with a shared block."""
    listed = tuple(WORDS.get(w, w) for w in c.words("layers_block_type"))
    if unknown := set(listed) - set(WORDS.values()):
        raise c.wrong("layers_block_type", min(unknown), "one of " + ", ".join(WORDS.values()))
    if listed:
        return [t == WORDS["g"] for t in c.per_layer(listed, "layers_block_type", layers)]
    return [i in LATE or (FIRST <= i < LATE[0] and i % EVERY == 0) for i in range(layers)]


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(**{new: c.data[old] for new, old in FORMER.items() if old in c}).with_defaults(**DEFAULTS)
    hidden, layers = c.size(*HIDDEN), c.size(*LAYERS)
    inner = c.size("mamba_expand") * hidden
    size = c.size("mamba_headdim", default=0, least=0)
    heads = c.size("n_mamba_heads", default=c.divide(inner, "mamba width", size, "mamba_headdim") if size else 8)
    mamba = mamba2(
        hidden,
        heads,
        c.divide(inner, "mamba_expand x hidden_size", heads, "n_mamba_heads"),
        c.size("mamba_d_state"),
        c.size("mamba_ngroups"),
        c.size("mamba_d_conv"),
        bias=c.flag("add_bias_linear"),
    )
    uses = sum(_uses(c, layers))
    copies = min(uses, c.size("num_mem_blocks"))

    def build(is_shared: bool) -> Block:
        if is_shared:
            return _shared(c, hidden, copies)
        return layer("mamba", mamba, hidden_size=hidden, num_norms=1, num_reduces=1)

    blocks = stack([False] * layers + [True] * uses, build)
    norms = copies * 3 * hidden  # of the input twice as wide, and before the feed-forward part
    return assemble(c, name, blocks, hidden, is_tied=True, default_context=4096, other_parameters=norms)


FAMILY = Family(model_types=("zamba2",), build=_build)
