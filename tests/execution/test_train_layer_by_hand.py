"""A layer's training step on a machine that moves a word a second and does an operation a second, all by hand.

A toy: 8 wide, 4 query heads on 2 key heads of 2 + 2, a gated feed-forward part of 12, 2 sequences of 16 tokens.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from toy_layer import (
    COMPRESSED,
    DENSE,
    EXPERTS,
    LATENT,
    LINEARS,
    RECURRENT,
    ROUTED,
    SOFTMAX,
    VOCAB,
    cut,
    job_of,
    linear,
    parts,
)

from orrery.catalog.devices import get_device
from orrery.execution.train import attention, passes, products
from orrery.execution.train.experts import (
    activation_s,
    expert_casts,
    expert_streams,
    expert_times,
    routed,
)
from orrery.execution.train.job import NF4_BYTES
from orrery.execution.train.layout import TrainingLayout, expert_cut
from orrery.kernels.ops import Gemm

pytestmark = pytest.mark.usefixtures("asked")

# --- element-wise work


def streams(job, block=DENSE, **degrees):
    choice = cut(**degrees)
    found = passes.layer_streams(job, block, parts(block, choice), choice)
    return float(found.forward_s[0]), float(found.backward_s[0])


NORM, ADD, GATED, ROPE = 2 * 32 * 16, 2 * 3 * 32 * 8, 3 * 32 * 12, 2 * 32 * 6 * 2
"""Words of 32 tokens: two norms of 8, two sums of 8, what leaves the activation, queries and keys that turn."""


def test_norms_sums_activations_and_rotations():
    """Back, a norm moves three words for two and a gated activation five for three."""
    assert streams(job_of()) == pytest.approx((NORM + ADD + GATED + ROPE, 1.5 * NORM + ADD + 5 / 3 * GATED + ROPE))


def test_sequence_parallelism_cuts_norms_and_sums_and_tensor_parallelism_the_rest():
    halves = (NORM + ADD + GATED + ROPE) / 2
    assert streams(job_of(), tp=2)[0] == pytest.approx(halves)
    assert streams(job_of(), tp=2, is_sequence_parallel=False)[0] == pytest.approx(halves + (NORM + ADD) / 2)


def test_a_row_at_least_is_normed():
    """One token over 8 ranks is a row on each."""
    job = job_of(seq=1)
    assert streams(job, tp=8, micro_batch=1)[0] == pytest.approx(2 * 16 + 2 * 3 * 8 + 3 * 2 + 2 * 2 * 2)


def test_dropouts_move_masks():
    """Fused, half a word of mask on the way there; else a word in, one out and the mask; back the latter always."""
    base = streams(job_of())
    fused = streams(job_of(has_dropout=True))
    assert np.subtract(fused, base) == pytest.approx((0.5 / 3 * ADD, 2.5 / 3 * ADD))
    apart = streams(job_of(has_dropout=True, is_fused=False))
    assert np.subtract(apart, streams(job_of(is_fused=False))) == pytest.approx((2.5 / 3 * ADD, 2.5 / 3 * ADD))


def test_biases_are_passes_of_their_own_where_nothing_fuses_them():
    linears = (replace(LINEARS[0], has_bias=True), *LINEARS[1:3], replace(LINEARS[3], has_bias=True))
    block = replace(DENSE, linears=linears)
    base = streams(job_of())
    assert streams(job_of(), block) == base
    biased = 2 / 3 * 3 * 32 * (16 + 8)
    apart = streams(job_of(is_fused=False), block), streams(job_of(is_fused=False))
    assert np.subtract(*apart) == pytest.approx((biased, biased))


def test_single_operators_move_their_words_each():
    """A gate means a norm by the root mean square: 18 words and 42 back, 32 tokens of two norms of 8; the gate 5 and 9
    words of 12; 6 heads of 2 turn in 10 words each way; sums are as they were."""
    forward = 18 * 32 * 16 + 5 * 32 * 12 + 10 * 32 * 12 + ADD
    backward = 42 * 32 * 16 + 9 * 32 * 12 + 10 * 32 * 12 + ADD
    assert streams(job_of(is_fused=False)) == pytest.approx((forward, backward))


def test_a_norm_with_a_mean_has_a_kernel_in_any_framework():
    linears = (*LINEARS[:2], linear("up", 8, 12, "column", "mlp"), LINEARS[3])
    block = replace(DENSE, linears=linears, mixer=replace(SOFTMAX, rotary=False))
    assert streams(job_of(is_fused=False), block) == streams(job_of(), block)


def test_experts_with_a_gate_say_how_their_layer_is_normed():
    apart, fused = (streams(job_of(is_fused=f), replace(ROUTED, mixer=None)) for f in (False, True))
    assert np.subtract(apart, fused) == pytest.approx((16 * 32 * 16, 39 * 32 * 16))


@pytest.mark.parametrize(("unmade", "names"), [("nothing", []), ("last product", ["down"]), ("outputs", ["o", "down"])])
def test_products_that_recomputation_leaves_out(unmade, names):
    """What a layer ends with, where it stops once all that was saved is there; all whose results join the stream."""
    found = [p.linear.name for p in parts(DENSE, cut()) if products.is_unmade(unmade, DENSE, p)]
    assert found == names
    routed_too = [p.linear.name for p in parts(ROUTED, cut()) if products.is_unmade(unmade, ROUTED, p)]
    assert routed_too == [n for n in names if n == "o"]


def test_a_plain_activation_reads_and_writes_a_word():
    linears = (*LINEARS[:2], linear("up", 8, 12, "column", "mlp"), LINEARS[3])
    expected = NORM + ADD + 2 * 32 * 12 + ROPE, 1.5 * NORM + ADD + 3 * 32 * 12 + ROPE
    assert streams(job_of(), replace(DENSE, linears=linears)) == pytest.approx(expected)


def test_rotations_that_stretch_turn_apart_where_no_kernel_fuses_them():
    """12 words for 2 on the way there, 17 back."""
    stretched = SimpleNamespace(magnitude_ratio=1.25)
    base = streams(job_of())
    assert streams(job_of(rotation=stretched)) == base
    assert streams(job_of(turns_stretched_apart=True)) == base
    assert streams(job_of(rotation=SimpleNamespace(magnitude_ratio=1.0), turns_stretched_apart=True)) == base
    apart = streams(job_of(rotation=stretched, turns_stretched_apart=True))
    assert np.subtract(apart, base) == pytest.approx((5 * ROPE, 7.5 * ROPE))
    assert streams(job_of(), replace(DENSE, mixer=replace(SOFTMAX, rotary=False)))[0] == base[0] - ROPE


def test_casts_of_what_enters_and_of_the_gradients_of_what_leaves():
    """FP8 with delayed scales: 4/3 of a cast each; routers stay wide. 8 + 8 + 8 + 12 elements enter, 56 leave."""
    job, choice = job_of("fp8"), cut()
    assert (job.recipe.input_casts, job.recipe.gradient_casts, job.recipe.weight_casts) == pytest.approx((4 / 3,) * 3)
    found = passes.cast_streams(job, parts(DENSE, choice), choice)
    assert float(found.forward_s[0]) == pytest.approx(4 / 3 * 32 * (8 + 8 + 8 + 12))
    assert float(found.backward_s[0]) == pytest.approx(4 / 3 * 32 * (16 + 8 + 24 + 8))
    routed_too = passes.cast_streams(job, parts(ROUTED, choice), choice)
    assert float(routed_too.forward_s[0]) == pytest.approx(4 / 3 * 32 * (8 + 8))
    wide = passes.cast_streams(job_of(), parts(DENSE, choice), choice)
    assert (float(wide.forward_s[0]), float(wide.backward_s[0])) == (0, 0)


def test_layers_that_stay_wide_are_not_cast():
    job = job_of("fp8")
    some = replace(job, recipe=replace(job.recipe, wide_layers_frac=0.25))
    choice = cut()
    whole, part = (passes.cast_streams(j, parts(DENSE, choice), choice) for j in (job, some))
    assert float(part.forward_s[0]) == pytest.approx(0.75 * float(whole.forward_s[0]))
    assert float(part.backward_s[0]) == pytest.approx(0.75 * float(whole.backward_s[0]))


def test_frozen_weights_of_four_bits_are_widened():
    """Read at 4.127 bits, written at 16, by rows of the model's width."""
    assert NF4_BYTES == 0.5 + 1 / 64 + 4 / 16384
    found = passes.widening_s(job_of(task="qlora"), np.array([81.0, 3.0]))
    words = (NF4_BYTES / 2 + 1) / 3 * 3
    assert found == pytest.approx([words * 10 * 8, words * 8])
    assert passes.widening_s(job_of(), np.array([81.0])).tolist() == [0]


@pytest.mark.parametrize("tp", [1, 2])
def test_both_ends_of_the_model(tp):
    """A look-up and its scattered gradient; a norm and the loss: three passes over logits forward, two back."""
    below, above = passes.ends_streams(job_of(), cut(tp=tp))
    assert [float(x[0]) for x in (below.forward_s, below.backward_s)] == [512 / tp, 1024 / tp]
    loss = 2 * 32 * VOCAB / tp
    expected = [512 / tp + 3 * loss, 768 / tp + 2 * loss]
    assert [float(x[0]) for x in (above.forward_s, above.backward_s)] == pytest.approx(expected)
    fused = passes.loss_streams(job_of(fuses_loss=True), cut(tp=tp))
    once = 3 * 32 * VOCAB / tp
    assert [float(x[0]) for x in (fused.forward_s, fused.backward_s)] == pytest.approx([once, 2 / 3 * once])


# --- products


def test_three_products_of_a_layer():
    """2 x 32 x 8 x 16 operations for the fused projection, as many for either gradient."""
    choice = cut()
    found = products.product_times(job_of(), parts(DENSE, choice), choice)
    for p, (n, k) in zip(found, ((16, 8), (8, 8), (24, 8), (8, 12)), strict=True):
        each = 2 * 32 * n * k
        assert [float(x[0]) for x in (p.forward_s, p.input_gradient_s, p.weight_gradient_s)] == [each] * 3
    frozen = products.product_times(job_of(task="lora"), parts(DENSE, choice), choice)[0]
    assert (float(frozen.input_gradient_s[0]), float(frozen.weight_gradient_s[0])) == (8192, 0)


def test_pieces_of_a_product_follow_each_other(asked):
    choice = cut()
    whole, pieces = (products.product_times(job_of(), parts(DENSE, choice), choice, cuts)[0] for cuts in (1, 4))
    assert float(pieces.forward_s[0]) == float(whole.forward_s[0])
    assert {int(np.max(op.m)) for op in asked if isinstance(op, Gemm)} >= {32, 8}
    none = products.product_times(job_of(), parts(DENSE, choice), choice, 64)[0]
    assert float(none.forward_s[0]) == 64 * 2 * 16 * 8  # a token at least


def test_formats_of_the_three_products(asked):
    """FP8 forward and in gradients; routers and heads stay in 16 bits, and so does the recipe's share of layers."""
    choice = cut()
    job = job_of("fp8")
    assert not products.is_wide(job, parts(DENSE, choice)[0])
    assert products.is_wide(job, parts(ROUTED, choice)[2])
    assert products.is_wide(job_of(), parts(DENSE, choice)[0])
    products.product_times(job, parts(ROUTED, choice), choice)
    by_format = {(op.format, int(np.ravel(op.n)[0])) for op in asked if isinstance(op, Gemm)}
    assert {f for f, _ in by_format} == {"fp8", "bf16"}
    some = replace(job, recipe=replace(job.recipe, wide_layers_frac=0.25))
    mixed = products.grouped_times(some, *(np.array([[x]]) for x in (32, 16, 8, 1)))[0]
    assert float(mixed.forward_s[0]) == 2 * 32 * 16 * 8


def test_gradient_sums_in_the_product_are_read_and_written():
    """FP32 sums: 4 bytes in, 4 out; without fusion the product writes its 16 bits."""
    assert products.summed_bytes(job_of()) == 0
    job = job_of(fuses_gradient_sums=True, gradient_bytes=4.0)
    assert products.summed_bytes(job) == 8
    narrow = replace(job, recipe=replace(job.recipe, gradient_bytes=2.0))
    assert products.summed_bytes(narrow) == 4


def test_operations_and_bytes_of_the_products():
    choice = cut()
    weights = 8 * 16 + 8 * 8 + 8 * 24 + 12 * 8
    assert float(products.product_flops(job_of(), parts(DENSE, choice), choice)[0]) == 2 * 32 * weights
    moved = 2 * (32 * (8 + 8 + 8 + 12) + weights) + 2 * 32 * (16 + 8 + 24 + 8)
    assert float(products.product_bytes(job_of(), parts(DENSE, choice), choice)[0]) == moved
    narrow = 1 * (32 * (8 + 8 + 8 + 12) + weights) + 2 * 32 * (16 + 8 + 24 + 8)
    assert float(products.product_bytes(job_of("fp8"), parts(DENSE, choice), choice)[0]) == narrow


# --- attention


def test_a_fused_kernel_and_its_gradient():
    forward, backward = attention.attention_times(job_of(), SOFTMAX, cut())
    assert (float(forward[0]), float(backward[0])) == (2 * 4 * 16 * 16, 2.5 * 2048)
    none = attention.attention_times(job_of(has_fused_attention=False), SOFTMAX, cut())
    assert [float(x[0]) for x in none] == [0, 0]
    latent = attention.attention_times(job_of(has_fused_attention=False), LATENT, cut())
    assert float(latent[0][0]) == 2048


def test_older_kernels_take_longer_on_newer_units():
    """FlashAttention-2 takes 1.5 to 2.0 times the 2,048 seconds of Hopper's own kernels, and Ampere's are its own."""
    old = job_of(has_native_attention=False)
    forward, backward = attention.attention_times(old, SOFTMAX, cut())
    assert float(forward[0]) == pytest.approx(2048 * 3**0.5)
    assert float(backward[0]) == pytest.approx(2.5 * 2048 * 3**0.5)
    assert 1.5 * 2048 < float(forward[0]) < 2.0 * 2048
    ampere = replace(old, cluster=replace(old.cluster, device=get_device("a100-sxm-80gb")))
    assert float(attention.attention_times(ampere, SOFTMAX, cut())[0][0]) == 2048
    recurrent = [float(attention.attention_times(j, RECURRENT, cut())[0][0]) for j in (old, job_of())]
    assert recurrent[0] == recurrent[1] > 0


def test_packed_samples_see_no_further_than_themselves():
    """4 samples of 4 tokens in each of 2 sequences; beyond what a rank of a ring holds nothing is packed."""
    forward, _ = attention.attention_times(job_of(packed_tokens=4.0), SOFTMAX, cut())
    assert float(forward[0]) == 2 * 4 * 4 * (4 * 4)
    whole, _ = attention.attention_times(job_of(packed_tokens=16.0), SOFTMAX, cut())
    assert float(whole[0]) == 2048
    ring, _ = attention.attention_times(job_of(packed_tokens=4.0), SOFTMAX, cut(cp=2))
    assert float(ring[0]) == 2 * 4 * 4 * 16 / 2
    too_long, _ = attention.attention_times(job_of(packed_tokens=9.0), SOFTMAX, cut(cp=2))
    assert float(too_long[0]) == 2 * 4 * (8 * 8 + 8 * 4)


def test_a_ring_reads_half_of_what_comes_round(asked):
    """Own 8 x 8, then 8 queries on 4 keys without a mask; without a causal order each step is as the first."""
    forward, _ = attention.attention_times(job_of(), SOFTMAX, cut(cp=2))
    assert float(forward[0]) == 2 * 4 * (8 * 8 + 8 * 4)
    assert [op.is_causal for op in asked] == [True, False]
    assert asked[1].window_tokens == 0
    blind, _ = attention.attention_times(job_of(), replace(SOFTMAX, is_causal=False), cut(cp=2))
    assert float(blind[0]) == 2 * 4 * (8 * 8 + 8 * 8)
    four, _ = attention.attention_times(job_of(), SOFTMAX, cut(cp=4))
    assert float(four[0]) == 2 * 4 * (4 * 4 + 3 * 4 * 2)


@pytest.mark.parametrize("mixer", [replace(SOFTMAX, window_tokens=5), replace(SOFTMAX, chunk_tokens=5)])
def test_windows_reach_into_few_other_ranks(mixer, asked):
    forward, _ = attention.attention_times(job_of(), mixer, cut(cp=2))
    assert float(forward[0]) == 2048 / 2
    assert int(asked[0].window_tokens) == 5
    attention.attention_times(job_of(seq=4), mixer, cut())
    assert int(asked[1].window_tokens) == 4


def test_heads_are_dealt_out_over_all_to_all_ranks(asked):
    forward, _ = attention.attention_times(job_of(), SOFTMAX, cut(cp=2, context_kind="all-to-all"))
    assert float(forward[0]) == 2 * 2 * 16 * 16
    assert (int(asked[0].num_heads[0]), int(asked[0].num_kv_heads[0])) == (2, 1)
    attention.attention_times(job_of(), SOFTMAX, cut(tp=2, cp=2, context_kind="all-to-all"))
    assert int(asked[1].num_heads[0]) == 1


def test_compressed_history_is_a_window_and_an_entry_for_every_few_tokens(asked):
    forward, _ = attention.attention_times(job_of(), COMPRESSED, cut())
    assert float(forward[0]) == 2048
    assert (int(asked[0].window_tokens), asked[0].num_kv_heads) == (3 + 16 // 4, 1)
    attention.attention_times(job_of(), replace(COMPRESSED, ratio=0), cut())
    assert int(asked[1].window_tokens) == 3


def test_a_recurrence_is_cut_by_heads(asked):
    forward, _ = attention.attention_times(job_of(), RECURRENT, cut(tp=2))
    op = asked[0]
    assert float(forward[0]) == 32 * 2
    assert (int(op.state_elements[0]), float(op.flops_per_token[0])) == (32, 48.0)
    assert (int(op.width[0]), int(op.conv_elements[0]), int(op.sequences[0])) == (8, 6, 2)
    attention.attention_times(job_of(), RECURRENT, cut(cp=2))
    assert int(asked[1].tokens[0]) == 16


def test_what_a_ring_merges_and_what_dealing_out_copies():
    """Output 8 wide, queries 8, keys and values 8: 3/4 of the later step's rows; copies move four words for three."""
    out, gradients = attention.context_streams(job_of(), SOFTMAX, cut(cp=2))
    assert float(out[0]) == pytest.approx((1 + 0.75) * 3 * 16 * 8)
    assert float(gradients[0]) == pytest.approx(0.75 * 3 * 16 * (8 + 8))
    dealt = attention.context_streams(job_of(), SOFTMAX, cut(cp=2, context_kind="all-to-all"))
    assert [float(x[0]) for x in dealt] == pytest.approx([4 / 3 * 3 * 16 * 24] * 2)
    latent = attention.context_streams(job_of(), LATENT, cut(cp=4))
    assert float(latent[0][0]) == pytest.approx((1 + 0.75 * 3) * 3 * 8 * 8)
    assert float(latent[1][0]) == pytest.approx(0.75 * 3 * 3 * 8 * (16 + 24))
    for mixer, choice in ((SOFTMAX, cut()), (RECURRENT, cut(cp=2)), (None, cut(cp=2))):
        assert [float(x[0]) for x in attention.context_streams(job_of(), mixer, choice)] == [0, 0]


@pytest.mark.parametrize(
    ("framework", "mixer", "ahead", "back", "drops"),
    [
        ({"is_fused": True}, SOFTMAX, 1.5, 2.0, 0.0),
        ({"is_fused": False}, SOFTMAX, 2.0, 3.0, 0.0),
        ({"is_fused": True}, replace(SOFTMAX, is_causal=False), 2.0, 3.0, 0.0),
        ({"is_fused": True, "has_dropout": True}, SOFTMAX, 1.5, 2.0, 2.5),
    ],
)
def test_scores_in_memory(framework, mixer, ahead, back, drops):
    """2 x 4 heads of 16 x 16 scores: two products 2 deep; a word a pass over them, and dropouts of 2.5."""
    found = attention.score_times(job_of(has_fused_attention=False, **framework), mixer, cut())
    scores = 8 * 16 * 16
    assert float(found.products_s[0]) == 2 * scores * 2 + 2 * scores * 2
    assert float(found.stream_forward_s[0]) == pytest.approx((ahead + drops) * scores)
    assert float(found.stream_backward_s[0]) == pytest.approx((back + drops) * scores)


def test_a_rank_of_a_context_has_its_rows_of_scores():
    found = attention.score_times(
        job_of(has_fused_attention=False), replace(SOFTMAX, value_head_size=3), cut(cp=2, tp=2)
    )
    scores = 2 * 2 * 8 * 16
    assert float(found.products_s[0]) == 2 * scores * 2 + 2 * scores * 3
    fused = attention.score_times(job_of(), SOFTMAX, cut())
    assert float(fused.products_s[0]) == float(fused.stream_forward_s[0]) == 0


@pytest.mark.parametrize(
    ("mixer", "width", "seen"),
    [
        (SOFTMAX, 4, 8.5),  # (1 + 2 + ... + 16) / 16
        (replace(SOFTMAX, value_head_size=3), 5, 8.5),
        (replace(SOFTMAX, is_causal=False), 4, 16.0),
        (replace(SOFTMAX, window_tokens=4), 4, (1 + 2 + 3 + 13 * 4) / 16),
        (replace(SOFTMAX, chunk_tokens=4), 4, (1 + 2 + 3 + 13 * 4) / 16),
        (replace(SOFTMAX, top_tokens=4), 4, (1 + 2 + 3 + 13 * 4) / 16),
        (replace(SOFTMAX, window_tokens=15), 4, (120 + 15) / 16),
        (replace(SOFTMAX, window_tokens=16), 4, 8.5),
        (LATENT, 6, 8.5),
        (replace(LATENT, top_tokens=4), 6, (1 + 2 + 3 + 13 * 4) / 16),
        (COMPRESSED, 4, 3 + 8 / 4),
        (replace(COMPRESSED, ratio=0), 4, 3.0),
        (replace(COMPRESSED, window_tokens=7), 4, 8.0),
    ],
)
def test_operations_that_a_count_credits(mixer, width, seen):
    found = attention.attention_flops(job_of(), mixer, cut(cp=2, tp=2))
    assert float(found[0]) == pytest.approx(2 * 16 * 2 * width * seen)


def test_operations_of_a_recurrence():
    assert float(attention.attention_flops(job_of(), RECURRENT, cut(tp=2))[0]) == 32 * 96 * 2 / 4


# --- routed experts: 32 tokens to 2 of 4 experts, 10 wide


def test_rows_and_columns_of_a_rank():
    x = routed(job_of(), EXPERTS, cut(tp=2, ep=2, etp=2))
    assert (float(x.own_tokens[0]), float(x.rows[0])) == (16, 16 * 2 * 2)
    assert (int(x.local_experts[0]), int(x.ffn_size[0]), int(x.expert_rows[0])) == (2, 5, 32)
    pieces = routed(job_of(), EXPERTS, cut(), 4)
    assert (float(pieces.own_tokens[0]), float(pieces.rows[0])) == (8, 16)
    few = routed(job_of(seq=1), EXPERTS, cut(micro_batch=1, tp=8, ep=2))
    assert int(few.expert_rows[0]) == 1


def test_products_of_the_experts():
    """64 rows over 4 experts: 16 rows of 8 by 20 and of 10 by 8 each; cut into pieces they follow each other."""
    times = expert_times(job_of(), EXPERTS, cut())
    assert float(times.forward_s[0]) == 2 * 64 * (8 * 20 + 10 * 8) == float(times.weight_gradient_s[0])
    assert float(expert_times(job_of(), EXPERTS, cut(), 4).forward_s[0]) == float(times.forward_s[0])
    plain = expert_times(job_of(), replace(EXPERTS, is_gated=False), cut())
    assert float(plain.forward_s[0]) == 2 * 64 * (8 * 10 + 10 * 8)


def sides(found):
    return [float(found.forward_s[0]), float(found.backward_s[0])]


@pytest.mark.parametrize(
    ("dispatcher", "degrees", "moved"),
    [
        ("all-gather", {}, 2 * 64),
        ("deepep", {"ep": 2}, 2 * 64),
        ("all-to-all", {}, 2 * 64),
        ("all-to-all", {"ep": 2}, 2 * 64 + 2 * 64),  # sorted again by expert of the rank
        ("all-to-all", {"ep": 4}, 2 * 64),  # one expert a rank: nothing to sort
    ],
)
def test_rows_are_put_in_order_and_back(dispatcher, degrees, moved):
    """2 words for 3 a row of 8; then the gated activation of 64 rows of 10."""
    found = sides(expert_streams(job_of(dispatcher=dispatcher), EXPERTS, cut(**degrees)))
    gated = 3 * 64 * 10
    assert found == pytest.approx([2 / 3 * 3 * moved * 8 + gated, 2 / 3 * 3 * moved * 8 + 5 / 3 * gated])
    fused = sides(expert_streams(job_of(dispatcher=dispatcher, fuses_experts=True), EXPERTS, cut(**degrees)))
    assert fused == pytest.approx([2 / 3 * 3 * moved * 8] * 2)


def test_activations_limits_and_biases_of_experts():
    base = sides(expert_streams(job_of(), EXPERTS, cut()))
    plain = sides(expert_streams(job_of(), replace(EXPERTS, is_gated=False), cut()))
    assert np.subtract(plain, base) == pytest.approx([-640, 3 * 640 - 5 * 640])
    clamped = sides(expert_streams(job_of(), replace(EXPERTS, is_clamped=True), cut()))
    assert np.subtract(clamped, base) == pytest.approx([8 * 640, 10 * 640])
    biased = sides(expert_streams(job_of(), replace(EXPERTS, has_bias=True), cut()))
    sums = 3 * 64 * 8
    assert np.subtract(biased, base) == pytest.approx([(14 + 14) / 6 * sums, (30 + 10) / 6 * sums])
    assert float(activation_s(job_of(), EXPERTS, cut())[0]) == 3 * 640
    assert float(activation_s(job_of(), replace(EXPERTS, is_gated=False), cut())[0]) == 3 * 640
    assert float(activation_s(job_of(), replace(EXPERTS, is_clamped=True), cut())[0]) == (3 + 8) * 640


def test_casts_of_experts():
    """64 rows: 8 in and 10 between the products; back 20 and 8; fused products cast between them themselves."""
    assert sides(expert_casts(job_of("fp8"), EXPERTS, cut())) == pytest.approx([4 / 3 * 64 * 18, 4 / 3 * 64 * 28])
    fused = sides(expert_casts(job_of("fp8", fuses_experts=True), EXPERTS, cut()))
    assert fused == pytest.approx([4 / 3 * 64 * 8, 4 / 3 * 64 * 8])
    job = job_of("fp8")
    some = replace(job, recipe=replace(job.recipe, wide_layers_frac=0.25))
    assert sides(expert_casts(some, EXPERTS, cut())) == pytest.approx([64 * 18, 64 * 28])
    plain = sides(expert_casts(job_of("fp8"), replace(EXPERTS, is_gated=False), cut()))
    assert plain[1] == pytest.approx(4 / 3 * 64 * 18)


# --- how a job is cut


def test_devices_and_copies_of_a_layout():
    layout = TrainingLayout(tp=2, cp=3, pp=5, dp=7, ep=2, etp=1)
    assert (layout.num_devices, layout.num_data_ranks, layout.num_expert_copies) == (210, 21, 21)
    assert TrainingLayout(tp=4, dp=2, ep=4, etp=2).num_expert_copies == 1
    assert TrainingLayout(ep=4).num_expert_copies == 1


def test_experts_are_cut_as_the_ranks_allow():
    assert expert_cut(False, 8, 64, 2) == 1
    assert expert_cut(True, 8, 64, 2) == 8
    assert expert_cut(True, 8, 64, 16) == 4  # 64 ranks over 16 are 4
    assert expert_cut(True, 6, 12, 4) == 3  # 2 would leave 12 / 8, 6 12 / 24; 3 divides
    assert expert_cut(True, 4, 3, 2) == 1
