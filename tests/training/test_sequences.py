"""Sequences of many lengths: costs by hand, gangs that end together, degrees that hold, and hybrid against static."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.training.sequences.balance import RankGroup, finish_s, packed, spread
from orrery.training.sequences.degree import least_degree
from orrery.training.sequences.lengths import LongTail
from orrery.training.sequences.step import StepTime, hybrid_step, static_step
from orrery.training.sequences.trainer import Trainer, attention_s, products_s, ring_step_s, split_work

K = 1024
TRAINER = Trainer(model=get_model("llama-7b"), device=get_device("h100-sxm"), num_devices=256)
TEXTS = LongTail(median_tokens=1500.0, spread_ratio=2.0, most_tokens=1024 * K)


def ints(*values: int) -> np.ndarray:
    """Lengths."""
    return np.array(values, dtype=np.int64)


def test_a_batch_has_its_tokens_its_median_and_its_limit():
    lengths = TEXTS.batch(50e6, seed=1)
    assert lengths.sum() == 50_000_000
    assert np.median(lengths) == pytest.approx(1500, rel=0.05)
    assert 1 <= lengths.min() <= lengths.max() <= 1024 * K
    assert (TEXTS.batch(1e6, seed=2) == TEXTS.batch(1e6, seed=2)).all()
    longest = np.sort(lengths)[::-1]
    assert longest[: len(longest) // 20].sum() > 0.5 * lengths.sum()  # one in twenty holds most of the text
    with pytest.raises(ScenarioError, match="lengths"):
        LongTail(median_tokens=0.0, spread_ratio=1.0, most_tokens=8)


def test_a_token_keeps_what_its_layer_needs():
    elements = 2 * 4096 + 4 * 4096 + 3 * 11008
    assert TRAINER.token_bytes == 32 * elements * 2 / 8
    room = 0.8 * TRAINER.device.memory_capacity_bytes - 16 * TRAINER.model.num_parameters / 256
    assert TRAINER.capacity_tokens == int(room / TRAINER.token_bytes)


def test_ranks_share_products_and_attention_evenly():
    alone_s = float(attention_s(TRAINER, ints(64 * K)).sum())
    one, four = (split_work(TRAINER, 64 * K, alone_s, c) for c in (1, 4))
    assert one.ring_s == 0.0
    assert four.attention_s == pytest.approx(one.attention_s / 4)
    assert four.products_s == pytest.approx(one.products_s / 4, rel=0.05)


def test_the_ring_is_waited_for_only_where_attention_is_short():
    long, short = split_work(TRAINER, 512 * K, 100.0, 8), split_work(TRAINER, 512 * K, 0.0, 8)
    assert long.ring_s == 0.0
    assert short.ring_s == pytest.approx(7 * 3.0 * ring_step_s(TRAINER, 64 * K, 8))


def test_a_ring_inside_a_node_is_faster():
    near = Trainer(model=TRAINER.model, device=TRAINER.device, num_devices=256, tp=2)
    assert ring_step_s(near, 8 * K, 4) < ring_step_s(near, 8 * K, 8)


def test_attention_grows_with_the_square_and_products_with_the_length():
    times = attention_s(TRAINER, ints(128 * K, 256 * K))
    assert times[1] / times[0] == pytest.approx(4.0, rel=0.1)
    assert products_s(TRAINER, 64 * K) / products_s(TRAINER, 32 * K) == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("tokens", [1000, 150 * K, 300 * K, 1024 * K])
def test_the_degree_is_the_least_that_holds_the_sequence(tokens):
    alone = float(attention_s(TRAINER, ints(tokens))[0])
    retained = least_degree(TRAINER, tokens, alone, offloads=False)
    assert tokens * TRAINER.token_bytes / retained <= TRAINER.kept_bytes
    assert retained == 1 or tokens * TRAINER.token_bytes / (retained - 1) > TRAINER.kept_bytes
    given_away = least_degree(TRAINER, tokens, alone)
    hidden = TRAINER.device.host.each_way_bytes_per_s * split_work(TRAINER, tokens, alone, 1).forward_s
    for degree, fits in ((given_away, True), (given_away - 1, False)):
        if degree:
            out = min(hidden / degree, TRAINER.host_bytes)
            assert (tokens * TRAINER.token_bytes / degree - out <= TRAINER.kept_bytes * (1 + 1e-9)) == fits
    assert given_away <= retained


def test_the_host_takes_no_more_than_its_memory_and_its_link():
    slow = Trainer(model=TRAINER.model, device=TRAINER.device, num_devices=256, host_bytes=0.0)
    alone = float(attention_s(slow, ints(1024 * K))[0])
    assert least_degree(slow, 1024 * K, alone) == least_degree(slow, 1024 * K, alone, offloads=False)
    assert least_degree(TRAINER, 1024 * K, alone) < least_degree(slow, 1024 * K, alone)
    assert least_degree(TRAINER, 1024 * K, 0.0) > least_degree(TRAINER, 1024 * K, alone)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 100), min_size=1, max_size=40), st.integers(100, 150), st.integers(1, 6))
def test_packing_keeps_every_sequence_once_and_within_the_limit(lengths, limit, bins):
    lengths = np.array(lengths)
    for found in (packed(lengths, limit), spread(lengths**2.0, lengths, bins, limit)):
        assert sorted(np.concatenate(found).tolist()) == list(range(len(lengths)))
        assert all(lengths[one].sum() <= limit for one in found)


def test_spreading_evens_out_costs():
    costs = np.array([9.0, 8.0, 7.0, 3.0, 2.0, 1.0])
    found = spread(costs, np.ones(6, dtype=np.int64), 3, 10)
    assert sorted(costs[one].sum() for one in found) == [10.0, 10.0, 10.0]


def test_what_does_not_fit_says_so():
    with pytest.raises(ScenarioError, match="200 tokens does not fit 100"):
        packed(ints(200), 100)
    with pytest.raises(ScenarioError, match="needs 3 ranks of 2"):
        finish_s([RankGroup(time_s=1.0, degree=3)], 2)
    few = Trainer(model=TRAINER.model, device=TRAINER.device, num_devices=16)
    with pytest.raises(ScenarioError, match="static mesh"):
        static_step(few, ints(1000), 4096 * K)


def test_gangs_wait_for_all_their_ranks():
    done = finish_s(
        [RankGroup(time_s=4.0, degree=1), RankGroup(time_s=3.0, degree=2), RankGroup(time_s=2.0, degree=3)], 3
    )
    assert done.tolist() == [6.0, 6.0, 6.0]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=7), st.integers(1, 3))
def test_longest_first_is_within_a_third_of_the_best(times, ranks):
    found = finish_s([RankGroup(time_s=float(x), degree=1) for x in times], ranks).max()
    best = min(
        max(sum(t for t, r in zip(times, where, strict=True) if r == rank) for rank in range(ranks))
        for where in product(range(ranks), repeat=len(times))
    )
    assert best <= found <= best * (4.0 / 3.0 - 1.0 / (3.0 * ranks)) + 1e-9  # [graham-1969]


def parts_add_up(step: StepTime) -> None:
    """Every part is a time, and idle time is not less than nothing."""
    parts = (step.products_s, step.attention_s, step.ring_s, step.idle_s, step.sync_s)
    assert all(x >= -1e-9 for x in parts)
    assert step.time_s == pytest.approx(sum(parts))


@pytest.mark.parametrize("context", [256 * K, 1024 * K])
def test_ranks_by_length_beat_a_mesh_for_the_longest(context):
    lengths = LongTail(median_tokens=1500.0, spread_ratio=2.0, most_tokens=context).batch(10e6)
    static, hybrid = static_step(TRAINER, lengths, context), hybrid_step(TRAINER, lengths)
    for step in (static, hybrid):
        parts_add_up(step)
    assert hybrid.time_s < static.time_s
    assert hybrid.ring_s < static.ring_s
    assert hybrid.attention_s == pytest.approx(static.attention_s)
    assert hybrid.time_s <= hybrid_step(TRAINER, lengths, offloads=False).time_s * (1 + 1e-9)
    assert hybrid.time_s < hybrid_step(TRAINER, lengths, balances=False).time_s


def test_the_gain_grows_with_the_context():
    gains = []
    for context in (256 * K, 1024 * K):
        lengths = LongTail(median_tokens=1500.0, spread_ratio=2.0, most_tokens=context).batch(10e6)
        gains.append(static_step(TRAINER, lengths, context).time_s / hybrid_step(TRAINER, lengths).time_s)
    assert gains[1] > gains[0] > 1.2


def test_sequences_of_one_length_gain_little():
    lengths = np.full(64, 128 * K)
    static, hybrid = static_step(TRAINER, lengths, 128 * K), hybrid_step(TRAINER, lengths)
    assert static.most_degree == 1
    assert hybrid.time_s == pytest.approx(static.time_s, rel=0.01)


def test_mixtures_of_experts_are_timed_by_their_experts():
    routed = Trainer(model=get_model("mixtral-8x7b"), device=TRAINER.device, num_devices=256)
    dense = products_s(TRAINER, 32 * K)
    active = routed.model.num_active_parameters / TRAINER.model.num_active_parameters
    assert products_s(routed, 32 * K) / dense == pytest.approx(active, rel=0.4)
