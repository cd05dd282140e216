"""Qwen4's preview (Qwen3.8-Flash-Next): three gated-delta-net layers, then gated attention over picked blocks; several
residual streams, and embeddings of word sequences in a few layers.

An indexer keeps the average of every few keys and picks blocks of as many tokens. Streams are mixed before each half of
a layer by a gate of low rank that all of them make, and each takes its share of what the half returns. A layer with
embeddings looks up rows for the last two words, the last three and so on, each in tables of its own by hashes, and adds
them to every stream through a gate and a convolution. Source: transformers, configuration and modelling files of
qwen4_exp; index keys in 16 bits and whole connections on every rank as vLLM has them (vllm/models/qwen4_exp).
"""

from dataclasses import replace

from orrery.models.decoder import assemble, sizes
from orrery.models.families.deepseek import draft
from orrery.models.families.qwen_hybrid import FULL_EVERY, NEXT, delta_net, gated_experts, gated_full
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Linear, Model, Pass
from orrery.models.parts import Part, beside, convolutions, layer, stack, with_block_indexer

HALVES = 2
"""Places of a layer where residual streams are mixed."""

LINEAR = "linear_attention"
KINDS = (LINEAR, "full_attention", "indexed_attention", "deepseek_sparse_attention", "hybrid_indexed")
DEFAULTS = NEXT | {
    "vocab_size": 248320,
    "num_attention_heads": 16,
    "hc_count": 4,
    "hc_lowrank": 320,
    "ple_conv_kernel_size": 4,
    "ngram_size": 3,
    "heads_per_ngram": 8,
    "ngram_vocab_size_base": 20_000_000,
    "make_ngram_vocab_size_divisible_by": 128,
}
NOTE = (
    "streams are mixed as fast as DeepSeek-V4's (beside the two products that make the gate), attention over picked "
    "blocks runs at the rate of a window as long: neither was measured"
)
TABLES = "; tables of word sequences lie on the devices, engines can keep them in the host's memory"


def _mixing(half: str, hidden: int, streams: int, rank: int) -> Part:
    """Before one half: all streams normed, a gate for each element by way of ``rank`` features, a share a stream."""
    wide = streams * hidden
    return Part(
        linears=(
            _whole(f"{half}_mix_down", wide, rank + streams),
            _whole(f"{half}_mix_up", rank, wide),
        ),
        other_parameters=wide,
        passes=(Pass(name="streams normed", kind="norm", elements=wide // 2),),  # written for the products, read there
    )


def _whole(name: str, inputs: int, outputs: int) -> Linear:
    """A product that is not cut and stays in 16 bits."""
    return Linear(name=name, in_features=inputs, out_features=outputs, shard="replicated", role="router")


def _sequences(c: Fields, hidden: int, streams: int) -> Part:
    """Embeddings of word sequences: a key for each stream, one value, norms of keys, streams and what is added."""
    width, wide = c.size("ple_embed_dim", default=hidden), streams * hidden
    rows = Part(
        linears=(_whole("sequence_key", width, wide), _whole("sequence_value", width, hidden)),
        other_parameters=3 * wide,
        norm_elements=3 * wide,
        passes=(
            Pass(name="sequence rows", kind="embedding", elements=width),
            Pass(name="sequence gates", kind="add", elements=wide),
        ),
    )
    dilation = c.size("ngram_size")
    return beside(rows, convolutions(wide, c.size("ple_conv_kernel_size"), name="sequence mixing", dilation=dilation))


def _table(c: Fields, hidden: int) -> int:
    """Parameters of one layer's tables: the rows of each are the next prime above what the config says, taken as it."""
    tables, width = (c.size("ngram_size") - 1) * c.size("heads_per_ngram"), c.size("ple_embed_dim", default=hidden)
    if not tables or width % tables:
        raise c.wrong("ple_embed_dim", width, f"a multiple of the {tables} tables of word sequences")
    padding = c.size("make_ngram_vocab_size_divisible_by")
    return -(-tables * c.size("ngram_vocab_size_base") // padding) * padding * (width // tables)


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(**DEFAULTS)
    s, streams, rank = sizes(c), c.size("hc_count"), c.size("hc_lowrank")
    before, between = (_mixing(half, s.hidden, streams, rank) for half in ("attention", "experts"))
    ratio = c.size("indexer_compress_ratio", default=1)
    heads, head = c.count("indexer_n_heads"), c.count("indexer_head_dim")

    def build(kind: tuple[bool, bool]) -> Block:
        is_linear, has_sequences = kind
        mixer = delta_net(c, s) if is_linear else gated_full(c, s)
        if heads and not is_linear:
            mixer = with_block_indexer(
                mixer, s.hidden, heads, head, c.size("indexer_budget"), ratio=ratio, format="bf16"
            )
        first = (_sequences(c, s.hidden, streams),) if has_sequences else ()
        label = ("linear" if is_linear else "full") + " moe" + " with sequences" * has_sequences
        parts = (*first, before, mixer, between, gated_experts(c, s.hidden))
        block = layer(label, *parts, hidden_size=s.hidden, num_norms=0, num_reduces=2 + has_sequences)
        return replace(block, connection_elements=HALVES * streams * s.hidden)

    listed = set(c.sizes("ple_layer_ids"))  # from one
    every = c.size("full_attention_interval", default=FULL_EVERY)
    types = c.kinds(s.layers, KINDS) or tuple(LINEAR if (i + 1) % every else KINDS[1] for i in range(s.layers))
    blocks = stack([(t == LINEAR, i + 1 in listed) for i, t in enumerate(types)], build)
    tables = sum(_table(c, s.hidden) for i in listed if 1 <= i <= s.layers)
    last = 2 * rank * streams * s.hidden  # the gate that puts the streams together at the end
    model = assemble(
        c,
        name,
        blocks,
        s.hidden,
        default_context=32768,
        final_norm=streams,
        other_parameters=last,
        extra_embedding=tables,
        draft_parameters=draft(build((False, False)), s.hidden, c.count("mtp_num_hidden_layers")),
    )
    note = NOTE + TABLES * bool(tables)
    return replace(model, table_parameters=tables, published=(*model.published, ("layers", note)))


FAMILY = Family(model_types=("qwen4_exp_text",), build=_build)
