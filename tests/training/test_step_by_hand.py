"""A training step from parts of round numbers: what hides behind what, the slowest stage, hand-overs, operations."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.execution.train.layout import TrainingLayout
from orrery.training import pace, step, worth
from orrery.training.columns import columns_of
from orrery.training.reported import COMMUNICATOR_BYTES, num_communicators
from orrery.training.schedules.registry import get_schedule
from orrery.training.stage_layers import StageLayers
from orrery.training.step import (
    _beside,
    _chunk_ratio,
    _exchange_s,
    _exposed,
    _flops,
    _hand_overs,
    _layer_parts,
    _moved,
    _slowest,
)
from orrery.training.sync import Stage, Sync

WHICH = np.zeros(1, dtype=np.int64)


def one(value):
    return np.array([float(value)])


def many(**values):
    return SimpleNamespace(**{k: one(v) for k, v in values.items()})


def layouts(**given):
    return columns_of([TrainingLayout(**given)])


def test_a_collective_beside_work_adds_what_is_left_and_slows_the_work():
    assert _beside(one(10), one(4), 1.25)[0] == 6.0 + 1.0
    assert _beside(one(3), one(4), 1.25)[0] == 0.75
    assert _beside(one(3), one(4), 1.0)[0] == 0.0


def framework(**given):
    usual = {"contention_ratio": 1.0, "overlaps_parameters": False, "overlaps_gradients": False}
    usual |= {"overlaps_pipeline": False, "bucket_bytes": 40.0, "network_ratio": 2.0, "scaleout_ratio": 3.0}
    return SimpleNamespace(**(usual | given))


PACE = many(
    forward_s=1,
    input_gradient_s=2,
    weight_gradient_s=3,
    again_selective_s=0.5,
    again_full_s=1.5,
    tensor_forward_s=4,
    tensor_backward_s=5,
    context_forward_s=6,
    context_backward_s=7,
    expert_forward_s=8,
    expert_backward_s=9,
    expert_beside_forward_s=0.25,
    expert_beside_backward_s=0.75,
    host_forward_s=10,
    host_backward_s=11,
)
SYNC = Sync(
    reduce_s=one(20),
    gather_s=one(12),
    layer_gather_s=one(0.5),
    layer_regather_s=one(1.0),
    layer_reduce_s=one(7.0),
    layer_copy_s=one(0.0),
    start_s=one(0.0),
    end_s=one(0.0),
    apart_s=one(0.0),
)


def parts(joined=0.0, recompute="none", **given):
    job = SimpleNamespace(framework=framework(**given), activation_offload_bytes_per_s=0.0)
    return _layer_parts(
        job, SimpleNamespace(num_layers=4), layouts(recompute=recompute), PACE, WHICH, SYNC, one(joined)
    )


def test_parts_of_a_layer():
    found = {name: value[0] for name, value in parts().items()}
    assert found == {
        "forward": 1.0,
        "backward": 2.0,
        "weight gradients": 3.0,
        "recomputation": 0.0,
        "activation offloading": 0.0,
        "tensor parallel": 9.0,
        "context parallel": 13.0,
        "expert parallel": 17.0,
        "sharding": 8.5,
        "launches": 21.0,
    }
    assert [parts(recompute=r)["recomputation"][0] for r in ("selective", "full")] == [0.5, 1.5]
    # three of four layers: 0.5 s are hidden by 1 s forward, 8 s by 2 + 3 backward; nothing runs before the first
    # layer's parameters are there, nor beside its gradients' 7 s
    assert parts(overlaps_parameters=True)["sharding"][0] == 0.75 * 3 + 0.25 * (0.5 + 7)
    slowed = parts(overlaps_parameters=True, contention_ratio=1.5)["sharding"][0]
    assert slowed == pytest.approx(0.75 * (0.25 + 3 + 2.5) + 0.25 * (0.5 + 0.5 + 7))
    # half of the micro-batches hide 6 of 17 s behind another one's work
    assert parts(joined=0.5)["expert parallel"][0] == pytest.approx(0.5 * 11.0 + 0.5 * 17.0)


def test_what_no_computation_hides():
    """Gradients of 4 x 50 bytes in buckets of 40: a fifth of 20 s stays; 12 s of weights beside 3 s forward."""
    held = Stage(**{n: one(v) for n, v in zip(step.STAGE_FIELDS, (30.0, 20.0, 50.0, 1.0, 1.0, 0.0, 0.0), strict=True)})
    recipe = SimpleNamespace(gradient_wire_bytes=4.0)
    busy = {k: one(v) for k, v in (("forward", 3), ("backward", 5), ("weight gradients", 6), ("recomputation", 4))}

    layers = StageLayers(num_first=one(4), num_middle=one(5), num_last=one(3))

    def exposed(overlap="", exchange_s=0, **given):
        job = SimpleNamespace(framework=framework(**given), recipe=recipe, gradient_overlap=overlap)
        found = _exposed(job, layouts(), busy, SYNC, held, layers, one(exchange_s))
        return tuple(float(v[0]) for v in found.values())

    assert exposed() == (20.0, 12.0)
    assert exposed(overlaps_gradients=True) == (5.0, 12.0)  # 20 - 15
    assert exposed(overlaps_gradients=True, bucket_bytes=80.0) == (8.0, 12.0)
    assert exposed(overlaps_gradients=True, contention_ratio=1.2) == (pytest.approx(5.0 + 3.0), 12.0)
    assert exposed(overlap="gradient-buckets", exchange_s=2) == (
        15.0,
        12.0,
    )  # five layers keep links busy for 10 of 15 s
    assert exposed(overlap="gradient-slots", exchange_s=4)[0] == 20.0
    assert exposed(overlap="gradient-slots", bucket_bytes=160.0)[0] == 5.0  # a layer of five stays: 4 s, below 5
    assert exposed(overlap="gradient-serial", overlaps_gradients=True)[0] == 20.0
    assert exposed(overlaps_parameters=True) == (20.0, 9.0)
    assert exposed(overlaps_parameters=True, bucket_bytes=1e9) == (20.0, 12.0)


def test_the_exchange_within_a_backward_pass():
    """0.75 s beside products; 8 + 0.25 s again where all, or the modules of experts, are computed again."""
    assert float(_exchange_s(layouts(), PACE, WHICH)[0]) == 0.75
    assert float(_exchange_s(layouts(recompute="full"), PACE, WHICH)[0]) == 9.0
    assert float(_exchange_s(layouts(recompute="selective", recompute_modules=("moe",)), PACE, WHICH)[0]) == 9.0
    assert float(_exchange_s(layouts(recompute="selective", recompute_modules=("mlp",)), PACE, WHICH)[0]) == 0.75


ENDS = ((one(10), one(20), one(30)), (one(1), one(2), one(3)))


def slowest(first, middle, last, **layout):
    """Parts of a layer of 1, 2, 3 and 4 s and collectives of 6 s; an embedding of 60 s, a head of 6 s."""
    each = {"forward": one(1), "backward": one(2), "weight gradients": one(3), "recomputation": one(4)}
    each |= {n: one(0) for n in ("context parallel", "expert parallel", "sharding", "launches")}
    each["tensor parallel"] = one(6)
    counts = StageLayers(num_first=one(first), num_middle=one(middle), num_last=one(last))
    found = SimpleNamespace(num_layers=12)
    busy, base = _slowest(found, layouts(**layout), WHICH, counts, each, ENDS)
    return {k: float(v[0]) for k, v in busy.items()}, tuple(float(b[0]) for b in base)


def test_the_slowest_stage_and_the_mean_of_the_others():
    """Layers of 16 s: four with the embedding are 124, five between are 80, three with the head 54."""
    busy, base = slowest(4, 5, 3, pp=3)
    assert (busy["forward"], busy["backward"], busy["weight gradients"]) == (14.0, 28.0, 42.0)
    assert (busy["recomputation"], busy["tensor parallel"]) == (16.0, 24.0)
    # eight layers and a head on two ranks, with half of 6 s of waiting each way
    assert base == (4 * (1 + 3) + 0.5, 4 * (2 + 4 + 3) + 1.0, 4 * 3 + 1.5)
    busy, base = slowest(1, 8, 3, pp=3)
    assert (busy["forward"], busy["backward"]) == (8.0, 16.0)
    assert base[0] == 2 * 4 + (10 + 1) / 2
    busy, _ = slowest(1, 3, 8, pp=3)
    assert (busy["forward"], busy["weight gradients"]) == (9.0, 27.0)
    busy, base = slowest(12, 12, 12)
    assert (busy["forward"], base) == (12.0 + 11.0, (0.0, 0.0, 0.0))
    part, _ = slowest(4, 5, 3, pp=3, recompute="full", recompute_layers=1)
    assert part["recomputation"] == 4.0  # one of the four layers


def test_chunks_that_do_not_come_out_even():
    counts = StageLayers(num_first=one(4), num_middle=one(5), num_last=one(3))
    assert _chunk_ratio(12, layouts(pp=3), counts)[0] == 1.0
    assert _chunk_ratio(12, layouts(pp=2, vp=3), counts)[0] == 1.0
    assert _chunk_ratio(13, layouts(pp=2, vp=3), counts)[0] == pytest.approx(18 / 13)
    assert _chunk_ratio(12, layouts(pp=3, vp=2, first_stage_layers=4), counts)[0] == pytest.approx(15 / 12)


def test_hand_overs_of_a_pipeline(monkeypatch):
    """Two bytes, 3 sequences of 10 tokens, 7 wide, halved by sequence parallelism: 210 bytes; a byte a second."""
    asked = []

    def curves(job, kind, known):
        asked.append((kind, known))
        return SimpleNamespace(time_s=lambda which, message: message)

    monkeypatch.setattr(step, "curves_of", curves)

    def seconds(m=8.0, sends=1.0, job_framework=None, **layout):
        job = SimpleNamespace(
            framework=job_framework or framework(),
            seq_len=10,
            model=SimpleNamespace(hidden_size=7),
            cluster=SimpleNamespace(devices_per_node=8),
        )
        return float(_hand_overs(job, layouts(micro_batch=3, **layout), None, one(m), one(sends))[0])

    assert seconds(pp=4, tp=2) == 2 * 210 * 2 * (3 + 8)
    assert asked[-1] == ("send_recv", ((2, 2),))
    assert seconds(pp=4, tp=2, sends=2.0) == 2 * 210 * 2 * (3 + 16)
    assert seconds(pp=4, tp=2, job_framework=framework(overlaps_pipeline=True)) == 2 * 210 * 2 * 3
    assert seconds(pp=2, tp=2, is_sequence_parallel=False) == 2 * 420 * 2 * 9
    assert seconds(pp=2, tp=2, dp=4) == 2 * 210 * 3 * 9  # eight devices behind each other leave the node
    assert seconds(pp=2, cp=2) == 2 * 210 * 2 * 9
    assert seconds(dp=4) == 0.0


LAYER = many(
    forward_flops=10,
    padded_flops=0,
    attention_flops=2,
    unmade_flops=0,
    forward_bytes=100,
    stream_forward_s=1,
    stream_backward_s=2,
)
FOUND = SimpleNamespace(num_layers=12, layer=LAYER, head=many(forward_flops=5))


def test_operations_of_a_step():
    """Four micro-batches of 12 x (3 x 10 + 3 x 2) + 15; again 2 or 12 a layer; over two tensor and three data ranks.

    In the wide format are attention's, the head's and those of a fifth of the layers."""

    def all_of(task="pretrain", **layout):
        job = SimpleNamespace(task=task, wide_layers_frac=0.2)
        return tuple(float(v[0]) for v in _flops(job, FOUND, layouts(**layout), WHICH, one(4)))

    def operations(**more):
        return all_of(**more)[:2]

    once = 4 * (12 * 36 + 15)
    assert operations(tp=2, dp=3) == (6 * once, once)
    assert operations(pp=2, recompute="selective") == (once, (once + 4 * 12 * 2) / 2)
    assert operations(recompute="full") == (once, once + 4 * 12 * 12)
    assert operations(recompute="full", recompute_layers=3) == (once, once + 4 * 12 * 3)
    assert operations(pp=2, recompute="full", recompute_layers=3) == (once, (once + 4 * 12 * 6) / 2)
    assert operations(recompute="full", recompute_layers=99) == operations(recompute="full")
    assert operations(task="lora")[0] == 4 * (12 * (20 + 6) + 10)
    FOUND.layer.unmade_flops = one(4)
    assert operations(recompute="full") == (once, once + 4 * 12 * (12 - 4))
    FOUND.layer.unmade_flops = one(0)
    assert all_of(tp=2, dp=3)[2] == pytest.approx(4 * (12 * (0.2 * 30 + 6) + 15))
    assert all_of(pp=2, recompute="selective")[2] == pytest.approx(4 * (12 * (0.2 * 30 + 6 + 2) + 15) / 2)
    assert all_of(recompute="full")[2] == pytest.approx(4 * (12 * (0.2 * 40 + 8) + 15))


def test_bytes_of_a_step():
    """Three passes of 100 bytes, four with recomputation; 3 s of streams at half of 10 B/s; an update of 6 s."""
    device = SimpleNamespace(memory_bandwidth_bytes_per_s=10.0)
    job = SimpleNamespace(framework=SimpleNamespace(elementwise_ratio=0.5), cluster=SimpleNamespace(device=device))

    def moved(**layout):
        return float(_moved(job, FOUND, layouts(**layout), WHICH, one(4), one(6))[0])

    assert moved(pp=2) == 4 * 6 * (300 + 15) + 60
    assert moved(recompute="full") == 4 * 12 * (400 + 15) + 60


def units_of(**given):
    usual = {"matrix_ratio": 2.0, "elementwise_ratio": 0.5, "selective": "attention"}
    usual |= {"host_backward_ratio": 1.5}
    product = SimpleNamespace(forward_s=one(3), input_gradient_s=one(4), weight_gradient_s=one(5))
    expert = SimpleNamespace(forward_s=one(1), input_gradient_s=one(1), weight_gradient_s=one(2))
    layer = SimpleNamespace(
        products=product,
        experts=expert,
        stream_forward_s=one(6),
        stream_backward_s=one(10),
        cast_forward_s=one(2),
        cast_backward_s=one(4),
        context_forward_s=one(1),
        context_backward_s=one(2),
        expert_forward_s=one(8),
        expert_backward_s=one(9),
        unmade_s=one(given.pop("unmade_s", 0)),
        unmade_tensor_frac=one(0.5),
        core_forward_s=lambda f: one(7),
        core_backward_s=lambda f: one(9),
    )
    job = SimpleNamespace(framework=SimpleNamespace(**(usual | given)), task="pretrain")
    choice = SimpleNamespace(tp=np.ones(1), cp=np.ones(1), ep=np.ones(1), etp=np.ones(1))
    return SimpleNamespace(job=job, layer=layer, choice=choice)


@pytest.fixture
def waits(monkeypatch):
    """Exposed: 11 and 12 s of tensor parallelism, 13 and 14 of experts; 150 s of launches."""
    exposed = {"expert": (one(13), one(14))}
    monkeypatch.setattr(pace, "tensor_exposed", lambda units, ratio: (one(11), one(12)))
    monkeypatch.setattr(pace, "expert_exposed", lambda units, ratio: exposed["expert"])
    monkeypatch.setattr(pace, "network_ratio", lambda units, span: 2.0)
    monkeypatch.setattr(pace, "_ring", lambda units, collective_s, attention_s: collective_s)
    monkeypatch.setattr(pace, "launch_s", lambda units: one(exposed.get("launches", 150)))
    return exposed


def paced(**given):
    found = pace.layer_pace.__wrapped__(units_of(**given))
    return {name: float(getattr(found, name)[0]) for name in vars(PACE)}


def test_seconds_of_a_layer(waits):
    """Products 2 x (3 + 1), attention 7, streams (6 + 2) / 2; backward 2 x 5 + 9 + 7, weights 2 x 7. Launches
    of 150 s are longer than both ways, half as long again backward."""
    found = paced()
    assert (found["forward_s"], found["input_gradient_s"], found["weight_gradient_s"]) == (19.0, 26.0, 14.0)
    assert (found["tensor_forward_s"], found["context_forward_s"], found["context_backward_s"]) == (11.0, 2.0, 4.0)
    busy = 19 + 11 + 2 + 13
    assert (found["host_forward_s"], found["host_backward_s"]) == (150.0 - busy, 225.0 - (26 + 14 + 12 + 4 + 14))
    assert (found["expert_beside_forward_s"], found["expert_beside_backward_s"]) == (2 * 8 - 13, 2 * 9 - 14)
    assert (found["again_selective_s"], found["again_full_s"]) == (7.0, 150.0)
    waits["launches"] = 0
    graphed = paced()
    assert (graphed["host_forward_s"], graphed["host_backward_s"]) == (0.0, 0.0)
    assert graphed["again_full_s"] == busy - 0.5 * 11
    assert paced(selective="operators")["again_selective_s"] == 2 * (0.5 * 3 + 1) + 0.5 * 6
    stopped = paced(unmade_s=3)  # 2 x 3 s of products, and half of 11 s behind them
    assert stopped["again_full_s"] == busy - 6 - 5.5
    waits["launches"] = 150
    assert paced(unmade_s=3)["again_full_s"] == 150.0  # launches are as many
    waits["expert"] = one(-2), one(-3)  # loads that were evened out
    even = paced()
    assert (even["forward_s"], even["expert_forward_s"]) == (17.0, 0.0)
    assert (even["input_gradient_s"], even["expert_backward_s"]) == (23.0, 0.0)


@pytest.mark.parametrize(
    ("layout", "groups"),
    [
        ({}, 0),
        ({"dp": 4}, 1),
        ({"tp": 2, "dp": 4}, 3),
        ({"pp": 2}, 2),
        ({"pp": 2, "dp": 2}, 4),
        ({"pp": 2, "tp": 2}, 5),
        ({"tp": 2, "cp": 2, "pp": 2, "dp": 2, "ep": 2}, 8),
    ],
)
def test_groups_that_a_device_is_in(layout, groups):
    assert num_communicators(TrainingLayout(**layout)) == groups
    assert COMMUNICATOR_BYTES == 24 * 3 * 9_633_792


def test_least_operations_of_a_step():
    """Two layers of 30 and one of 5 parameters: 6 x 65 a token, 4 x where most are frozen."""

    def linears(*counts):
        return tuple(SimpleNamespace(num_parameters=n) for n in counts)

    blocks = (SimpleNamespace(count=2, linears=linears(10, 20)), SimpleNamespace(count=1, linears=linears(5)))
    given = SimpleNamespace(model=SimpleNamespace(blocks=blocks), task="pretrain", tokens_per_step=100)
    assert worth.least_flops(given) == 6 * 65 * 100
    given.task = "lora"
    assert worth.least_flops(given) == 4 * 65 * 100


def test_a_pipeline_turned_in_a_v_by_hand():
    """Four ranks: the last weight gradients fill most of what is idle."""
    found = get_schedule("zero-bubble-v")(np.array([4]), np.array([2]), np.array([8]))
    usual = get_schedule("1f1b")(np.array([4]), np.array([1]), np.array([8]))
    seconds = one(1), one(1), one(1)
    assert usual.idle_s(*seconds)[0] == 9.0  # three forward, three backward of two
    assert found.idle_s(*seconds)[0] < 3.0
