"""Rules of layouts, layouts as columns, data parallelism, seconds of layers, faults and sizes: small cases by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.execution.train.layout import TrainingLayout
from orrery.models.model import SoftmaxAttention
from orrery.training import pace, sizing, sync
from orrery.training.allowed import _near, broken, refusal
from orrery.training.columns import choice_from, choice_rows, choices, columns_of, distinct
from orrery.training.launches import _collectives
from orrery.training.pace import _learns, _ring
from orrery.training.sizing import Size, rank_sizes, sizes_of
from orrery.training.sync import Stage, fast_domain, gradient_bytes, sync_of


def block(count=12, heads=12, kv=4, experts=0, reduces=2):
    mixer = SoftmaxAttention(num_heads=heads, num_kv_heads=kv, head_size=8, value_head_size=8)
    return SimpleNamespace(
        count=count, mixer=mixer, experts=experts and SimpleNamespace(num_experts=experts), num_reduces=reduces
    )


def job(devices=8, batch=16, seq=64, experts=0, layers=12, **framework):
    """Twelve layers of twelve heads, four of them keys; nodes of eight."""
    link = SimpleNamespace(num_devices=8)
    cluster = SimpleNamespace(num_devices=devices, devices_per_node=8, device=SimpleNamespace(scaleup=link))
    model = SimpleNamespace(name="m", blocks=(block(layers, experts=experts),), encoder=())
    return SimpleNamespace(
        cluster=cluster,
        model=model,
        global_batch=batch,
        seq_len=seq,
        framework=SimpleNamespace(**framework),
        task="pretrain",
    )


def says(given=None, **layout):
    given = given or job(devices=int(np.prod([layout.get(k, 1) for k in ("tp", "cp", "pp", "dp")])))
    return refusal(given, columns_of([TrainingLayout(**layout)]))


def test_layouts_that_make_sense():
    for fine in (
        {"dp": 8},
        {"tp": 4, "dp": 2},
        {"tp": 12},
        {"pp": 2, "vp": 3, "schedule": "interleaved", "dp": 4},
        {"cp": 2, "context_kind": "all-to-all", "tp": 2, "dp": 2},
        {"dp": 8, "sharding": "zero3", "sharding_group": 4, "secondary_group": 2},
        {"dp": 8, "sharding": "zero2"},
        {"pp": 4, "first_stage_layers": 2, "last_stage_layers": 4, "dp": 2},
        {"pp": 12},
    ):
        assert says(**fine) == "", fine


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"tp": 5}, ("tp: 5", "divide 12 attention heads", "write 4 or 6")),
        ({"tp": 6}, ("write 6 or 12",)),  # four key heads neither divide six nor are divided by it
        ({"tp": 2, "cp": 8, "context_kind": "all-to-all"}, ("tp: 2 (times cp",)),
        ({"ep": 2, "dp": 2}, ("ep: 2 ranks for experts, but m has none",)),
        ({"pp": 13}, ("13 chunks for 12 layers", "at most 12 stages")),
        ({"pp": 5, "vp": 3, "schedule": "interleaved"}, ("15 chunks for 12 layers", "at most 4 stages")),
        ({"dp": 5}, ("global_batch: 16", "5 x 1", "write global_batch = 15 or 20")),
        ({"dp": 4, "micro_batch": 3}, ("4 x 3", "write global_batch = 12 or 24")),
        ({"dp": 32}, ("write global_batch = 32.",)),
        ({"cp": 64}, ("cp: 64 tokens do not cut into 2 x 64", "write cp = 32.")),
        ({"vp": 2}, ("vp: 2 chunks need a pipeline",)),
        ({"dp": 8, "sharding": "zero1", "sharding_group": 3}, ("sharding_group: 3", "dp x cp = 8", "write 2 or 4")),
        ({"dp": 8, "sharding": "zero3", "secondary_group": 3}, ("secondary_group: 3", "write 2 or 4")),
        ({"dp": 2, "pp": 2, "sharding": "zero3", "secondary_group": 2}, ("means nothing with pp = 2",)),
        ({"dp": 2, "pp": 2, "sharding": "zero2"}, ("zero2 with pp = 2",)),
        ({"pp": 1, "first_stage_layers": 4}, ("first_stage_layers: 4 is of a pipeline's stage",)),
        # 12 - 5 = 7 for two stages: 4 leaves 8, 6 leaves 6
        ({"pp": 3, "first_stage_layers": 5}, ("5 leaves 7 of 12 layers for 2 stages", "first_stage_layers = 4 or 6")),
        ({"pp": 3, "last_stage_layers": 5}, ("last_stage_layers = 4 or 6",)),
        (
            {"pp": 4, "first_stage_layers": 3, "last_stage_layers": 4},
            ("3 beside last_stage_layers = 4 leaves 5 of 12 layers for 2 stages", "first_stage_layers = 2 or 4"),
        ),
        (
            {"pp": 2, "first_stage_layers": 3, "last_stage_layers": 8},
            ("3 beside last_stage_layers = 8 leaves 1 of 12 layers for 0", "first_stage_layers = 4"),
        ),
    ],
)
def test_a_layout_that_makes_none_says_the_nearest_that_does(layout, words):
    found = says(**layout)
    assert all(word in found for word in words), found


def test_rules_of_experts_and_devices():
    mixture = job(experts=6)
    assert says(mixture, tp=2, dp=4, ep=2) == ""
    assert "does not divide the 6 experts of m; write 3 or 6" in says(mixture, tp=2, dp=4, ep=4)
    assert "ep x etp = 3 must divide tp x cp x dp = 8" in says(mixture, tp=2, dp=4, ep=3)
    assert "write ep = 2 or 4." in says(mixture, tp=2, dp=4, ep=3)
    assert says(job(devices=8), tp=2, dp=2).endswith("= 4 devices, but there are 8; write dp = 4.")
    assert says(job(devices=8), tp=3, dp=2).endswith("write devices = 6.")
    counted = broken(job(), columns_of([TrainingLayout(dp=4), TrainingLayout(tp=8), TrainingLayout(dp=8)]))
    assert {name: flags.tolist() for name, flags in counted.items() if flags.any()} == {
        "devices": [True, False, False],
        "heads": [False, True, False],
    }
    assert [_near(12, n) for n in (5, 12, 1, 13)] == ["4 or 6", "12", "1 or 2", "12"]
    assert _near(0, 2) == "1"  # a sequence of one token, which nothing divides in halves


LAYOUTS = [
    TrainingLayout(tp=2, dp=4, micro_batch=2, sharding="zero1", sharding_group=2, schedule="1f1b"),
    TrainingLayout(tp=1, cp=2, dp=4, pp=2, vp=2, schedule="interleaved", sharding="zero3", context_kind="all-to-all"),
    TrainingLayout(tp=2, dp=2, ep=2, etp=1, recompute="full", recompute_layers=3, sharding="zero3"),
]


def test_layouts_side_by_side_and_back():
    x = columns_of(LAYOUTS)
    assert len(x) == 3
    assert x.schedules == ("1f1b", "interleaved")
    assert (x.data_ranks.tolist(), x.sharding_group.tolist()) == ([4, 8, 2], [2, 8, 2])
    assert (x.expert_copies.tolist(), x.is_ring.tolist()) == ([8, 8, 2], [True, False, True])
    assert (x.gathers_layers.tolist(), x.keeps_gathered.tolist()) == ([False, False, True], [False, True, False])
    assert x.is_sequence_parallel.tolist() == [True, False, True]  # with nothing cut there is nothing to share
    assert x.layout(0) == LAYOUTS[0]
    assert x.layout(2) == LAYOUTS[2]
    assert x.layout(1) == replace(LAYOUTS[1], is_sequence_parallel=False)
    assert x.only(np.array([True, False, True])).layout(1) == LAYOUTS[2]


def test_layouts_that_share_a_choice():
    same = [LAYOUTS[0], replace(LAYOUTS[0], pp=2, sharding="none"), LAYOUTS[1], LAYOUTS[0]]
    choice, which = choices(columns_of(same))
    assert which[0] == which[1] == which[3] != which[2]
    rows = choice_rows(choice)
    assert rows[which[0]] == (2, 1, 1, 1, 2, 1, 1)
    assert rows[which[2]] == (1, 2, 1, 1, 1, 0, 0)
    assert choice_rows(choice_from(rows)) == rows
    first, which = distinct(np.array([[1, 0, 1, 0], [0, 1, 0, 2]]))
    assert (first.tolist(), which.tolist()) == ([1, 3, 0], [2, 0, 2, 1])
    assert [x.tolist() for x in distinct(np.array([[5], [6]]))] == [[0], [0]]


KINDS = {"all_reduce": 4.0, "reduce_scatter": 2.0, "all_gather": 1.0}


@pytest.fixture
def sent(monkeypatch):
    """A collective takes 4, 2 or 1 s a byte by its kind, times the ranks of its group; alone, nothing."""

    class Groups:
        def __init__(self, job, ranks, stride):
            self.ranks = ranks

        def time_s(self, kind, message_bytes):
            return np.where(self.ranks > 1, KINDS[kind] * self.ranks * message_bytes, 0.0)

    monkeypatch.setattr(sync, "Groups", Groups)
    none = np.zeros(1), np.ones(1, dtype=np.int64)
    monkeypatch.setattr(sync, "copied_parameters", lambda job, x, experts: none)


def syncs(task="pretrain", **layout):
    """100 dense, 40 expert and 30 trained parameters; 10 and 4 in a layer; gradients of 4 bytes, weights of 2."""
    given = SimpleNamespace(
        task=task,
        gathered_weight_bytes=2.0,
        recipe=SimpleNamespace(gradient_wire_bytes=0.0, gradient_bytes=4.0),
        framework=SimpleNamespace(shard_copies="nothing", gathers_ends_apart=True),
    )
    numbers = (100.0, 40.0, 30.0, 10.0, 4.0, 0.0, 0.0)
    held = Stage(**{n: np.array([v]) for n, v in zip(sync.STAGE_FIELDS, numbers, strict=True)})
    found = sync_of(given, columns_of([TrainingLayout(**layout)]), held)
    names = ("reduce_s", "gather_s", "layer_gather_s", "layer_regather_s", "layer_reduce_s")
    return tuple(float(getattr(found, n)[0]) for n in names)


def test_gradients_and_weights_of_data_parallelism(sent):
    """Eight ranks: all-reduce 4 x 8 a byte of 400; the experts' 160 over as many copies."""
    assert syncs(dp=8) == (32 * 560, 0, 0, 0, 0)
    assert syncs(dp=8, ep=4) == (32 * 400 + 4 * 2 * 160, 0, 0, 0, 0)  # experts are copied twice
    # dealt out: 2 x 8 for each byte of gradient, 1 x 8 for each of weights
    assert syncs(dp=8, sharding="zero1") == (16 * 560, 8 * 280, 0, 0, 0)
    # in groups of four: copies sum their quarter
    assert syncs(dp=8, sharding="zero1", sharding_group=4) == (8 * 400 + 16 * 160 + 8 * 100, 4 * 200 + 8 * 80, 0, 0, 0)
    assert syncs(dp=8, pp=2, sharding="zero3")[:2] == (16 * 560, 8 * 280)
    assert syncs(dp=8, sharding="zero3") == (0, 0, 8 * 28, 8 * 28, 16 * 56)
    near = syncs(dp=8, sharding="zero3", secondary_group=2)
    assert near == (0, 0, 8 * 28, 2 * 20 + 8 * 8, 16 * 56)
    assert syncs() == (0, 0, 0, 0, 0)
    assert syncs(task="lora", dp=8) == (32 * 120, 0, 0, 0, 0)
    assert syncs(task="lora", dp=8, sharding="zero3")[-1] == 0


def test_what_a_gradient_travels_in():
    def given(wire, recipe, framework):
        return SimpleNamespace(
            recipe=SimpleNamespace(gradient_wire_bytes=wire, gradient_bytes=recipe),
            framework=SimpleNamespace(gradient_bytes=framework),
        )

    assert [gradient_bytes(given(*x)) for x in ((1.0, 2.0, 4.0), (0.0, 2.0, 4.0), (0.0, 0.0, 4.0))] == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(("node", "joined", "near"), [(8, 8, 8), (4, 72, 72), (8, 16, 8), (16, 0, 16)])
def test_neighbours_that_fast_links_join(node, joined, near):
    link = SimpleNamespace(num_devices=joined)
    given = job()
    given.cluster.devices_per_node, given.cluster.device.scaleup = node, link
    assert fast_domain(given) == near


def units(**choice):
    usual = {"tp": [2], "cp": [4], "ep": [1], "etp": [1], "is_ring": [True], "is_sequence_parallel": [True]}
    columns = SimpleNamespace(**{k: np.array(v) for k, v in (usual | choice).items()})
    given = job(experts=0, contention_ratio=1.2, network_ratio=2.0, scaleout_ratio=3.0)
    given.model.blocks = (block(9, experts=4), block(3))
    return SimpleNamespace(job=given, choice=columns, num_layers=12)


def test_a_ring_hides_behind_attention():
    """Three of four hops hide behind 8 s of attention, 6 s, and slow what they hide by a fifth."""
    assert _ring(units(), np.array([10.0]), np.array([8.0]))[0] == pytest.approx(4.0 + 1.2)
    assert _ring(units(), np.array([5.0]), np.array([8.0]))[0] == pytest.approx(1.0)
    assert _ring(units(is_ring=[False]), np.array([5.0]), np.array([8.0]))[0] == 5.0


def test_collectives_that_a_host_launches():
    """Two reduces, twice where sequences are cut too; two exchanges in nine of twelve layers; three hops of a ring."""
    assert _collectives(units())[0] == 4.0 + 3.0
    assert _collectives(units(is_sequence_parallel=[False]))[0] == 2.0 + 3.0
    assert _collectives(units(tp=[1], cp=[1]))[0] == 0.0
    assert _collectives(units(tp=[1], cp=[4], is_ring=[False]))[0] == 4.0
    assert _collectives(units(tp=[1], cp=[1], ep=[2]))[0] == 1.5
    assert [_learns(t) for t in ("pretrain", "full_finetune", "forward_backward", "lora")] == [1.0, 1.0, 1.0, 0.7]
    assert pace.network_ratio(units(), np.array([1, 8, 9])).tolist() == [2.0, 2.0, 3.0]
    end = SimpleNamespace(
        products=SimpleNamespace(forward_s=1.0, input_gradient_s=2.0, weight_gradient_s=3.0),
        stream_forward_s=10.0,
        stream_backward_s=20.0,
    )
    given = SimpleNamespace(job=SimpleNamespace(framework=SimpleNamespace(matrix_ratio=2.0, elementwise_ratio=0.5)))
    assert pace.end_pace(given, end) == (7.0, 14.0, 6.0)


def test_layers_of_about_so_many_parameters():
    """Two query heads of 8 share keys: hidden sizes are multiples of 16; 8 x (2 h + h) + 3 x 2 h a unit of width."""
    size = Size(hidden_size=16, ffn_size=32, num_heads=2, num_kv_heads=1, head_size=8)
    assert (size.num_attention_parameters, size.num_ffn_parameters, size.num_parameters) == (768, 1536, 2304)
    assert replace(size, is_gated=False).num_ffn_parameters == 1024
    (found,) = sizes_of(9000, head_sizes=(8,), heads_per_kv=2, ffn_ratios=(2.0,), multiple=16)
    assert (found.hidden_size, found.ffn_size, found.num_heads, found.num_kv_heads) == (32, 64, 4, 2)  # 9216
    (found,) = sizes_of(1, head_sizes=(8,), ffn_ratios=(2.0,), multiple=64)
    assert (found.hidden_size, found.ffn_size) == (8, 64)
    wide = list(sizes_of(1e7, head_sizes=(64, 128)))
    assert [s.head_size for s in wide] == [64] * 4 + [128] * 4
    assert all(s.ffn_size % 64 == 0 for s in wide)


def test_the_most_efficient_size_first(monkeypatch):
    """Products take 2 s and 3 s, attention 1 s: operations over 3 s of each part."""
    monkeypatch.setattr(sizing, "_products_s", lambda device, part, *rest: np.array([part[0][0][0] * 0 + 2.0] * 2))
    monkeypatch.setattr(sizing, "_cores_s", lambda device, sizes, *rest: np.array([1.0, 1.0]))
    device = get_device("h100-sxm")
    small = Size(hidden_size=16, ffn_size=32, num_heads=2, num_kv_heads=1, head_size=8)
    large = replace(small, ffn_size=64)
    first, second = rank_sizes(device, [small, large], seq_len=9, micro_batch=2)
    assert (first.size, second.size, second.layer_s) == (large, small, 5.0)
    peak = device.dense_flops_per_s["bf16"]
    assert second.attention_efficiency_frac == pytest.approx(6 * 18 * (768 + 2 * 16 * 5) / 3.0 / peak)
    assert second.ffn_efficiency_frac == pytest.approx(6 * 18 * 1536 / 2.0 / peak)
    assert second.efficiency_frac == pytest.approx(6 * 18 * (768 + 160 + 1536) / 5.0 / peak)
    assert rank_sizes(device, [], seq_len=9) == []
    with pytest.raises(ScenarioError, match="tp: 2"):
        rank_sizes(device, [small], seq_len=9, tp=2)
    attention, ffn = sizing._shapes([replace(small, num_kv_heads=2)], 2)
    assert [(n[0], k[0]) for n, k in attention] == [(8 + 16, 16), (16, 8)]
    assert [(n[0], k[0]) for n, k in ffn] == [(32, 16), (16, 16)]
