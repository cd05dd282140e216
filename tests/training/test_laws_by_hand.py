"""Small laws of the training floor, each on numbers that can be read off."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.execution.train.layout import TrainingLayout
from orrery.training.columns import columns_of
from orrery.training.faults.interval import best_s, young_s
from orrery.training.graphs.graph import planted_graph
from orrery.training.partition.traffic import Exchange
from orrery.training.recovery import measured
from orrery.training.recovery.strategies import computed_twice, from_neighbours, rolled_back
from orrery.training.reshape.shards import flat_share, stage_of, unflattened
from orrery.training.reshape.storage import Packing, Storage
from orrery.training.sequences import degree
from orrery.training.sequences.balance import RankGroup, finish_s, spread
from orrery.training.small.flows import mixture
from orrery.training.small.pricing import Price, mean, price
from orrery.training.small.stale import OuterKnobs, _momentum


def test_copies_of_experts():
    """24 ranks of a stage over 3 shares of experts, each cut in two, are 4 copies; never fewer than one."""
    x = columns_of([TrainingLayout(tp=2, cp=3, dp=4, ep=3, etp=2), TrainingLayout(dp=2, ep=4), TrainingLayout(dp=8)])
    assert x.expert_copies.tolist() == [4, 1, 8]


@pytest.mark.parametrize(("kind", "passes"), [("all_reduce", 2), ("all_gather", 1), ("reduce_scatter", 1)])
def test_bytes_that_reach_a_device(kind, passes):
    wire = SimpleNamespace(sent_bytes=lambda elements: 2 * elements)
    exchange = Exchange(what="gradients", kind=kind, num_devices=4, stride=1, elements=100.0, wire=wire)
    assert exchange.message_bytes == 200
    assert exchange.received_bytes == passes * 3 / 4 * 200


# --- saving and failing


def test_the_work_between_saves_that_is_best():
    """sqrt(2 C M) of Young; the exact one solves 1 - x - e^(-x - C/M) = 0 for x of M."""
    assert young_s(8.0, 100.0) == 40
    assert best_s(0.0, 100.0) == 0
    for blocked_s in (1e-6, 0.5, 8.0, 90.0, 300.0):
        x = best_s(blocked_s, 100.0) / 100
        assert math.exp(-x - blocked_s / 100) == pytest.approx(1 - x, rel=1e-12)


FAULTS = SimpleNamespace(step_failure_frac=lambda step_s: 0.01 * step_s, reload_s=3.0)


@pytest.fixture
def outcomes(monkeypatch):
    """What strategies come to: steps, seconds of one, failures, and seconds of saving."""
    from orrery.training.recovery import strategies

    monkeypatch.setattr(
        strategies, "_outcome", lambda faults, steps, step_s, failures, extra_s: (steps, step_s, failures, extra_s)
    )


def test_rolled_back_to_the_last_save(outcomes):
    """10 of 100 steps fail: 5 in a row go well after (0.9^-5 - 1) failed tries; twice, and 3 more steps once."""
    five, three = 0.9**-5 - 1, 0.9**-3 - 1
    steps, step_s, failures, saved_s = rolled_back(FAULTS, 13, 10.0, 5, save_s=4.0)
    assert steps == pytest.approx((2 * five + three) / 0.1)
    assert failures == pytest.approx(2 * five + three)
    assert (step_s, saved_s) == (10, 8)
    even = rolled_back(FAULTS, 10, 10.0, 5, save_s=4.0)
    assert even[0] == pytest.approx(2 * five / 0.1)
    never = SimpleNamespace(step_failure_frac=lambda step_s: 0.0)
    assert rolled_back(never, 13, 10.0, 5, save_s=4.0) == (13, 10, 0, 8)
    with pytest.raises(OutOfRange, match="save more often"):
        rolled_back(FAULTS, 13, 100.0, 5)


def test_computed_twice_and_made_of_neighbours(outcomes):
    """A second forward pass makes a step of 12 s take 16; 0.12 x 5 steps set back leave 0.4 of them."""
    assert computed_twice(FAULTS, 100, 12.0) == pytest.approx((100, 16, 16, 0))
    assert computed_twice(FAULTS, 100, 12.0, step_ratio=1.5) == pytest.approx((100, 18, 18, 0))
    assert from_neighbours(FAULTS, 100, 12.0, 5.0) == pytest.approx((250, 12, 30, 0))
    assert from_neighbours(FAULTS, 100, 12.0, 5.0, steps_ratio=2.0) == pytest.approx((500, 12, 60, 0))
    with pytest.raises(OutOfRange, match="stands still"):
        from_neighbours(FAULTS, 100, 12.5, 8.0)


class Model:
    """A loss of 2, which a lost stage doubles and each step lowers by 0.5."""

    steps = 7

    def __init__(self, loss=2.0):
        self.now, self.seen = loss, []

    def loss(self, *batch):
        return self.now

    def copy(self):
        made = Model(self.now)
        made.seen = self.seen
        return made

    def step(self, batch, swaps_ends):
        self.seen.append(batch)
        self.now -= 0.5


def test_setbacks_are_counted_in_steps(monkeypatch):
    def lost(model, stage, way):
        model.now *= 2

    monkeypatch.setattr(measured, "replace_stage", lost)
    whole = Model()
    run = SimpleNamespace(models=[whole], validation=(), batches=[(i,) for i in range(10)])
    (found,) = measured.setbacks(run, [1])
    assert (found.stage, found.after_steps, found.num_steps, found.loss_jump_ratio) == (1, 7, 4, 2)
    assert whole.seen == [7, 8, 9, 0]  # the batches that come next, round and round
    (cut,) = measured.setbacks(run, [1], most_steps=2)
    assert cut.num_steps == 2
    (thrice,) = measured.setbacks(run, [1], every=3)
    assert thrice.num_steps == 6


# --- reshaping


def test_flat_shares_are_padded_and_come_back():
    flat = np.arange(1, 8)
    shares = [flat_share(flat, 3, i) for i in range(3)]
    assert [s.tolist() for s in shares] == [[1, 2, 3], [4, 5, 6], [7, 0, 0]]
    first, second = unflattened(shares, [(2, 2), (3,)])
    assert (first.tolist(), second.tolist()) == ([[1, 2], [3, 4]], [5, 6, 7])
    assert flat_share(np.arange(6), 3, 2).tolist() == [4, 5]


def test_stages_are_contiguous():
    parameters = [SimpleNamespace(stage_position=i) for i in range(5)]
    assert [stage_of(p, parameters, 2) for p in parameters] == [0, 0, 0, 1, 1]
    assert [stage_of(p, parameters, 5) for p in parameters] == [0, 1, 2, 3, 4]


def test_storage_and_packing():
    """2 nodes of 3 bytes a second, 4 a second of all: 24 bytes take 6 s. 4 ranks save, 8 load 2 stages of 5 tensors."""
    assert Storage(num_nodes=2, node_bytes_per_s=3.0, all_bytes_per_s=4.0).moved_s(24) == 6
    assert Storage(num_nodes=2, node_bytes_per_s=1.5).moved_s(24) == 8
    assert Storage(num_nodes=1, node_bytes_per_s=0.5, all_bytes_per_s=0.5, gather_bytes_per_s=0.5).moved_s(1) == 2
    for wrong in ({"num_nodes": 0}, {"node_bytes_per_s": 0.0}, {"all_bytes_per_s": 0.0}, {"gather_bytes_per_s": 0.0}):
        with pytest.raises(ScenarioError, match="above zero"):
            Storage(**({"num_nodes": 1, "node_bytes_per_s": 1.0} | wrong))
    packing = Packing(
        num_source_ranks=4, num_target_ranks=8, num_tensors=5, num_target_stages=2, process_bytes_per_s=10.0, file_s=0.5
    )
    assert packing.seconds(80.0, 4, 12) == 80 / 4 / 10 + 12 / 4 * 0.5
    from orrery.training.reshape.storage import ATOM_BYTES, SHARD_BYTES

    times = packing.times(100.0)
    assert times.save_s == pytest.approx(SHARD_BYTES * 100 / 4 / 10 + 0.5)
    assert times.convert_s == pytest.approx((SHARD_BYTES + ATOM_BYTES) * 100 / 8 / 10 + (4 + 15) / 8 * 0.5)
    assert times.load_s == pytest.approx(ATOM_BYTES * 100 / 8 / 10 + 15 / 2 * 0.5)


# --- sequences


def test_costs_are_spread_into_bins_that_hold_the_tokens():
    """Longest first into the least loaded; what fits nowhere opens a bin."""
    costs, tokens = np.array([2.0, 5.0, 4.0, 3.0]), np.array([1, 1, 1, 1])
    assert [b.tolist() for b in spread(costs, tokens, 2, 10)] == [[1, 0], [2, 3]]
    limited = spread(costs, np.array([2, 5, 4, 3]), 2, 5)
    assert [b.tolist() for b in limited] == [[1], [2], [3, 0]]
    full = spread(np.array([5.0, 4.0]), np.array([5, 5]), 1, 5)
    assert [b.tolist() for b in full] == [[0], [1]]


def test_gangs_take_the_ranks_that_are_free_soonest():
    """4 s on 2 of 3 ranks, then 3 s on the third, then 1 s on two: from 4 s on the third and one of the others."""
    gangs = [RankGroup(time_s=1.0, degree=2), RankGroup(time_s=4.0, degree=2), RankGroup(time_s=3.0, degree=1)]
    assert sorted(finish_s(gangs, 3).tolist()) == [4, 5, 5]
    with pytest.raises(ScenarioError, match="needs 4 ranks of 3"):
        finish_s([RankGroup(time_s=1.0, degree=4)], 3)


def test_ranks_that_hold_a_sequence(monkeypatch):
    """1000 tokens of 10 bytes: 12 ranks keep 900 each; 40 s of computing hide 4000 bytes: 7; 2000 on each host: 4."""
    asked = []

    def split(trainer, tokens, forward_attention_s, ranks):
        asked.append((tokens, forward_attention_s, ranks))
        return SimpleNamespace(forward_s=40.0)

    monkeypatch.setattr(degree, "split_work", split)

    def trainer(host_bytes=2000.0, link=100.0):
        device = SimpleNamespace(host=SimpleNamespace(each_way_bytes_per_s=link))
        return SimpleNamespace(token_bytes=10.0, kept_bytes=900.0, host_bytes=host_bytes, device=device)

    assert degree.least_degree(trainer(), 1000, 3.0, offloads=False) == 12
    assert degree.least_degree(trainer(), 1000, 3.0) == 7
    assert asked[-1] == (1000, 3.0, 1)
    assert degree.least_degree(trainer(host_bytes=100.0), 1000, 3.0) == 10
    assert degree.least_degree(trainer(link=1e9), 1000, 3.0) == 4
    assert degree.least_degree(trainer(link=1e9), 1, 3.0) == degree.least_degree(trainer(), 1, 3.0, offloads=False) == 1


# --- small networks


def test_planted_graphs_take_shares_from_none_to_all():
    for share in (0.0, 1.0):
        assert planted_graph(300, 8.0, num_communities=3, inside_frac=share, seed=1).num_vertices == 300
    for wrong in ({"inside_frac": -0.01}, {"inside_frac": 1.01}, {"num_communities": 0}, {"exponent": 1.0}):
        settings = {"num_communities": 3, "inside_frac": 0.5} | wrong
        with pytest.raises(ScenarioError, match="write a share from 0 to 1"):
            planted_graph(300, 8.0, **settings)


def test_components_near_each_other_share_a_cluster():
    """Of two clusters every mean of the one lies before every mean of the other along the direction of most spread."""
    found = mixture(8, 2, 0.3, 2, 0, True)
    centred = found.means - found.means.mean(axis=0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    assert along[found.cluster == 0].max() < along[found.cluster == 1].min()
    dealt = mixture(8, 2, 0.3, 2, 0, False)
    assert dealt.cluster.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    np.testing.assert_array_equal(dealt.means, found.means)


def test_outer_momentum_is_penalised_and_cut():
    """A delta of length 5 that comes after a move of 10: divided by 3; the sum is cut to twice its length."""
    plain = OuterKnobs(momentum_ratio=0.5, is_penalised=False, clip_ratio=100.0)
    late = OuterKnobs(momentum_ratio=0.5, is_penalised=True, clip_ratio=100.0)
    momentum, arrived = np.array([2.0, 4.0]), np.array([3.0, 4.0])
    np.testing.assert_allclose(_momentum(momentum, arrived, 10.0, plain), [4, 6])
    np.testing.assert_allclose(_momentum(momentum, arrived, 10.0, late), [1 + 1, 2 + 4 / 3])
    np.testing.assert_allclose(_momentum(momentum, np.zeros(2), 10.0, late), [1, 2])
    cut = OuterKnobs(momentum_ratio=0.5, is_penalised=False, clip_ratio=1.0)
    found = _momentum(momentum, arrived, 10.0, cut)
    np.testing.assert_allclose(found, np.array([4, 6]) * 5 / math.sqrt(52))


def test_prices_of_steps(monkeypatch):
    """Two kernels of 1 and 2 s; launches of 0.5 s each; a host of 10 s, while which the device idles at 7 W."""
    from orrery.training.small import pricing

    timings = [SimpleNamespace(time_s=1.0, flops=10.0, bytes=4.0), SimpleNamespace(time_s=2.0, flops=20.0, bytes=6.0)]
    monkeypatch.setattr(pricing.kernels, "predict", lambda op, device: timings[op])
    monkeypatch.setattr(pricing, "energy_j", lambda device, format, times, flops, moved: 100 * times)
    work = SimpleNamespace(ops=[0, 1], num_launches=2, activation_bytes=8.0, state_bytes=9.0)
    device = SimpleNamespace(idle_power_w=7.0)
    host = price(work, device, host_s=10.0, launch_s=0.5)
    assert (host.time_s, host.device_s, host.flops, host.bytes) == (10, 3, 30, 10)
    assert host.energy_j == 300 + 7 * 7
    assert (host.activation_bytes, host.state_bytes) == (8, 9)
    assert price(work, device, launch_s=2.5).time_s == 5
    assert price(work, device, launch_s=0.5).energy_j == 300
    both = mean([host, host.times(3.0)])
    assert (both.time_s, both.device_s, both.energy_j, both.flops, both.bytes) == (20, 6, 698, 60, 20)
    assert isinstance(both, Price)
    assert (both.activation_bytes, both.state_bytes) == (8, 9)
