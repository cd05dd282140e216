"""Zamba2: layers that share the weights of a few transformer blocks, counted by hand."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.models.config import parse
from orrery.models.model import SoftmaxAttention

CONFIG = {
    "model_type": "zamba2",
    "hidden_size": 8,
    "num_hidden_layers": 5,
    "layers_block_type": ["mamba", "hybrid", "hybrid", "mamba", "hybrid"],
    "num_attention_heads": 4,
    "intermediate_size": 12,
    "vocab_size": 10,
    "num_mem_blocks": 2,
    "n_mamba_heads": 2,
    "mamba_d_state": 3,
    "adapter_rank": 5,
}
MAMBA = 8 * (16 + 22 + 2) + 16 * 8 + 22 * 5 + 3 * 2 + 16 + 8
"""Gate of 16; input, B and C of 22; two steps; the output; a convolution of four and its shift, decays, steps and what
passes by, a norm inside and one before."""
SHARED = 16 * 48 + 16 * 8 + 8 * 24 + 12 * 8 + 16 + 8
"""Queries, keys and values of 16 inputs, the output into eight; gate, up and down; norms of 16 and of 8."""
OWN = 8 * 5 + 5 * 24 + 8 * 8
"""The feed-forward part's adapter, and the product into the Mamba layer."""


def test_shared_weights_count_once_and_adapters_for_each_use():
    model = parse(CONFIG, name="x")
    assert model.is_head_tied
    assert model.num_parameters == 80 + 8 + 5 * MAMBA + 2 * SHARED + 3 * OWN
    attention = parse(CONFIG | {"use_shared_attention_adapter": True}, name="x")
    assert attention.num_parameters - model.num_parameters == 3 * 3 * 2 * 16 * 5
    # a token passes what is shared at each use (norms are the model's own here)
    assert model.num_active_parameters == 80 + 8 + 2 * 24 + 5 * MAMBA + 3 * (SHARED - 24 + OWN)


def test_every_use_keeps_a_cache():
    mamba, shared = parse(CONFIG, name="x").blocks
    assert (mamba.count, shared.count) == (5, 3)
    assert isinstance(shared.mixer, SoftmaxAttention)
    assert (shared.mixer.num_kv_heads, shared.mixer.head_size) == (4, 4)  # twice as wide as the model
    assert {x.name: shared.sets(x) for x in shared.linears} == {
        "qkv": 2,
        "out": 2,
        "gate_up": 2,
        "down": 2,
        "gate_up_adapter_a": 3,
        "gate_up_adapter_b": 3,
        "into_mamba": 3,
    }


def test_fewer_uses_than_blocks_hold_only_what_they_use():
    one = parse(CONFIG | {"layers_block_type": ["mamba"] * 4 + ["hybrid"]}, name="x")
    assert one.num_parameters == 80 + 8 + 5 * MAMBA + SHARED + OWN


def test_first_configs_name_keys_otherwise():
    former = {
        "layers_block_type": ["m", "g", "g", "m", "g"],
        "ffn_hidden_size": 12,
        "state_size": 3,
        "conv_dimension": 4,
        "expansion_factor": 2,
        "lora_rank": 5,
        "mamba_headdim": 8,
        "use_shared_attention_lora": True,
    }
    gone = ("intermediate_size", "mamba_d_state", "adapter_rank", "n_mamba_heads")
    plain = {k: v for k, v in CONFIG.items() if k not in gone}
    now = parse(CONFIG | {"use_shared_attention_adapter": True}, name="x")
    assert parse(plain | former, name="x").blocks == now.blocks


def test_a_pattern_where_no_list_says():
    silent = {k: v for k, v in CONFIG.items() if k != "layers_block_type"}
    assert [b.count for b in parse(silent | {"num_hidden_layers": 54}, name="x").blocks] == [54, 9]


def test_an_unknown_kind_of_layer_is_refused():
    with pytest.raises(ScenarioError, match="layers_block_type: got 'moe'; write one of mamba, hybrid"):
        parse(CONFIG | {"layers_block_type": ["moe"] * 5}, name="x")
