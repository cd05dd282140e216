"""Types of 2026 that are near a known family, counted by hand, small."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.models.config import parse
from orrery.models.model import LatentAttention, SoftmaxAttention

SIZES = {"hidden_size": 8, "num_hidden_layers": 4, "num_attention_heads": 2, "vocab_size": 10, "intermediate_size": 12}
LLAMA = 4 * 8 * 8 + 3 * 8 * 12 + 2 * 8
"""Queries, keys, values and output; gate, up and down; two norms."""


def test_two_stacks_hold_their_weights_once_and_every_pass_keeps_a_cache():
    config = {"model_type": "hrm_text", "head_dim": 4, **SIZES}
    model = parse(config, name="x")
    layer = 5 * 8 * 8 + 3 * 8 * 12  # a gate beside the queries, norms without weights
    assert model.num_parameters == 2 * 80 + 8 + 2 * 4 * layer
    # twice three passes of the lower stack and one of the upper: 32 layers that a token passes and that keep its keys
    (block,) = model.blocks
    assert block.count == 32
    assert model.num_active_parameters == 80 + 8 + 32 * layer
    assert isinstance(block.mixer, SoftmaxAttention)
    assert (block.mixer.num_kv_heads, block.mixer.head_size) == (2, 4)


def test_a_config_that_counts_every_pass_reads_the_same():
    once = parse({"model_type": "hrm_text", "head_dim": 4, "H_cycles": 3, "L_cycles": 1, **SIZES}, name="x")
    saved = {"num_hidden_layers": 24, "num_layers_per_stack": 4, "H_cycles": 3, "L_cycles": 1}
    assert parse({"model_type": "hrm_text", "head_dim": 4, **SIZES, **saved}, name="x").blocks == once.blocks
    assert once.blocks[0].count == 24


def test_gates_of_norms_and_of_attention():
    config = {
        "model_type": "axk2",
        **SIZES,
        "q_lora_rank": 6,
        "kv_lora_rank": 5,
        "qk_nope_head_dim": 4,
        "qk_rope_head_dim": 2,
        "v_head_dim": 3,
        "index_n_heads": 2,
        "index_head_dim": 4,
        "n_routed_experts": 6,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 3,
        "gated_norm_rank": 2,
    }
    dense, sparse = parse(config, name="x").blocks
    assert (dense.count, sparse.count) == (1, 3)
    assert isinstance(sparse.mixer, LatentAttention)
    attention = 8 * (6 + 5 + 2) + 2 * 6 * 2 * (4 + 2 + 3) + 5 * 2 * (4 + 3) + 2 * 3 * 8 + (6 + 5)
    indexer = 6 * 2 * 4 + 8 * 4 + 8 * 2 + 2 * 4
    gate = 2 * 8 * 2
    assert dense.num_parameters == attention + indexer + gate + 3 * 8 * 12 + 16
    assert sparse.num_parameters == 3 * (attention + indexer + 2 * gate + 7 * 3 * 8 * 3 + 8 * 6 + 16)


def test_ordinary_attention_before_experts_of_the_second_kind():
    config = {
        "model_type": "deepseek_ocr2_text",
        **SIZES,
        "moe_intermediate_size": 3,
        "n_routed_experts": 6,
        "num_experts_per_tok": 2,
        "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
    }
    model = parse(config, name="x")
    sparse = 4 * 64 + 3 * 8 * 3 * (6 + 2) + 8 * 6 + 16
    assert model.num_parameters == 2 * 80 + 8 + LLAMA + 3 * sparse
    published = {"model_type": "deepseek_v2", "use_mla": False, "first_k_dense_replace": 1, "n_shared_experts": 2}
    first = parse({k: v for k, v in config.items() if k != "mlp_layer_types"} | published, name="x")
    assert first.blocks == model.blocks


@pytest.mark.parametrize(
    ("kind", "more", "layer", "rest"),
    [
        ("granite4_vision_text", {}, LLAMA, 2 * 80 + 8),
        ("phi4_multimodal", {}, LLAMA, 2 * 80 + 8),
        ("hunyuan_vl_text", {}, LLAMA + 2 * 4, 80 + 8),  # norms of queries and keys; the head is the embedding
        ("hunyuan_vl", {}, LLAMA + 2 * 4, 80 + 8),
        ("cosmos3_edge_text", {"head_dim": 4, "num_key_value_heads": 1}, 2 * 64 + 64 + 2 * 8 * 12 + 16, 2 * 80 + 8),
        ("cohere_compass_text", {}, LLAMA - 8, 80 + 8),  # one norm
    ],
)
def test_text_models_inside_wrappers(kind, more, layer, rest):
    model = parse({"model_type": kind, **SIZES, **more}, name="x")
    assert model.num_parameters == rest + 4 * layer


def test_windows_of_compass_only_where_a_list_says_so():
    config = {"model_type": "cohere_compass_text", **SIZES, "sliding_window": 3}
    listed = ["sliding_attention"] * 3 + ["full_attention"]
    assert [b.mixer.window_tokens for b in parse(config, name="x").blocks] == [0]
    assert [b.mixer.window_tokens for b in parse(config | {"layer_types": listed}, name="x").blocks] == [3, 0]


def test_layers_that_attend_to_pictures_rest():
    config = {"model_type": "mllama_text_model", **SIZES, "num_key_value_heads": 2, "cross_attention_layers": [1, 9]}
    model = parse(config, name="x")
    crossing = LLAMA + 2 * 4 + 2  # norms of queries and keys, two gates
    assert model.resting_parameters == crossing
    assert model.num_parameters == 80 + 8 * 8 + 80 + 8 + 3 * LLAMA + crossing  # eight rows for pictures
    assert model.num_active_parameters == 80 + 8 + 3 * LLAMA
    assert "1 layer that attends to pictures rest" in dict(model.published)["layers"]
    silent = {k: v for k, v in config.items() if k != "cross_attention_layers"}
    assert [b.count for b in parse(silent | {"num_hidden_layers": 12}, name="x").blocks] == [
        10
    ]  # the fourth, the ninth


def test_a_model_of_such_layers_alone_is_refused():
    config = {"model_type": "mllama_text_model", **SIZES, "num_key_value_heads": 2}
    with pytest.raises(ScenarioError, match="fewer layers than the model has"):
        parse(config | {"num_hidden_layers": 2, "cross_attention_layers": [0, 1]}, name="x")
