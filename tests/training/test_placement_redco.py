"""Two rules for any transformer: the layouts that families write by hand, and what fits."""

from dataclasses import replace

import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.training.placement.redco import (
    ATTENTION_SCORES,
    Matrix,
    cuts,
    differences,
    hand_written,
    matrices,
    training_memory,
)

NAMES = ["gpt-j-6b", "llama-7b", "llama-13b", "llama-65b", "t5-3b", "t5-11b", "opt-13b", "opt-30b", "opt-66b"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_shards", [2, 4, 8])
def test_the_rules_find_the_layout_that_is_written_by_hand(name, num_shards):
    assert differences(get_model(name), num_shards) == ()


def test_an_encoder_decoder_has_two_attentions_a_layer():
    found = cuts(matrices(get_model("t5-11b").blocks[0]), 8)
    assert found == {
        "q": "column",
        "k": "column",
        "v": "column",
        "out": "row",
        "cross_q": "column",
        "cross_k": "column",
        "cross_v": "column",
        "cross_out": "row",
        "up": "column",
        "down": "row",
    }


def test_taken_apart_products_have_as_many_weights_as_before():
    for name in NAMES:
        for block in get_model(name).blocks:
            weights = sum(x.in_features * x.out_features for x in block.linears)
            assert sum(m.num_parameters for m in matrices(block)) == weights
            assert hand_written(block).keys() == {m.name for m in matrices(block)}


def test_fully_connected_layers_take_turns_and_siblings_are_alike():
    chain = [
        Matrix(name=str(i), in_features=a, out_features=b)
        for i, (a, b) in enumerate([(8, 32), (32, 16), (16, 64), (16, 64), (64, 8)])
    ]
    assert list(cuts(chain, 4).values()) == ["column", "row", "column", "column", "row"]


def test_a_side_that_does_not_divide_leaves_the_other_or_none():
    found = cuts(
        [Matrix(name="a", in_features=12, out_features=10), Matrix(name="b", in_features=10, out_features=7)], 4
    )
    assert found == {"a": "row", "b": "replicated"}


def test_a_difference_is_named():
    model = get_model("llama-7b")
    block = model.blocks[0]
    swapped = tuple(replace(x, shard="row") if x.name == "qkv" else x for x in block.linears)
    wrong = replace(model, blocks=(replace(block, linears=swapped),))
    assert differences(wrong, 8) == tuple(f"dense {x}: column, not row" for x in "qkv")


def test_experts_are_not_for_these_rules():
    with pytest.raises(ScenarioError, match="dense layers"):
        differences(get_model("mixtral-8x7b"), 8)


def test_66_billion_parameters_fit_64_chips_of_32_gb_and_175_do_not():
    room = get_device("tpu-v4").memory_capacity_bytes
    assert training_memory(get_model("opt-66b"), 64, sequence_tokens=512).total_bytes < room
    assert training_memory(get_model("opt-66b"), 16, sequence_tokens=512).state_bytes > room
    assert training_memory(get_model("opt-175b"), 64, sequence_tokens=512).state_bytes > room


def test_states_are_sixteen_bytes_a_parameter_and_shared_out():
    model = get_model("llama-7b")
    alone = training_memory(model, 1, sequence_tokens=1)
    assert alone.state_bytes == 16.0 * model.num_parameters
    shared = training_memory(model, 8, sequence_tokens=1)
    assert shared.state_bytes == pytest.approx(alone.state_bytes / 8, rel=1e-3)
    assert shared.state_bytes > alone.state_bytes / 8  # norms are whole on every device


@pytest.mark.parametrize(("shards", "heads"), [(1, 72), (36, 2), (64, 2), (72, 1), (128, 1)])
def test_heads_that_do_not_divide_are_padded(shards, heads):
    """72 heads on 64 shards: a shard holds two, as on 36. Of a s + c s^2 bytes, f(2s) - 2 f(s) is 2 c s^2."""
    model = get_model("opt-66b")
    once, twice = (training_memory(model, shards, sequence_tokens=tokens).activations_bytes for tokens in (1024, 2048))
    scores = 4.0 * model.num_layers * ATTENTION_SCORES * heads * 1024**2
    assert twice - 2.0 * once == pytest.approx(2.0 * scores)


def test_activations_grow_with_the_batch_and_faster_with_the_length():
    model = get_model("opt-13b")
    one = training_memory(model, 8, sequence_tokens=512).activations_bytes
    assert training_memory(model, 8, sequence_tokens=512, num_sequences=3).activations_bytes == pytest.approx(3 * one)
    assert training_memory(model, 8, sequence_tokens=1024).activations_bytes > 2 * one
