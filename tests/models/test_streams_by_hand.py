"""Models of several residual streams, pooled index keys and embeddings of word sequences, counted by hand, small."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.models.config import parse
from orrery.models.model import LatentAttention, Pass, RecurrentMixer, SoftmaxAttention

QWEN = {
    "model_type": "qwen4_exp_text",
    "hidden_size": 8,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "vocab_size": 10,
    "hc_count": 3,
    "hc_lowrank": 5,
    "linear_num_value_heads": 2,
    "linear_num_key_heads": 1,
    "linear_key_head_dim": 2,
    "linear_value_head_dim": 4,
    "linear_conv_kernel_dim": 4,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 3,
    "shared_expert_intermediate_size": 3,
    "indexer_n_heads": 2,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 4,
    "indexer_budget": 16,
    "indexer_compress_ratio": 4,
}
SEQUENCES = {
    "ple_layer_ids": [2],
    "ple_conv_kernel_size": 3,
    "ngram_size": 3,
    "heads_per_ngram": 2,
    "ngram_vocab_size_base": 50,
    "make_ngram_vocab_size_divisible_by": 64,
}
MIXING = 24 * (5 + 3) + 5 * 24 + 24
"""24 elements of three streams to five features and a share a stream, five to 24 gates, a norm."""
EXPERTS = 7 * 3 * 8 * 3 + 8 * 6 + 8
"""Six experts and one that all pass, a router, a gate."""
LINEAR = 8 * (2 * 2 + 2 * 8) + 8 * 4 + 8 * 8 + 12 * 4 + 2 * 2 + 4
"""Queries and keys of one head of two, values and their gate of two of four, a decay and a step a head, the output; a
convolution of four over 12 channels, decays and their shifts, a norm."""
FULL = 8 * (16 + 2 * 4) + 8 * 8 + 2 * 4 + 8 * 12 + 2 * 4
"""Queries and their gate, a key and a value, the output, norms; two index heads and a key, their norms."""


def test_streams_are_mixed_by_a_gate_of_low_rank():
    model = parse(QWEN, name="x")
    last = 2 * 5 * 24 + 24
    assert model.num_parameters == 2 * 80 + last + 3 * LINEAR + FULL + 4 * (2 * MIXING + EXPERTS)
    for block in model.blocks:
        assert block.connection_elements == 2 * 24
        # a half's input is a norm of all streams, written once and read by the product: half as much as a norm moves
        assert block.passes == (Pass(name="streams normed", kind="norm", elements=12),) * 2
        assert [x.role for x in block.linears if "mix" in x.name] == ["router"] * 4  # whole and in 16 bits


def test_an_indexer_keeps_the_average_of_four_keys():
    full = parse(QWEN, name="x").blocks[1].mixer
    assert isinstance(full, SoftmaxAttention)
    assert (full.index_heads, full.index_head_size, full.top_tokens) == (2, 4, 16)
    assert (full.index_ratio, full.index_format) == (4, "bf16")


def test_embeddings_of_word_sequences():
    """Two words and three, two tables each of 50 rows of two: 200 rows, padded to 256. Of eight features a key for each
    stream and a value; three norms and a convolution of three over 24; what lies up to six tokens back is kept."""
    plain, model = parse(QWEN, name="x"), parse(QWEN | SEQUENCES, name="x")
    assert model.table_parameters == 256 * 2
    assert model.embedding_parameters == 80 + 256 * 2
    layer = 8 * 24 + 8 * 8 + 3 * 24 + 3 * 24
    assert model.num_parameters - plain.num_parameters == 256 * 2 + layer
    assert [(b.count, b.num_reduces, b.kept_elements) for b in model.blocks] == [(2, 2, 0), (1, 3, 6 * 24), (1, 2, 0)]
    assert model.blocks[1].passes[:3] == (
        Pass(name="sequence rows", kind="embedding", elements=8),
        Pass(name="sequence gates", kind="add", elements=24),
        Pass(name="sequence mixing", kind="add", elements=24),
    )
    notes = [dict(m.published)["layers"] for m in (plain, model)]
    assert ["tables of word sequences" in note for note in notes] == [False, True]


def test_tables_share_out_the_features_evenly():
    with pytest.raises(ScenarioError, match=r"ple_embed_dim: got 6; write a multiple of the 4 tables"):
        parse(QWEN | SEQUENCES | {"ple_embed_dim": 6}, name="x")


def test_a_drafting_layer_attends_in_full():
    model = parse(QWEN | SEQUENCES | {"mtp_num_hidden_layers": 2}, name="x")
    assert model.draft_parameters == 2 * (FULL + 2 * MIXING + EXPERTS + 2 * 64 + 3 * 8)


LATENT = {
    "vocab_size": 10,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "intermediate_size": 3,
    "moe_intermediate_size": 2,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "q_lora_rank": 5,
    "kv_lora_rank": 4,
    "qk_nope_head_dim": 3,
    "v_head_dim": 2,
    "index_topk": 8,
    "index_head_dim": 4,
    "index_n_heads": 2,
    "hc_mult": 2,
    "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
    "num_hidden_layers": 4,
}
INDEXER = 5 * 8 + 8 * 4 + 8 * 2 + 2 * 4
"""Queries from their latent, a key, a weight a head, the key's norm and shift."""
MOE = 5 * 3 * 8 * 2 + 8 * 4
DENSE = 3 * 8 * 3
NORMS = 2 * 8


def test_hunyuan_by_hand():
    """q and kv latents of 5 and 4 with a rotated 1; queries 2 x 4, keys and values 2 x 5, output, gate; sinks. Streams:
    two rows each of two of 16, a shift a row, two scales. A drafting layer has its indexer and no streams."""
    attention = 8 * (5 + 4 + 1) + 5 * 8 + 4 * 10 + 4 * 8 + 8 * 4 + 5 + 4 + 2
    mixing = 2 * (4 * 16 + 4 + 2)
    config = LATENT | {
        "model_type": "hy_v4",
        "qk_rope_head_dim": 1,
        "indexer_types": ["full", "full", "shared", "shared"],
        "layer_types": ["deepseek_sparse_attention"] * 4,
        "num_nextn_predict_layers": 1,
    }
    model = parse(config, name="x")
    head = 2 * 16 + 2 + 1
    each = attention + mixing + NORMS
    assert model.num_parameters == 160 + 8 + head + 4 * each + 2 * INDEXER + DENSE + 3 * MOE
    assert model.draft_parameters == attention + INDEXER + NORMS + MOE + 2 * 64 + 3 * 8
    assert model.draft_block is not None
    assert model.draft_block.connection_elements == 0
    assert "layers" in dict(model.published)


def test_glm_next_pools_index_keys():
    """A pooled key of four, by a gate of 8 x 4 and four places of 4; no rotated share. Streams: eight rows of two of
    16, a shift a row, three scales."""
    attention = 8 * 9 + 5 * 6 + 4 * 10 + 4 * 8 + 5 + 4
    pooling = 8 * 4 + 4 * 4
    mixing = 2 * (8 * 16 + 8 + 3)
    delta = 8 * 12 + 8 * 2 + 2 * 4 + 8 * 2 + 8 * 2 + 2 * 4 + 4 * 8 + 12 * 4 + 4 + 2 + 2
    config = LATENT | {
        "model_type": "glm5_next_text",
        "qk_rope_head_dim": 0,
        "index_kpool": 4,
        "linear_attn_config": {"num_heads": 2, "head_dim": 2, "short_conv_kernel_size": 4},
        "layer_types": ["linear_attention", "linear_attention", "full_attention", "deepseek_sparse_attention"],
        "indexer_types": ["full", "full", "full", "shared"],
        "num_nextn_predict_layers": 1,
    }
    model = parse(config, name="x")
    layers = 2 * (attention + delta) + INDEXER + pooling + DENSE + 3 * MOE + 4 * (mixing + NORMS)
    assert model.num_parameters == 160 + 8 + layers
    assert model.draft_parameters == attention + INDEXER + pooling + NORMS + MOE + 2 * 64 + 3 * 8
    found = {}
    for block in model.blocks:
        if isinstance(block.mixer, LatentAttention):
            found[block.mixer.index_heads] = block.mixer.index_ratio
        else:
            assert isinstance(block.mixer, RecurrentMixer)
    assert found == {2: 4, 0: 1}


@pytest.mark.parametrize(
    ("published", "saved"),
    [
        ({"sconv_kernel_size": 3}, {"conv_kernel_size": 3}),
        ({"model_max_length": 99}, {"max_position_embeddings": 99}),
        ({"dense_mlp_idx": 1}, {"mlp_layer_types": ["dense", "sparse"]}),
        (
            {"dense_intermediate_size": 7, "intermediate_size": 5},
            {"intermediate_size": 7, "moe_intermediate_size": 5},
        ),
    ],
)
def test_inkling_as_published_and_as_saved(published, saved):
    sizes = {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 16, "head_dim": 2, "n_routed_experts": 6}
    whole = {"model_type": "inkling_mm_model", "text_config": sizes | published}
    one, other = parse(whole, name="x"), parse({"model_type": "inkling_text"} | sizes | saved, name="x")
    assert (one.blocks, one.max_context_tokens) == (other.blocks, other.max_context_tokens)


def test_inklings_drafting_layers_are_dense():
    sizes = {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 16, "head_dim": 2, "dense_mlp_idx": 1}
    whole = {"model_type": "inkling_mm_model", "text_config": sizes, "mtp_config": {"num_nextn_predict_layers": 3}}
    model = parse(whole, name="x")
    assert model.draft_parameters == 3 * (model.blocks[0].num_parameters + 2 * 64 + 3 * 8)
    assert model.draft_block == model.blocks[0]
