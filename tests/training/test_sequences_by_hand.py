"""Sequences on a trainer whose pieces take round times: work of a rank, rings, degrees, packing, and steps."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.training.sequences import degree, lengths, trainer
from orrery.training.sequences import step as stepping
from orrery.training.sequences.balance import RankGroup, finish_s, packed, spread
from orrery.training.sequences.degree import least_degree
from orrery.training.sequences.lengths import LongTail
from orrery.training.sequences.step import (
    StepTime,
    _dealt,
    _fair_share_s,
    _raised,
    _short_works,
    hybrid_step,
    static_step,
)
from orrery.training.sequences.trainer import Trainer, Work, split_work


def ints(*values):
    return np.array(values, dtype=np.int64)


MIXER = SimpleNamespace(num_heads=16, num_kv_heads=4, head_size=8, value_head_size=6, window_tokens=0)
LINEARS = (
    SimpleNamespace(out_features=90, in_features=40, shard="column"),
    SimpleNamespace(out_features=40, in_features=90, shard="row"),
    SimpleNamespace(out_features=7, in_features=9, shard="none"),
)
BLOCK = SimpleNamespace(mixer=MIXER, linears=LINEARS, experts=None, activation_elements=100, count=3, name="layer")
HEAD = SimpleNamespace(out_features=33, in_features=40, shard="vocab")
MODEL = SimpleNamespace(blocks=(BLOCK,), head=HEAD, hidden_size=40, num_parameters=6400, name="small")
DEVICE = SimpleNamespace(memory_capacity_bytes=10_000.0, host=SimpleNamespace(each_way_bytes_per_s=50.0))
TRAINER = Trainer(model=MODEL, device=DEVICE, num_devices=32, tp=4, host_bytes=1000.0)


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """Attention of the plain kind is what the made-up block has; nothing is kept from test to test."""
    monkeypatch.setattr(trainer, "SoftmaxAttention", SimpleNamespace)
    for name in ("products_s", "ring_step_s"):
        monkeypatch.setattr(trainer, name, getattr(trainer, name).__wrapped__)


def test_memory_of_a_rank():
    """16 bytes of state for each of 6400 parameters over 32 devices are 3200 of 10,000 bytes; a fifth is for other
    things: 4800. A token keeps two residuals of 40, 2 x 16 x 8 and 2 x 4 x 8 of heads and three of 100, in three layers
    of two bytes over four devices: 1050."""
    assert TRAINER.num_ranks == 8
    assert TRAINER.kept_bytes == pytest.approx(4800.0)
    assert TRAINER.token_bytes == pytest.approx(3 * (80 + 256 + 64 + 300) * 2 / 4)
    assert TRAINER.capacity_tokens == 4
    routed = SimpleNamespace(experts_per_token=2, ffn_size=50)
    experts = replace_block(experts=routed)
    assert experts.token_bytes == pytest.approx(3 * (80 + 256 + 64 + 3 * 200) * 2 / 4)
    with pytest.raises(ScenarioError, match="no room"):
        _ = replace(TRAINER, num_devices=12).kept_bytes
    usual = Trainer(model=MODEL, device=DEVICE, num_devices=32)
    assert (usual.tp, usual.devices_per_node, usual.reserve_frac, usual.host_bytes) == (8, 8, 0.2, 200e9)


def replace_block(**given):
    block = SimpleNamespace(**(vars(BLOCK) | given))
    return replace(TRAINER, model=SimpleNamespace(**(vars(MODEL) | {"blocks": (block,)})))


def test_work_of_a_group(monkeypatch):
    """1000 tokens on 4 ranks: 250 each, a tile of 256. 8 s of attention are 2 s a rank, 0.5 s in each of the ring's
    steps; a send of 0.75 s is waited for 0.25 s forward, and 1.5 - 1.25 s backward, three times."""
    told = []
    monkeypatch.setattr(trainer, "products_s", lambda of, tokens: told.append(tokens) or 6.0)
    monkeypatch.setattr(trainer, "ring_step_s", lambda of, local, ranks: told.append((local, ranks)) or 0.75)
    work = split_work(TRAINER, 1000, 8.0, 4)
    assert told == [(250, 4), 256]
    assert (work.products_s, work.attention_s, work.ring_s) == (6.0, 3.5 * 2.0, pytest.approx(3 * 0.5))
    assert work.time_s == pytest.approx(14.5)
    assert work.forward_s == pytest.approx(6.0 / 3 + 2.0)
    alone = split_work(TRAINER, 257, 8.0, 1)
    assert (told[2], alone.ring_s, alone.attention_s) == (512, 0.0, 28.0)
    assert split_work(TRAINER, 0, 0.0, 1).products_s == 6.0
    assert told[3] == 256
    hidden = split_work(TRAINER, 1000, 80.0, 4)
    assert hidden.ring_s == 0.0


def test_products_of_a_model(monkeypatch):
    """Columns and vocabulary are cut four ways, rows of the way back too; three passes of each product, and the
    layer's all-reduces."""
    told = []

    def predict(op, device):
        told.append((op.n, op.k))
        return SimpleNamespace(time_s=np.full(2, 1.0))

    monkeypatch.setattr(trainer.kernels, "predict", predict)
    monkeypatch.setattr(trainer, "_reduces_s", lambda of, tokens: np.full(2, 0.5))
    found = trainer.products_many_s(TRAINER, ints(256, 512))
    assert told == [(23, 40), (40, 23), (7, 9), (9, 40)]
    assert found.tolist() == [3 * (3 * 3.0 + 0.5) + 3.0] * 2
    headless = replace(TRAINER, model=SimpleNamespace(**(vars(MODEL) | {"head": None})))
    assert trainer.products_many_s(headless, ints(256, 512)).tolist() == [28.5] * 2


def test_collectives_of_a_trainer(monkeypatch):
    """Four all-reduces a layer of 2 bytes for each of 40 x 10 elements; keys and values of a rank's one head, 8 + 6
    elements of 2 bytes, three layers; gradients of 6400 / 4 parameters of two bytes over eight ranks, two a node."""
    told = []

    def predict(work, device):
        told.append((work.kind, work.num_devices, np.asarray(work.message_bytes).tolist(), work.devices_per_node))
        return SimpleNamespace(time_s=np.array(0.25))

    monkeypatch.setattr(trainer.network, "predict", predict)
    assert trainer._reduces_s(TRAINER, ints(10)) == 1.0
    assert trainer.ring_step_s(TRAINER, 100, 2) == 0.75
    trainer.ring_step_s(TRAINER, 100, 3)
    assert trainer.sync_s(TRAINER) == 0.25
    assert told == [
        ("all_reduce", 4, [800.0], 8),
        ("send_recv", 2, 100 * 14 * 2.0, 2),
        ("send_recv", 2, 100 * 14 * 2.0, 1),
        ("all_reduce", 8, 3200.0, 2),
    ]
    wide = replace(TRAINER, tp=16)
    trainer.ring_step_s(wide, 100, 1)
    trainer.sync_s(wide)
    assert told[4:] == [("send_recv", 2, 2800.0, 2), ("all_reduce", 2, 800.0, 1)]


def test_attention_of_whole_sequences(monkeypatch):
    told = []

    def predict(op, device):
        told.append((op.batch, op.num_heads, op.num_kv_heads, op.head_size))
        return SimpleNamespace(time_s=op.query_tokens * 0.5)

    monkeypatch.setattr(trainer.kernels, "predict", predict)
    assert trainer.attention_s(TRAINER, ints(2, 6)).tolist() == [3.0, 9.0]
    trainer.attention_s(replace(TRAINER, tp=5), ints(2))
    assert told == [(1, 4, 1, 8), (1, 4, 1, 8)]


def test_ranks_that_hold_a_sequence(monkeypatch):
    """20 tokens leave 21,000 bytes: 5 ranks of 4800 bytes. 100 s of forward pass move 5000 of them over the link: 4
    ranks; the host's 1000 bytes a device would allow for 4 too, and more of the link changes nothing."""
    monkeypatch.setattr(degree, "split_work", lambda of, tokens, attention, ranks: SimpleNamespace(forward_s=attention))
    assert least_degree(TRAINER, 20, 100.0, offloads=False) == 5
    assert least_degree(TRAINER, 20, 0.0) == 5
    assert least_degree(TRAINER, 20, 100.0) == 4
    assert least_degree(TRAINER, 20, 1e6) == 4
    assert least_degree(replace(TRAINER, host_bytes=1e9), 20, 1e6) == 1
    assert least_degree(TRAINER, 1, 0.0, offloads=False) == 1


# --- lengths


def test_documents_until_there_are_enough_tokens(monkeypatch):
    """Median 100, spread log 2: 100, 200 and 50 tokens, over and over; the last one is cut."""

    class Draws:
        def standard_normal(self, count):
            return np.resize(np.array([0.0, 1.0, -1.0, 9.0]), count)

    monkeypatch.setattr(lengths, "stream", lambda seed, name: Draws())
    law = LongTail(median_tokens=100.0, spread_ratio=float(np.log(2.0)), most_tokens=300)
    assert law.batch(350).tolist() == [100, 200, 50]
    assert law.batch(351).tolist() == [100, 200, 50, 1]
    assert law.batch(500).tolist() == [100, 200, 50, 150]
    assert law.batch(1).tolist() == [1]
    assert law.batch(5000).sum() == 5000
    for bad in ({"median_tokens": 0.5}, {"spread_ratio": -0.1}, {"most_tokens": 0}):
        with pytest.raises(ScenarioError, match="lengths"):
            replace(law, **bad)
    assert LongTail(median_tokens=1.0, spread_ratio=0.0, most_tokens=1).batch(2).tolist() == [1, 1]


# --- balance


def lists(found):
    return [x.tolist() for x in found]


def test_windows_in_order_of_arrival():
    """60, 40 fill 100; 10 and 90 too; 1."""
    assert lists(packed(ints(60, 40, 10, 90, 1), 100)) == [[0, 1], [2, 3], [4]]
    assert lists(packed(ints(60, 41, 59), 100)) == [[0], [1, 2]]
    assert packed(ints(), 100) == []
    with pytest.raises(ScenarioError, match="101 tokens"):
        packed(ints(101), 100)


def test_longest_first_into_the_least_loaded():
    """Costs 5, 4, 3, 3: 5 and 3 against 4 and 3, the first of equals first; where tokens do not fit, a bin more."""
    costs = np.array([3.0, 5.0, 4.0, 3.0])
    assert lists(spread(costs, ints(1, 1, 1, 1), 2, 10)) == [[1, 3], [2, 0]]
    # no bin has room for 6 tokens beside 6, and the new one has the least to do
    assert lists(spread(costs, ints(6, 6, 6, 1), 2, 10)) == [[1], [2], [0, 3]]
    assert lists(spread(costs, ints(6, 4, 6, 1), 2, 10)) == [[1, 0], [2, 3]]
    assert lists(spread(np.array([1.0]), ints(1), 3, 10)) == [[0]]


def test_gangs_start_where_all_their_ranks_are_free():
    """Two ranks for 4 s and one for 3 s; then 2 s on two ranks begin when the later of the two is free, after 4 s."""
    gangs = [RankGroup(time_s=2.0, degree=2), RankGroup(time_s=3.0, degree=1), RankGroup(time_s=4.0, degree=2)]
    assert sorted(finish_s(gangs, 3).tolist()) == [4.0, 6.0, 6.0]
    alike = [RankGroup(time_s=1.0, degree=1)] * 2 + [RankGroup(time_s=1.0, degree=3)]
    assert sorted(finish_s(alike, 3).tolist()) == [1.0, 2.0, 2.0]
    with pytest.raises(ScenarioError, match="needs 4 ranks of 3"):
        finish_s([RankGroup(time_s=1.0, degree=4)], 3)


# --- steps


@pytest.fixture
def rounds(monkeypatch):
    """A rank holds 10 tokens; one takes 1 s of products and its square a tenth in attention; no ring, a sync of 2 s."""
    made = SimpleNamespace(num_ranks=8, capacity_tokens=10)
    monkeypatch.setattr(stepping, "attention_s", lambda of, lengths: lengths**2 / 10)
    monkeypatch.setattr(
        stepping,
        "split_work",
        lambda of, tokens, attention, ranks: Work(
            products_s=tokens / ranks, attention_s=3.5 * attention / ranks, ring_s=float(ranks > 1)
        ),
    )
    monkeypatch.setattr(stepping, "sync_s", lambda of: 2.0)
    monkeypatch.setattr(stepping, "products_many_s", lambda of, tokens: tokens * 1.0)
    monkeypatch.setattr(stepping, "least_degree", lambda of, tokens, attention, offloads=True: -(-tokens // 10))
    return made


def test_a_static_mesh(rounds):
    """Sequences of up to 20 tokens need two ranks: four groups. Windows 12 + 8, 20, 5: the longest is that of 20
    tokens: 10 + 3.5 x 20 + 1 s. Means over 8 ranks of two ranks each."""
    found = static_step(rounds, ints(12, 8, 20, 5), 20)
    assert found.products_s == pytest.approx((10 + 10 + 2.5) * 2 / 8)
    assert found.attention_s == pytest.approx(3.5 * (20.8 + 40 + 2.5) / 8)
    assert found.ring_s == pytest.approx(3 * 2 / 8)
    assert found.time_s == pytest.approx(10 + 70 + 1 + 2.0)
    assert found.sync_s == 2.0
    assert (found.most_degree, found.num_pieces) == (2, 3)
    with pytest.raises(ScenarioError, match="9 ranks"):
        static_step(rounds, ints(12), 90)
    # five windows on four groups: the first and the last one after the other
    five = static_step(rounds, ints(20, 20, 20, 20, 20), 20)
    assert five.time_s == pytest.approx(2 * 81 + 2.0)


def test_a_fair_share(rounds):
    """25 tokens over 8 ranks are 4 each; 40.5 s of attention 5.06."""
    share = _fair_share_s(rounds, ints(20, 5), np.array([40.0, 0.5]))
    assert share == pytest.approx(4 + 3.5 * 40.5 / 8)


def test_more_ranks_while_a_sequence_outlasts_its_limit(rounds):
    """20 tokens on 2, 4, 8 ranks take 81, 41 and 21 s; more than 8 there are not."""
    assert [_raised(rounds, 20, 40.0, 2, limit) for limit in (81.0, 80.9, 41.0, 21.5, 0.0)] == [2, 4, 4, 8, 8]
    assert _raised(rounds, 20, 40.0, 3, 0.0) == 6
    flat = SimpleNamespace(num_ranks=8)
    assert _raised(flat, 1, 0.0, 1, 0.0) == 1  # a ring that takes longer than it gains


def test_short_sequences_share_micro_batches(rounds):
    """Nine of 2 tokens: 18 x 1.25 / 10 are three bins of three; packed as they come, two of 5 and 4."""
    two = np.full(9, 2)
    works = _short_works(rounds, two, two**2 / 10, True)
    assert sorted(w.products_s for w in works) == [6.0, 6.0, 6.0]
    works = _short_works(rounds, two, two**2 / 10, False)
    assert [w.products_s for w in works] == [10.0, 8.0]
    assert works[0].attention_s == pytest.approx(3.5 * 5 * 0.4)
    assert _short_works(rounds, ints(), np.zeros(0), True) == []
    # the dearest first: attention counts three and a half times
    mixed = _short_works(rounds, ints(9, 1, 1, 1, 1, 1, 1, 1), ints(9, 1, 1, 1, 1, 1, 1, 1) ** 2 / 10, True)
    assert sorted(w.products_s for w in mixed) == [7.0, 9.0]


def test_ranks_by_length(rounds):
    """One of 40 tokens on four ranks takes 10 + 140 + 1 s, three short ones of 2 + 1.4 s each run beside it."""
    found = _dealt(rounds, [(40, 160.0)], [4], _short_works(rounds, ints(2, 2, 2), np.full(3, 0.4), False), np.inf)
    assert found.time_s == pytest.approx(151.0 + 2.0)
    assert (found.most_degree, found.num_pieces) == (4, 2)
    assert found.idle_s == pytest.approx(151.0 - found.products_s - found.attention_s - found.ring_s)
    plain_way = hybrid_step(rounds, ints(40, 2, 2, 2), offloads=False, balances=False)
    assert plain_way.time_s == pytest.approx(153.0)
    best = hybrid_step(rounds, ints(40, 2, 2, 2))
    assert best.most_degree == 8
    # all ranks for the long one, then the short ones in one micro-batch of 6 + 3.5 x 1.2 s
    assert best.time_s == pytest.approx(5 + 70 + 1 + 10.2 + 2.0)
    edge = hybrid_step(rounds, ints(10), balances=False)
    assert (edge.most_degree, edge.num_pieces) == (1, 1)  # as many as a rank holds are short


def test_the_whole_step():
    parts = StepTime(products_s=1.0, attention_s=2.0, ring_s=4.0, idle_s=8.0, sync_s=16.0, most_degree=1, num_pieces=1)
    assert parts.time_s == 31.0
    assert (0.5, 1.0, 2.0, 4.0, 8.0, np.inf) == stepping.OUTLAST_RATIOS
    assert stepping.ROOM_RATIO == 1.25
