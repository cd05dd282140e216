"""Configs as a later transformers saves them: lists of what each layer is, in place of the keys they were made from."""

from orrery.models.config import parse
from orrery.models.model import RecurrentMixer, SoftmaxAttention

SIZES = {
    "vocab_size": 10,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "intermediate_size": 3,
}


def read(kind, **more):
    return parse(SIZES | {"model_type": kind} | more, name=kind)


def test_minimax_m3_lists_sparse_attention_and_experts():
    old = read(
        "minimax_m3",
        moe_layer_freq=[0, 1],
        sparse_attention_config={"sparse_attention_freq": [0, 1]},
        dense_intermediate_size=6,
    )
    new = read(
        "minimax_m3_vl_text",
        mlp_layer_types=["dense", "sparse"],
        layer_types=["full_attention", "minimax_m3_sparse"],
        dense_intermediate_size=6,
    )
    assert new.blocks == old.blocks
    assert [b.experts is not None for b in new.blocks] == [False, True]


def test_mimo_lists_experts():
    old = read("mimo_v2_flash", moe_layer_freq=[1, 0])
    new = read("mimo_v2_flash", mlp_layer_types=["sparse", "dense"])
    assert new.blocks == old.blocks


def test_llama4_lists_chunked_layers():
    old = read("llama4_text", no_rope_layers=[0, 1])
    new = read("llama4_text", layer_types=["full_attention", "chunked_attention"])
    assert new.blocks == old.blocks


def test_gemma4_lists_the_sizes_of_full_layers():
    types = {"layer_types": ["sliding_attention", "full_attention"], "hidden_size_per_layer_input": 0}
    new = read("gemma4_text", per_layer_config={"01": {"head_dim": 6}}, **types)
    assert new.blocks == read("gemma4_text", global_head_dim=6, **types).blocks
    heads = [b.mixer.head_size for b in new.blocks if isinstance(b.mixer, SoftmaxAttention)]
    assert heads == [4, 6]


def test_ling_3_keeps_the_heads_of_delta_attention_apart():
    experts = {"num_experts": 4, "num_experts_per_token": 3, "moe_intermediate_size": 2, "first_k_dense_replace": 0}
    more = experts | {"linear_num_heads": 3, "linear_head_dim": 5, "linear_conv_kernel_dim": 2}
    model = read("bailing_hybrid", layer_types=["linear_attention", "full_attention"], **more)
    mixer = model.blocks[0].mixer
    assert isinstance(mixer, RecurrentMixer)
    assert mixer.state_elements == 3 * 5 * 5
    assert mixer.conv_elements == 3 * 3 * 5 * (2 - 1)
    assert model.blocks[0].experts is not None
    assert model.blocks[0].experts.experts_per_token == 3
