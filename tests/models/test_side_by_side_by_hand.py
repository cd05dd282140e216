"""Layers that few families have, counted by hand: short convolutions, two mixers side by side, experts that rest."""

import pytest

from orrery.models.config import parse
from orrery.models.model import SoftmaxAttention
from orrery.models.recurrent import kimi_delta, short_convolution

HIDDEN = 128


def config(model_type, **fields):
    return {"model_type": model_type, "hidden_size": HIDDEN, "num_attention_heads": 4, "vocab_size": 1000, **fields}


def test_a_short_convolution_is_two_gates_around_a_kernel():
    part = short_convolution(HIDDEN, 3)
    assert sum(x.in_features * x.out_features for x in part.linears) == 4 * 128 * 128  # input, two gates, output
    assert part.other_parameters == 128 * 3
    assert part.mixer.state_elements == 0  # nothing is kept but the last two inputs
    assert part.mixer.conv_elements == 128 * 2
    assert part.mixer.flops_per_token == 128 * (2 * 3 + 2)  # three multiply-adds and two gates a channel
    assert short_convolution(HIDDEN, 3, bias=True).other_parameters == 128 * 4


def test_two_thirds_of_lfm2s_width_are_rounded_up():
    layers = {"num_hidden_layers": 2, "num_key_value_heads": 2, "block_ff_dim": 300, "full_attn_idxs": [1]}
    model = parse(config("lfm2", block_multiple_of=64, **layers), name="x")
    assert [b.activation_elements for b in model.blocks] == [256, 256]  # 2/3 of 300 is 200: up to 4 x 64
    as_stated = parse(config("lfm2", block_auto_adjust_ff_dim=False, **layers), name="x")
    assert [b.activation_elements for b in as_stated.blocks] == [300, 300]
    assert model.is_head_tied


def test_the_halves_of_falcon_h1_share_a_norm_and_a_sum():
    fields = {"num_hidden_layers": 3, "num_key_value_heads": 2, "intermediate_size": 320, "mamba_d_ssm": 256}
    small = parse(config("falcon_h1", mamba_n_heads=8, mamba_d_state=16, **fields), name="x")
    mamba, attention = small.blocks
    assert (mamba.count, attention.count) == (3, 3)
    assert (mamba.num_reduces, attention.num_reduces) == (0, 2)
    assert mamba.norm_elements == 0
    channels = 256 + 2 * 16
    by_hand = 128 * (256 + channels + 8) + 256 * 128 + channels * (4 + 1) + 3 * 8
    assert mamba.num_parameters == by_hand * 3
    assert attention.num_parameters == 3 * (128 * (128 + 2 * 64) + 128 * 128 + 3 * 128 * 320 + 2 * 128)


def test_experts_that_return_their_input_are_not_passed():
    fields = {"num_layers": 2, "q_lora_rank": 32, "kv_lora_rank": 16, "ffn_hidden_size": 320}
    few = {"expert_ffn_hidden_size": 64, "n_routed_experts": 16, "moe_topk": 3}
    sizes = {}
    for idle in (0, 8):
        model = parse(config("longcat_flash", zero_expert_num=idle, **fields, **few), name="x")
        experts, dense = model.blocks
        assert (experts.count, dense.count) == (2, 2)
        assert experts.experts.num_experts == 16
        sizes[idle] = (experts.experts.experts_per_token, model.num_parameters)
    assert sizes[0][0] == 3
    assert sizes[8][0] == 2  # 3 of 24, of which 16 compute
    assert sizes[8][1] - sizes[0][1] == 2 * 8 * 128  # the router alone knows them


@pytest.mark.parametrize(("key", "linears"), [("decay", 5), ("decay_a", 7)])
def test_a_decay_is_one_product_or_two_narrow_ones(key, linears):
    is_full = key == "decay"
    part = kimi_delta(HIDDEN, 4, 32, 4, has_full_gate=is_full, has_full_decay=is_full)
    assert len(part.linears) == linears
    assert key in {x.name for x in part.linears}


def test_ling_attends_in_full_at_the_end_of_every_group_and_in_a_last_one_that_is_short():
    fields = {"num_hidden_layers": 7, "layer_group_size": 3, "num_experts": 8, "num_experts_per_tok": 2}
    model = parse(config("bailing_hybrid", first_k_dense_replace=1, head_dim=32, **fields), name="x")
    assert {b.name: b.count for b in model.blocks} == {"linear dense": 1, "linear moe": 3, "full moe": 3}
    older = parse(config("bailing_hybrid", group_norm_size=4, head_dim=32, **fields), name="x")
    assert {b.mixer.kind for b in older.blocks if hasattr(b.mixer, "kind")} == {"lightning"}
    convolved = {"group_norm_size": 1, "short_conv_kernel_size": 4}
    newer = parse(config("bailing_hybrid", head_dim=32, **convolved, **fields), name="x")
    assert {b.mixer.kind for b in newer.blocks if hasattr(b.mixer, "kind")} == {"kimi-delta"}  # 3 has convolutions


def test_step_3_draws_wide_queries_from_a_narrow_latent_and_keeps_one_head_of_keys() -> None:
    """128 wide, four heads of 32 on one of the cache, a latent of 16; layers 1 and 2 of four have experts."""
    fields = {"num_hidden_layers": 4, "head_dim": 32, "share_q_dim": 16, "moe_layers_enum": "1,2", "moe_num_experts": 6}
    few = {"moe_top_k": 2, "moe_intermediate_size": 8, "share_expert_dim": 8}
    model = parse(config("step3_text", **fields, **few), name="x")
    assert {b.name: b.count for b in model.blocks} == {"dense": 2, "moe": 2}
    moe = next(b for b in model.blocks if b.name == "moe")
    sizes = {x.name: (x.in_features, x.out_features, x.shard) for x in moe.linears}
    assert sizes["qkv_a"] == (128, 16 + 2 * 32, "replicated")
    assert sizes["q_b"] == (16, 4 * 32, "column")
    assert sizes["out"] == (4 * 32, 128, "row")
    assert isinstance(moe.mixer, SoftmaxAttention)
    assert moe.mixer.num_kv_heads == 1
    attention = 128 * 80 + 16 * 128 + 128 * 128 + 16
    experts = 128 * 6 + 7 * 3 * 128 * 8
    assert moe.num_parameters == 2 * (attention + experts + 2 * 128)  # two such layers


def test_step_3_has_experts_in_all_layers_but_four_and_the_last_unless_it_says() -> None:
    model = parse(config("step3_text", num_hidden_layers=8), name="x")
    assert {b.name: b.count for b in model.blocks} == {"dense": 5, "moe": 3}


def test_trinity_gates_what_attention_returns_and_norms_four_times():
    fields = {"num_hidden_layers": 4, "num_dense_layers": 1, "num_key_value_heads": 2, "head_dim": 32}
    few = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "num_shared_experts": 1}
    model = parse(config("afmoe", intermediate_size=320, **fields, **few), name="x")
    dense = next(b for b in model.blocks if "dense" in b.name)
    assert next(x for x in dense.linears if x.name == "qkv").out_features == 128 + 2 * 64 + 128
    assert dense.other_parameters == 4 * 128 + 2 * 32
    assert {b.name: b.count for b in model.blocks} == {"sliding dense": 1, "sliding moe": 2, "moe": 1}
