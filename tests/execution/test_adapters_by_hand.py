"""Low-rank additions counted by hand on the toy layer, and copies of sequence shards; see ``toy_layer``."""

import pytest
from toy_layer import DENSE, LINEARS, cut, job_of, parts, seconds

from orrery import kernels
from orrery.execution.train.adapters import adapter_times
from orrery.execution.train.passes import layer_streams

TOKENS, RANK = 2 * 16, 16


@pytest.fixture(autouse=True)
def words_are_seconds(monkeypatch):
    monkeypatch.setattr(kernels, "predict", lambda op, device, engine: seconds(op))


def added(tp=1, **given):
    choice = cut(tp=tp)
    work, streams = adapter_times(job_of(task="lora", **given), parts(DENSE, choice), choice)
    return tuple(float(x[0]) for x in (work.forward_s, work.input_gradient_s, work.weight_gradient_s)), (
        float(streams.forward_s[0]),
        float(streams.backward_s[0]),
    )


def test_two_thin_products_and_their_gradients_beside_each_layer():
    """8 in and 16 out: 2 x 32 tokens x 16 (8 + 16) operations, the same for both gradients."""
    work, _ = added(adapter_targets="qkv")
    assert work == (2.0 * TOKENS * RANK * 24,) * 3
    every, _ = added(adapter_targets="all-linear")
    widths = sum(x.in_features + x.out_features for x in LINEARS)
    assert every == (2.0 * TOKENS * RANK * widths,) * 3
    attention, _ = added(adapter_targets="attention")
    assert attention == (2.0 * TOKENS * RANK * (24 + 16),) * 3
    halves, _ = added(tp=2, adapter_targets="qkv")
    assert halves == (2.0 * TOKENS * RANK * (8 + 8),) * 3, "16 outputs are cut in two"


def test_words_that_scaling_and_summing_move():
    """Out of 16: scaled 2, summed 3, and the gradient scaled 2; into 8: the input's gradients of both branches 3."""
    _, apart = added(adapter_targets="qkv", is_fused=False)
    assert apart == (TOKENS * 16 * (2 + 3), TOKENS * (16 * 2 + 8 * 3))
    _, fused = added(adapter_targets="qkv", is_fused=True)
    assert fused == (TOKENS * 16 * 3, TOKENS * (16 * 2 + 8 * 3))
    _, dropped = added(adapter_targets="qkv", is_fused=True, drops_adapted=True)  # in, out and half a word of mask
    assert dropped == pytest.approx((TOKENS * (16 * 3 + 8 * 2.5), TOKENS * (16 * 2 + 8 * 5.5)))


@pytest.mark.parametrize("task", ["pretrain", "adapter", "full_finetune"])
def test_nothing_is_added_where_no_low_rank_weights_learn(task):
    work, streams = adapter_times(job_of(task=task), parts(DENSE, cut()), cut())
    assert work.forward_s[0] == work.weight_gradient_s[0] == streams.forward_s[0] == streams.backward_s[0] == 0


def copied(tp=2, is_sequence_parallel=True, **given):
    """Words that a layer moves more, forward and backward, where sequence shards are copied."""
    choice = cut(tp=tp, is_sequence_parallel=is_sequence_parallel)
    with_copies, without = (
        layer_streams(job_of(copies_sequence_shards=copies, **given), DENSE, parts(DENSE, choice), choice)
        for copies in (True, False)
    )
    return tuple(float(getattr(with_copies, n)[0] - getattr(without, n)[0]) for n in ("forward_s", "backward_s"))


def test_sequence_shards_are_read_and_written_once_more_at_every_collective():
    """Two gathers and two scatters of 32 x 8 elements, 2 words each."""
    assert copied() == pytest.approx((4 * 2 * TOKENS * 8,) * 2)
    assert copied(tp=1) == copied(is_sequence_parallel=False) == copied(overlaps_tensor=True) == (0, 0)
