"""Fields of a config at their limits, layers dealt out anew, and what parts of a model add up to, by hand."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.models import speech
from orrery.models.decoder import context_tokens, windows
from orrery.models.fields import Fields
from orrery.models.model import (
    Block,
    CompressedAttention,
    Experts,
    LatentAttention,
    Linear,
    Model,
    SoftmaxAttention,
)
from orrery.models.parts import attention
from orrery.models.rotation import Rotation, rotation_of
from orrery.models.shape import encoder_decoder_of_shape, model_of_shape, resized

MIXTURE = Experts(num_experts=4, experts_per_token=2, hidden_size=8, ffn_size=4)


def block(count, experts=None, name="x"):
    return Block(name=name, count=count, linears=(), mixer=None, experts=experts, other_parameters=5, norm_elements=7)


def model(*blocks, **more):
    head = Linear(name="head", in_features=8, out_features=10, shard="vocab", role="head")
    given = {"name": "m", "family": "f", "hidden_size": 8, "vocab_size": 10, "max_context_tokens": 64}
    return Model(**(given | {"embedding_parameters": 80, "head": head, "is_head_tied": False} | more), blocks=blocks)


def test_a_linear_layer_has_weights_and_a_bias():
    given = {"name": "x", "in_features": 6, "out_features": 4, "shard": "column", "role": "mlp"}
    assert Linear(**given).num_parameters == 24
    assert Linear(**given, has_bias=True).num_parameters == 28
    assert Linear(**given, groups=2, has_bias=True).num_parameters == 16


@pytest.mark.parametrize(("gated", "bias", "each"), [(True, False, 96), (False, False, 64), (True, True, 112)])
def test_an_expert_is_two_or_three_matrices(gated, bias, each):
    assert (
        Experts(
            num_experts=4, experts_per_token=2, hidden_size=8, ffn_size=4, is_gated=gated, has_bias=bias
        ).num_parameters_each
        == each
    )


def test_what_a_token_adds_to_the_cache():
    given = {"num_heads": 4, "num_kv_heads": 2, "head_size": 8, "value_head_size": 6}
    assert SoftmaxAttention(**given).cache_elements_per_token == 28.0
    assert SoftmaxAttention(**given, keys_are_values=True).cache_elements_per_token == 16.0
    assert SoftmaxAttention(**given, owns_cache=False).cache_elements_per_token == 0.0
    latent = {"num_heads": 4, "q_lora_rank": 3, "nope_head_size": 8, "value_head_size": 8}
    assert LatentAttention(**latent, kv_lora_rank=16, rope_head_size=4).cache_elements_per_token == 20.0
    given = {"num_heads": 4, "head_size": 8, "window_tokens": 16}
    assert CompressedAttention(**given, ratio=4).cache_elements_per_token == 2.0
    assert CompressedAttention(**given, ratio=0).cache_elements_per_token == 0.0


def test_a_mixture_counts_all_experts_and_passes_few():
    mixed = block(3, MIXTURE)
    assert (mixed.num_parameters, mixed.num_active_parameters) == (3 * (4 * 96 + 5), 3 * (2 * 96 + 5))
    assert (block(3).num_parameters, block(3).normed_elements) == (15, 7)
    whole = model(block(2), mixed, other_parameters=9, tower_parameters=100, draft_parameters=1000)
    assert whole.num_parameters == 10 + 1167 + 80 + 80 + 9 + 100
    assert whole.num_active_parameters == 10 + 591 + 80 + 9
    tied = model(block(2), mixed, is_head_tied=True, encoder=(block(4),))
    assert tied.num_parameters == 10 + 1167 + 20 + 80
    assert model(block(2), head=None).num_active_parameters == 10


def test_leading_dense_layers_are_few_or_a_tenth():
    assert model(block(3), block(5, MIXTURE)).num_leading_dense_layers == 3
    assert model(block(4), block(5, MIXTURE)).num_leading_dense_layers == 0
    assert model(block(4), block(36, MIXTURE)).num_leading_dense_layers == 4
    assert model(block(4), block(35, MIXTURE)).num_leading_dense_layers == 0
    assert model(block(3)).num_leading_dense_layers == 0
    assert model(block(3, MIXTURE), block(5, MIXTURE)).num_leading_dense_layers == 0
    assert model(block(3), block(5, MIXTURE), block(1)).num_leading_dense_layers == 0
    assert model(block(3), block(5, MIXTURE), encoder=(block(1),)).num_leading_dense_layers == 0


def counts(blocks, **changes):
    return [b.count for b in resized(model(*blocks), **changes).blocks]


def test_layers_are_dealt_out_in_proportion_largest_remainders_first():
    three = (block(6), block(3), block(3))
    assert counts(three, num_layers=4) == [2, 1, 1]
    assert counts(three, num_layers=5) == [3, 1, 1]  # 2.5, 1.25, 1.25
    assert counts(three, num_layers=7) == [3, 2, 2]  # 3.5, 1.75, 1.75
    assert counts(three, num_layers=24) == [12, 6, 6]
    assert counts((block(9), block(2)), num_layers=1) == [1]


def test_first_layers_that_are_a_tenth_stay():
    assert counts((block(1), block(9)), num_layers=4) == [1, 3]
    assert counts((block(2), block(9)), num_layers=4) == [1, 3]  # two of eleven are more than a tenth: 0.73, 3.27
    assert counts((block(3), block(27)), num_layers=3) == [3]  # 0.3, 2.7
    assert counts((block(3), block(27)), num_layers=4) == [3, 1]


def test_dense_first_layers_can_be_set():
    mixture = (block(3), block(5, MIXTURE))
    assert counts(mixture, num_dense_layers=1) == [1, 7]
    assert counts(mixture, num_dense_layers=1, num_layers=4) == [1, 3]
    assert counts(mixture, num_dense_layers=0) == [8]
    assert counts(mixture, num_dense_layers=9) == [8]
    assert counts((block(3), block(5)), num_dense_layers=1) == [3, 5]  # no mixture


def test_a_new_vocabulary_changes_embedding_and_head():
    wider = resized(model(block(1)), vocab_size=13)
    assert (wider.vocab_size, wider.embedding_parameters, wider.head.out_features) == (13, 104, 13)
    encoder = resized(model(block(1), head=None), vocab_size=4)
    assert (encoder.embedding_parameters, encoder.head) == (32, None)


def test_a_model_of_sizes_alone():
    plain = model_of_shape(num_layers=2, hidden_size=8, num_heads=2)
    assert (plain.family, plain.vocab_size, plain.max_context_tokens, plain.is_head_tied) == ("gpt2", 51200, 2048, True)
    # q, k, v 8 x 24 + 24, out 64 + 8, up 8 x 32 + 32, down 32 x 8 + 8, two norms of scale and shift
    assert plain.blocks[0].num_parameters == 2 * (216 + 72 + 288 + 264 + 32)
    assert (plain.embedding_parameters, plain.other_parameters) == (8 * (51200 + 2048), 16)
    gated = model_of_shape(num_layers=1, hidden_size=8, num_heads=2, gated_ffn=True, context_tokens=77)
    assert (gated.family, gated.is_head_tied, gated.max_context_tokens) == ("llama", False, 77)
    assert (gated.blocks[0].num_parameters, gated.embedding_parameters) == (192 + 64 + 768 + 16, 8 * 51200)
    mixed = model_of_shape(num_layers=3, hidden_size=8, num_heads=2, num_experts=4, num_dense_layers=1, ffn_size=4)
    assert [(b.name, b.count) for b in mixed.blocks] == [("dense", 1), ("moe", 2)]
    assert mixed.blocks[1].experts.experts_per_token == 1
    assert model_of_shape(num_layers=1, hidden_size=8, num_heads=2, is_causal=False).family == "bert"
    both = encoder_decoder_of_shape(num_layers=2, hidden_size=8, num_heads=2, vocab_size=16)
    mixer = both.blocks[0].mixer
    assert (mixer.head_size, both.blocks[0].activation_elements) == (4, 32)


def test_parts_of_attention():
    plain = attention(8, 4, 2, 3)
    assert [x.out_features for x in plain.linears] == [24, 8]
    assert (plain.other_parameters, plain.norm_elements) == (0, 0)
    assert [x.out_features for x in attention(8, 4, 2, 3, gate_features=12).linears] == [36, 8]
    assert [x.out_features for x in attention(8, 4, 2, 3, owns_cache=False).linears] == [12, 8]
    assert [x.out_features for x in attention(8, 4, 2, 3, shares_projection=True).linears] == [18, 8]
    wide = attention(8, 4, 2, 3, value_head_size=5)
    assert [(x.in_features, x.out_features) for x in wide.linears] == [(8, 28), (20, 8)]
    assert attention(8, 4, 2, 3, qk_norm="head").other_parameters == 6
    assert attention(8, 4, 2, 3, qk_norm="head", owns_cache=False).other_parameters == 3
    assert attention(8, 4, 2, 3, qk_norm="whole", qk_norm_parameters=2).other_parameters == 36
    own = attention(8, 4, 2, 3, qk_norm="heads")  # 12 + 6 weights, a norm of each head: no rank needs another's sum
    assert (own.other_parameters, own.norm_elements, own.num_norm_reduces) == (18, 18, 0)
    over_all = attention(8, 4, 2, 3, qk_norm="whole")
    assert (over_all.other_parameters, over_all.norm_elements, over_all.num_norm_reduces) == (18, 18, 1)
    assert attention(8, 4, 2, 3, qk_norm="whole", has_sinks=True).other_parameters == 22
    assert attention(8, 4, 2, 3, qk_norm="head").norm_elements == 18


LIMITS = {"num_layers": 10_000, "d_model": 1_000_000, "vocab_size": 100_000_000, "num_heads": 100_000, "x": 10**9}


@pytest.mark.parametrize("key", sorted(LIMITS))
def test_a_size_ends_at_its_largest(key):
    assert Fields({key: LIMITS[key]}, "c").size(key) == LIMITS[key]
    with pytest.raises(ScenarioError, match=f"from 1 to {LIMITS[key]}"):
        Fields({key: LIMITS[key] + 1}, "c").size(key)


def test_fields_at_their_edges():
    c = Fields({"zero": 0, "one": 1.0, "half": 0.5, "yes": True, "far": 1e9, "list": [0, 2], "text": "a" * 10_000}, "c")
    assert (c.size("one"), c.count("zero"), c.count("none"), c.size("none", "one")) == (1, 0, 0, 1)
    assert (c.number("far", default=0.0), c.number("none", default=2.5)) == (1e9, 2.5)
    assert (c.flag("zero"), c.flag("yes"), c.flag("none")) == (False, True, False)
    assert (c.sizes("list"), len(c.word("text")), c.word("none")) == ((0, 2), 10_000, "")
    assert (c.divide(12, "a", 4, "b"), c.per_layer((1, 2, 3), "k", 2)) == (3, (1, 2))
    assert c.with_defaults(zero=5, none=6).data["zero"] == 0
    for wrong in (
        lambda: c.size("zero"),
        lambda: c.size("yes"),
        lambda: c.size("half"),
        lambda: c.number("yes", default=0),
    ):
        with pytest.raises(ScenarioError, match="write a"):
            wrong()
    for wrong in ({"x": [-1]}, {"x": [True]}, {"x": [10**9 + 1]}, {"x": [1.0]}):
        with pytest.raises(ScenarioError, match="list of whole numbers"):
            Fields(wrong, "c").sizes("x")
    with pytest.raises(ScenarioError, match="at most 10,000 letters"):
        Fields({"x": "a" * 10_001}, "c").word("x")
    with pytest.raises(ScenarioError, match="does not divide"):
        c.divide(13, "a", 4, "b")
    with pytest.raises(ScenarioError, match="3 layers"):
        c.per_layer((1, 2), "k", 3)
    shown = str(c.wrong("k", "b" * 90, "less"))
    assert "b" * 79 + "…" in shown
    assert "…" not in str(c.wrong("k", "b" * 78, "less"))


def test_windows_by_layer():
    types = ["sliding_attention", "full_attention", "sliding"]
    assert windows(Fields({"layer_types": types}, "c"), 3, 64) == [64, 0, 64]
    assert windows(Fields({}, "c"), 2, 64) == [64, 64]
    assert windows(Fields({}, "c"), 2, 64, ["full_attention", "sliding_attention"]) == [0, 64]


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({}, 100),
        ({"n_ctx": 300}, 300),
        ({"n_ctx": 300, "rope_scaling": {"type": "linear", "factor": 4.0}}, 300),
        ({"n_ctx": 300, "rope_scaling": {"type": "yarn", "factor": 4.0}}, 1200),
        (
            {"n_ctx": 300, "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 200}},
            800,
        ),
        ({"n_ctx": 900, "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 200}}, 900),
        ({"n_ctx": 300, "rope_scaling": {"type": "yarn"}}, 300),
    ],
)
def test_context_of_a_stretched_model(config, tokens):
    assert context_tokens(Fields(config, "c"), 100) == tokens


def test_rotation_as_stated():
    assert rotation_of(Fields({}, "c")) is None
    assert rotation_of(Fields({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "c")) is None
    assert rotation_of(Fields({"rope_theta": 5.0}, "c")) == Rotation(base=5.0)
    nested = {"rope_parameters": {"rope_theta": 7.0, "rope_type": "linear", "factor": 2.0}, "rotary_pct": 0.25}
    assert rotation_of(Fields(nested, "c")) == Rotation(base=7.0, kind="linear", stretch_ratio=2.0, share=0.25)
    plain = {"rope_theta": 5.0, "rope_scaling": {"rope_type": "default"}}
    assert rotation_of(Fields(plain, "c")) == Rotation(base=5.0)
    both = {"rope_type": "yarn", "factor": 2.718281828459045, "mscale": 2.0, "mscale_all_dim": 1.0}
    turned = rotation_of(Fields({"rope_theta": 5.0, "rope_scaling": both}, "c"))
    assert turned.magnitude_ratio == pytest.approx(1.2 / 1.1)
    shrunk = {"rope_type": "yarn", "factor": 0.5}
    assert rotation_of(Fields({"rope_theta": 5.0, "rope_scaling": shrunk}, "c")).magnitude_ratio == 1.0


def test_a_window_of_speech_has_a_frame_every_ten_milliseconds_and_a_position_for_two():
    assert (speech.FRAMES, speech.POSITIONS) == (100 * speech.WINDOW_S, 50 * speech.WINDOW_S)
    assert speech.WINDOW_S == 30.0
