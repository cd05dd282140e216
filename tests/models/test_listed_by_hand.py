"""Families whose configs list what each layer is, two or four layers eight wide, counted by hand.

Two heads of four over one of keys and values: queries 64, keys and values 2 x 32, output 64: 192. A gated feed-forward
part of three: 3 x 8 x 3 = 72. A norm: 8. A vocabulary of ten: embedding and head 80 each, one norm at the end.
"""

import pytest

from orrery.base.errors import ScenarioError
from orrery.models.config import parse
from orrery.models.model import SoftmaxAttention

BASE = {
    "vocab_size": 10,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "intermediate_size": 3,
    "tie_word_embeddings": False,
}
EXPERTS = {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 2}
OUTSIDE = 80 + 80 + 8
DENSE = 192 + 72 + 2 * 8
SPARSE = 192 + 5 * 48 + 40 + 2 * 8  # five experts of 3 x 8 x 2, a router of 8 x 5


def read(kind, **more):
    return parse(BASE | {"model_type": kind} | more, name=kind)


@pytest.mark.parametrize(
    ("kind", "more", "parameters"),
    [
        ("cwm", {}, 2 * DENSE),
        ("iquestcoder", {}, 2 * DENSE),
        ("helium", {}, 2 * DENSE),
        ("granite_swa", {}, 2 * (DENSE + 2)),  # a sink a head
        ("hyperclovax", {}, 2 * (DENSE + 2 * 8)),  # a norm behind each half too
        ("hyperclovax", {"use_post_norm": False}, 2 * DENSE),
        ("bitnet", {}, 2 * (DENSE + 8 + 3)),  # norms before both last products
        ("diffllama", {}, 2 * (DENSE + 4 * 4)),
        ("vaultgemma", {}, 2 * DENSE),
        ("muse_glimmer_text", {}, 2 * (DENSE + 2 * 8 + 64)),  # two norms more, a gate as wide as the queries
        # no gate: 2 x 8 x 3; biases of 8 + 2 x 4 + 8, 3 and 8; norms with a shift, also the last
        ("jais2", {}, 2 * (192 + 48 + 24 + 11 + 4 * 8) + 8),
        ("persimmon", {}, 2 * (192 + 48 + 24 + 11 + 4 * 8 + 4 * 4) + 8),
        ("nanochat", {}, 2 * (192 + 48) - 8),  # norms have no weights
        ("mellum", EXPERTS, 2 * SPARSE + 2 * 2 * 4),  # queries and keys normed by head
        # a correction a expert; one dense layer; gates of one number a head
        ("laguna", EXPERTS | {"shared_expert_intermediate_size": 2}, DENSE + SPARSE + 5 + 48 + 2 * (8 + 16)),
        (
            "laguna",
            EXPERTS | {"shared_expert_intermediate_size": 2, "gating": "per-element"},
            DENSE + SPARSE + 5 + 48 + 2 * (8 + 64),
        ),
        # of three heads the first layer, of two the second: 96 + 64 + 96, gates 24 and 16
        (
            "laguna",
            EXPERTS | {"shared_expert_intermediate_size": 2, "num_attention_heads_per_layer": [3, 2]},
            DENSE + 64 + SPARSE + 5 + 48 + 2 * 8 + 24 + 16,
        ),
        ("kolibri1", EXPERTS | {"shared_expert_intermediate_size": 2}, 2 * (SPARSE + 48 + 8 + 2 * 8)),
        ("flint", EXPERTS | {"mlp_only_layers": [0], "shared_expert_intermediate_size": 2}, DENSE + SPARSE + 48 + 20),
        ("beam", EXPERTS | {"first_k_dense_replace": 1}, DENSE + SPARSE + 2 * (2 * 8 + 8 + 64 + 2)),
        ("cohere2_moe", EXPERTS | {"moe_intermediate_size": None}, 2 * (192 + 5 * 72 + 40 + 8)),  # one norm
        ("flex_olmo", {"num_experts": 5, "num_experts_per_tok": 2}, 2 * (192 + 5 * 72 + 40 + 2 * 8 + 12)),
        ("aria_text", {"moe_num_experts": 5, "moe_topk": 2}, 2 * (192 + 5 * 72 + 40 + 144 + 2 * 8)),
        # experts four wide of 3 x 4 x 2; into and out of them 2 x 32 and two norms of 4; a norm and two gates more
        ("muse_spark_text", EXPERTS | {"moe_hidden_size": 4}, 2 * (192 + 64 + 5 * 24 + 40 + 72 + 3 * 8 + 2 * 8)),
    ],
)
def test_parameters(kind, more, parameters):
    assert read(kind, **more).num_parameters == OUTSIDE + parameters


def test_inkling_by_hand():
    """Queries 64, keys and values 32 each, output 64; relative positions 8 x 2 x 2 and 2 x 5; norms of queries and keys
    2 x 4; convolutions of two over keys and values (4 each) and over what both halves return (8 each): 2 x 24; two
    norms. Windowed layers have two heads of keys and values: 64 more, and 2 x 8 more in convolutions; their positions
    reach as far as the window of 3. Experts 5 x 48, a router of 8 x 6 with a scale, a shared expert 48.
    """
    model = read(
        "inkling_text",
        layer_types=["hybrid", "hybrid_sliding"],
        mlp_layer_types=["dense", "sparse"],
        swa_num_key_value_heads=2,
        swa_head_dim=4,
        sliding_window_size=3,
        d_rel=2,
        rel_extent=5,
        conv_kernel_size=2,
        n_routed_experts=5,
        n_shared_experts=1,
        num_experts_per_tok=2,
        moe_intermediate_size=2,
    )
    attention = 192 + 32 + 8 + 2 * 24 + 2 * 8
    full = attention + 2 * 5 + 72
    windowed = attention + 64 + 2 * 8 + 2 * 3 + 5 * 48 + 6 * 8 + 1 + 48
    assert model.num_parameters == OUTSIDE + 8 + full + windowed
    assert windows_of(model) == [(1, 0), (1, 3)]


def windows_of(model):
    found = []
    for block in model.blocks:
        assert isinstance(block.mixer, SoftmaxAttention)
        found.append((block.count, block.mixer.window_tokens))
    return found


@pytest.mark.parametrize(
    ("kind", "more", "windows"),
    [
        ("cwm", {"num_hidden_layers": 8, "sliding_window": 7}, [(2, 0), (6, 7)]),  # 0 and 4 of 0..7
        ("kolibri1", EXPERTS | {"num_hidden_layers": 10}, [(8, 513), (2, 0)]),  # 4 and 9
        ("flint", EXPERTS | {"num_hidden_layers": 9, "mlp_only_layers": [9]}, [(4, 0), (5, 513)]),  # 0, 1, 5 and 8
        ("beam", EXPERTS | {"num_hidden_layers": 8, "first_k_dense_replace": 0}, [(6, 512), (2, 0)]),  # 5 and 7
        ("muse_glimmer_text", {"num_hidden_layers": 6}, [(4, 2048), (2, 0)]),  # 1 and 5
        # dense layers 0 and 1 in full; of the six others the fourth: 5
        (
            "cohere2_moe",
            EXPERTS | {"num_hidden_layers": 8, "first_k_dense_replace": 2},
            [(2, 0), (5, 4096), (1, 0)],
        ),
        ("laguna", EXPERTS | {"layer_types": ["full_attention", "sliding_attention"]}, [(1, 0), (1, 512)]),
        ("llama", {"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 9}, [(1, 0), (1, 9)]),
        ("llama", {"sliding_window": 9}, [(2, 0)]),
    ],
)
def test_windows(kind, more, windows):
    assert windows_of(read(kind, **more)) == windows


def test_a_layer_of_an_unknown_kind_is_refused():
    with pytest.raises(ScenarioError, match=r"layer_types: got 'mamba'; write one of"):
        read("llama", layer_types=["full_attention", "mamba"])


def test_a_windowed_layer_needs_a_window():
    with pytest.raises(ScenarioError, match="sliding_window"):
        read("llama", layer_types=["full_attention", "sliding_attention"])


def test_fields_that_shape_layers_and_are_not_read_are_named():
    model = read("llama", num_experts=4, moe_intermediate_size=2, router_aux_loss_coef=0.1)
    assert dict(model.published)["fields"] == (
        "not read, and may change the answer: moe_intermediate_size, num_experts"
    )
    assert "fields" not in dict(read("mellum", **EXPERTS).published)
    assert "fields" not in dict(read("llama", use_sliding_window=False, sliding_window=9).published)
    assert "fields" not in dict(read("llama", num_experts=1, num_experts_per_tok=1).published)


def test_the_head_is_tied_where_the_whole_model_says_so():
    inner = BASE | {"model_type": "llama"}
    outer = {"model_type": "llava", "text_config": inner, "tie_word_embeddings": True}
    assert parse(outer, name="llava").is_head_tied
    assert not parse(outer | {"tie_word_embeddings": None}, name="llava").is_head_tied
