"""Experts that move or have copies: loads, gradients, state and memory worked by hand; even loads change nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import orrery
from orrery.base.errors import OrreryError
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.execution.train.cut import choice_of
from orrery.execution.train.exchanges import curves_of
from orrery.execution.train.experts import routed
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.packing import packed
from orrery.execution.train.placement import standing
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.kernels.ops import Popularity
from orrery.models.shape import model_of_shape
from orrery.training.columns import columns_of
from orrery.training.step import step_of

EIGHT = Popularity(shares=(0.5, 0.25, 0.125, 0.125, 0.0, 0.0, 0.0, 0.0))
WIDTH, HIDDEN = 1536, 2048
EACH = 3 * WIDTH * HIDDEN  # parameters of one expert
NUM_LAYERS = 4


def job_of(placement="", copies=None, loads=None, interval=100, **more):
    model = model_of_shape(
        name="moe",
        num_layers=NUM_LAYERS,
        hidden_size=HIDDEN,
        num_heads=16,
        ffn_size=4096,
        vocab_size=32000,
        gated_ffn=True,
        num_experts=8,
        experts_per_token=2,
        moe_ffn_size=WIDTH,
    )
    device = get_device("h100-sxm")
    knobs = (("num_replicas", float(copies)),) if copies else ()
    return TrainingJob(
        model=model,
        cluster=Cluster(device=device, num_devices=8, devices_per_node=8),
        framework=get_framework("megatron-lm", device, "bf16"),
        recipe=get_recipe("bf16"),
        seq_len=4096,
        global_batch=64,
        expert_loads=loads,
        expert_placement=placement,
        placement_knobs=knobs,
        placement_interval_steps=interval,
        **more,
    )


def experts_of(job):
    return next(b for b in job.model.blocks if b.experts).experts


def stand(job, ranks):
    return standing(job, experts_of(job), ranks)


BY_HAND = {
    # two ranks of four: all tokens on the first, in order
    "in-order": (None, 2.0, 4, 0.0, 0.0, 1),
    # 1/2 on one rank, 1/4 + 1/8 + 1/8 on the other; three of four experts stand elsewhere on each
    "rearranged": (None, 1.0, 4, 0.75, 0.0, 1),
    # two copies more: of the first (1/2), and as that is on both ranks then, of the second (1/4). From the fullest
    # down 1/4 | 1/4, 1/8 | 1/8, 1/8 | 1/8: experts 0, 1, 3, 4, 5 and 0, 1, 2, 6, 7; three of five came to the second
    "redundancy": (2, 1.0, 5, 0.6, 0.4, 2),
    # one a rank, two in all, is what redundancy takes where nobody says how many
    "redundancy ": (None, 1.0, 5, 0.6, 0.4, 2),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_the_fullest_rank_by_hand(name):
    copies, ratio, slots, moved, copied, most = BY_HAND[name]
    found = stand(job_of(name.strip(), copies, EIGHT), 2)
    assert found.fullest_ratio == pytest.approx(ratio)
    assert found.slots_each == slots
    assert found.moved_frac == pytest.approx(moved)
    assert found.copied_frac == pytest.approx(copied)
    assert found.num_copies == most


def test_rows_of_the_fullest_rank_follow():
    """4,096 tokens, two experts each, over two ranks: 8,192 assignments a rank on the mean."""
    choice = choice_of([TrainingLayout(dp=8, ep=2)])
    for name, (copies, ratio, slots, *_) in BY_HAND.items():
        job = job_of(name.strip(), copies, EIGHT)
        found = routed(job, experts_of(job), choice)
        assert found.rows[0] == pytest.approx(8192 * ratio)
        assert found.local_experts[0] == slots


@given(
    loads=st.lists(st.floats(0.0, 1.0), min_size=16, max_size=16).filter(lambda x: sum(x) > 0.1),
    ranks=st.sampled_from([1, 2, 4, 8, 16]),
    extra=st.integers(0, 3),
)
def test_every_expert_stands_somewhere_and_no_rank_is_fuller_than_in_order(loads, ranks, extra):
    share = np.array(loads)[None] / sum(loads)
    slots = packed(share, ranks, extra * ranks)
    assert set(slots[0].tolist()) == set(range(16))
    assert slots.shape[1] == 16 + extra * ranks
    each = share[0] / np.bincount(slots[0], minlength=16)
    full = each[slots[0]].reshape(ranks, -1).sum(axis=1)
    assert full.sum() == pytest.approx(1.0)
    if not extra:
        assert full.max() <= share[0].reshape(ranks, -1).sum(axis=1).max() + 1e-12


def parts(job, **layout):
    steps = step_of(job, columns_of([TrainingLayout(dp=8, ep=8, micro_batch=4, **layout)]))
    return {name: float(value[0]) for name, value in steps.parts.items()}, steps


@pytest.mark.parametrize("name", ["in-order", "rearranged"])
def test_even_loads_change_no_digit(name):
    assert parts(job_of(name))[0] == parts(job_of())[0]
    assert parts(job_of(name))[1].memory_bytes == parts(job_of())[1].memory_bytes


def test_copies_of_even_loads_cost_what_copies_cost():
    """Eight copies more: as many rows over twice the experts, twice the weights, and gradients of pairs to sum."""
    plain, copied = parts(job_of()), parts(job_of("redundancy", 8))
    same = ("tensor parallel", "context parallel", "expert parallel", "hand-overs", "once a step", "bubble")
    assert {n: copied[0][n] for n in same} == pytest.approx({n: plain[0][n] for n in same}, rel=1e-12)
    assert copied[0]["forward"] >= plain[0]["forward"]
    assert copied[0]["update"] > plain[0]["update"]
    each = copied[1].first.parts["weights"][0] / plain[1].first.parts["weights"][0]
    dense = sum(x.out_features * x.in_features for x in job_of().model.blocks[0].linears) + 2 * HIDDEN
    rest = NUM_LAYERS * dense + 2 * 32000 * HIDDEN + HIDDEN
    assert each == pytest.approx((rest + NUM_LAYERS * 2 * EACH) / (rest + NUM_LAYERS * EACH), rel=1e-3)


def test_gradients_of_copies_are_summed_once_a_step():
    """With eight copies, one of each expert, a rank holds two experts, both with a copy: an all-reduce of two ranks."""
    job = job_of("redundancy", 8)
    quiet = replace(job, framework=replace(job.framework, overlaps_gradients=False))
    plain = replace(quiet, expert_placement="", placement_knobs=())
    more = parts(quiet)[0]["gradient reduction"] - parts(plain)[0]["gradient reduction"]
    message = quiet.framework.gradient_bytes * NUM_LAYERS * 2 * EACH
    once = curves_of(quiet, "all_reduce", ((2, 4),)).time_s(np.zeros(1, dtype=np.int64), np.array([message]))[0]
    assert more == pytest.approx(quiet.framework.network_ratio * once)


def test_what_moves_is_paid_once_an_interval():
    """Weights, a wide copy and both moments of the experts that come: 2 + 4 + 8 bytes a parameter, over the links."""
    often, seldom, plain = (job_of("rearranged", loads=EIGHT, interval=n) for n in (1, 100, 10**7))
    layout = {"ep": 2, "dp": 8, "micro_batch": 4}
    seconds = [
        float(step_of(j, columns_of([TrainingLayout(**layout)])).parts["parameter gathering"][0])
        for j in (often, seldom, plain)
    ]
    state = 2.0 + 4.0 + 8.0 if often.framework.weights_bytes == 2.0 else often.framework.weights_bytes + 12.0
    message = NUM_LAYERS * 3 * EACH * state
    once = curves_of(often, "all_to_all", ((2, 1),)).time_s(np.zeros(1, dtype=np.int64), np.array([message]))[0]
    assert seconds[0] - seconds[2] == pytest.approx(often.framework.network_ratio * once, rel=1e-6)
    assert seconds[1] - seconds[2] == pytest.approx((seconds[0] - seconds[2]) / 100, rel=1e-3)
    held = [
        step_of(j, columns_of([TrainingLayout(**layout)])).first.parts["buffers"][0]
        for j in (often, job_of(loads=EIGHT))
    ]
    assert held[0] - held[1] == pytest.approx(3 * EACH * state)  # of one layer, beside those that still stand there


def test_skewed_loads_are_evened_out_by_all_of_them():
    """Per rank one expert: rearranging cannot help, copies and gathered experts do; shadowing hides nothing."""
    skewed = Popularity(exponent=1.0)
    step = {name: parts(job_of(name, loads=skewed))[1].time_s[0] for name in ("", "rearranged", "redundancy")}
    assert step["rearranged"] == step[""]
    assert step["redundancy"] < step[""]
    gathered = {
        name: parts(job_of(loads=skewed, expert_overlap=name))[1].time_s[0]
        for name in ("", "sparse-materialisation", "shadowing")
    }
    assert gathered["sparse-materialisation"] <= gathered["shadowing"] <= gathered[""]
    even = {name: parts(job_of(expert_overlap=name))[1].time_s[0] for name in ("", "shadowing")}
    assert even["shadowing"] == even[""]


ASKED = {
    "model": "qwen3-30b-a3b",
    "device": "h100-sxm",
    "devices": 64,
    "global_batch": 512,
    "seq_len": 4096,
    "ep": 16,
    "sharding": "zero1",
    "recompute": "full",
    "expert_loads": "zipf:0.6",
}


def test_users_see_them():
    plain = orrery.train(**ASKED).to_json()
    for name in ("rearranged", "redundancy"):
        found = orrery.train(**ASKED, expert_placement=name).to_json()
        assert found["step_time_s"] < 0.95 * plain["step_time_s"]
        assert found["job"]["expert_placement"] == name
        assert any("placement_interval_steps: 100 (assumed)" in note for note in found["notes"])
    few, many = (orrery.train(**ASKED, expert_placement="redundancy", expert_replicas=n) for n in (16, 64))
    assert many.peak_memory_bytes > few.peak_memory_bytes > plain["peak_memory_bytes"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expert_placement": "shuffled"}, "Known: in-order, rearranged, redundancy"),
        ({"expert_replicas": 8}, "write expert_placement = redundancy"),
        ({"placement_interval_steps": 8}, "write expert_placement = redundancy"),
        ({"expert_placement": "rearranged", "expert_replicas": 8}, "rearranged copies nothing"),
        ({"expert_placement": "redundancy", "expert_overlap": "shadowing"}, "both copy experts"),
        ({"expert_placement": "redundancy", "model": "llama-3.1-8b", "ep": 1, "expert_loads": None}, "no experts"),
    ],
)
def test_what_means_nothing_together_is_refused(change, message):
    with pytest.raises(OrreryError, match=message):
        orrery.train(**(ASKED | change))
