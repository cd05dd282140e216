"""Layers of stages that do not come out even, worked by hand, and the time and memory that follow."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.exchanges import curves_of
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.execution.train.units import units
from orrery.hardware.cluster import Cluster
from orrery.training.allowed import refusal
from orrery.training.columns import choices, columns_of
from orrery.training.pace import end_pace, layer_pace
from orrery.training.ranks import ranks_of
from orrery.training.schedules.registry import get_schedule
from orrery.training.stage_layers import by_chunk, by_rank, stage_layers
from orrery.training.step import step_of


def job_of(model="llama-3.1-405b", devices=16384, batch=2048, seq=8192, device="h100-sxm"):
    found = get_device(device)
    return TrainingJob(
        model=get_model(model),
        cluster=Cluster(device=found, num_devices=devices, devices_per_node=8),
        framework=get_framework("megatron-lm", found, "bf16"),
        recipe=get_recipe("bf16"),
        seq_len=seq,
        global_batch=batch,
    )


BY_HAND = {
    (126, 16, 8): (7, *[8] * 14, 7),  # 128 chunks: the embedding and the head stand for a layer each
    (126, 8, 8): (15, *[16] * 6, 15),
    (126, 16, 1): (7, *[8] * 14, 7),
    (61, 16, 1): (3, *[4] * 13, 3, 3),
    (96, 8, 3): (12,) * 8,
    (32, 4, 5): (8,) * 4,  # 20 chunks of one or two layers: the short ones fall on all ranks alike
    (7, 2, 1): (4, 3),
    (32, 1, 1): (32,),
}


@pytest.mark.parametrize(("sizes", "want"), BY_HAND.items())
def test_by_hand(sizes, want):
    layers, pp, vp = sizes
    assert by_rank(layers, TrainingLayout(pp=pp, vp=vp)) == want


@given(layers=st.integers(1, 200), pp=st.integers(1, 32), vp=st.integers(1, 16))
def test_ranks_add_up_and_the_ends_and_the_fullest_are_those_of_the_ranks(layers, pp, vp):
    if pp > layers or pp * vp > layers + 2:
        return
    ranks = by_rank(layers, TrainingLayout(pp=pp, vp=vp))
    assert sum(ranks) == layers
    found = stage_layers(layers, columns_of([TrainingLayout(pp=pp, vp=vp)]))
    assert (found.num_first[0], found.num_last[0]) == (ranks[0], ranks[-1])
    assert found.num_middle[0] == max(ranks)
    assert max(ranks) - min(ranks) <= 1


TOLD = {
    (61, 16, 1, 0, 1): (*[4] * 15, 1),  # as DeepSeek-V3 is cut in Megatron's recipes: 60 layers over 15 stages
    (61, 16, 1, 3, 2): (3, *[4] * 14, 2),
    (126, 16, 1, 7, 7): (7, *[8] * 14, 7),
    (80, 8, 2, 4, 4): (4, *[12] * 6, 4),
    (61, 2, 1, 30, 0): (30, 31),
    (61, 2, 1, 30, 31): (30, 31),
}  # layers, pp, vp, first, last


def describe(pp, vp, first, last, **more):
    schedule = "interleaved" if vp > 1 else "1f1b"
    more = {"schedule": schedule} | more
    return TrainingLayout(pp=pp, vp=vp, first_stage_layers=first, last_stage_layers=last, **more)


@pytest.mark.parametrize(("sizes", "want"), TOLD.items())
def test_told_ends_by_hand(sizes, want):
    layers, *rest = sizes
    layout = describe(*rest)
    assert by_rank(layers, layout) == want
    found = stage_layers(layers, columns_of([layout]))
    middle = want[1] if layout.pp > 2 else max(want)
    assert [v[0] for v in (found.num_first, found.num_middle, found.num_last)] == [want[0], middle, want[-1]]
    if layout.vp > 1:
        assert by_chunk(layers, layout) == tuple(n // layout.vp for n in want) * layout.vp


def test_ends_told_as_they_come_out_change_no_digit():
    """126 layers over 16 stages leave 7 on both ends by themselves."""
    plain = TrainingLayout(tp=8, pp=16, dp=128, sharding="zero1", recompute="full")
    message = replace(plain, first_stage_layers=7, last_stage_layers=7)
    job = job_of()
    steps = step_of(job, columns_of([plain, message]))
    assert steps.time_s[0] == steps.time_s[1]
    assert steps.memory_bytes[0] == steps.memory_bytes[1]
    assert ranks_of(job, plain) == ranks_of(job, message)


def test_a_short_last_stage_leaves_room_for_the_head_and_a_full_one_is_the_slowest():
    """Llama-3 8B over four stages: 32 = 9 + 9 + 9 + 5; 8 and the head, or 9 and the embedding, forward."""
    job = job_of("llama-3.1-8b", devices=4, batch=64)
    layouts = [TrainingLayout(pp=4), TrainingLayout(pp=4, last_stage_layers=5)]
    x = columns_of(layouts)
    found = units(job, choices(x)[0])
    forward, head = layer_pace(found).forward_s[0], end_pace(found, found.head)[0][0]
    even, short = step_of(job, x).parts["forward"]
    assert even == pytest.approx(64 * (8 * forward + head))
    assert short == pytest.approx(64 * (9 * forward + end_pace(found, found.embedding)[0][0]))
    state = [step_of(job, columns_of([one])).last.parts["optimizer"][0] for one in layouts]
    layer = found.layer.dense_parameters[0]
    assert state[0] - state[1] == pytest.approx(3 * layer * 12)  # a wide copy and both moments of three layers


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (describe(16, 1, 0, 2, tp=8, dp=128), "write last_stage_layers = 6"),
        (describe(16, 1, 5, 0, tp=8, dp=128), "write first_stage_layers = 6"),
        (describe(1, 1, 5, 0, tp=8, dp=2048), "write pp = 2 or more"),
        (describe(4, 2, 32, 0, tp=8, dp=512, schedule="zero-bubble-v"), "write schedule = 1f1b"),
        (describe(2, 1, 60, 60, tp=8, dp=1024), "write first_stage_layers = 66"),
        (describe(8, 2, 7, 7, tp=8, dp=256), "leave last_stage_layers out"),
    ],
)
def test_ends_that_leave_no_even_rest_are_refused_with_the_nearest_that_do(layout, message):
    assert message in refusal(job_of(), columns_of([layout]))


def test_the_slowest_stage_is_a_full_one_between_or_an_end_with_what_stands_there():
    """405B over 16 stages of 8 chunks: 8 layers, or 7 and the head; over 6 all have 21, and the last is slowest."""
    for pp, vp, layers, has_head in ((16, 8, 8, False), (6, 1, 21, True)):
        dp = 16384 // (8 * pp) if pp == 16 else 8
        job = job_of(devices=8 * pp * dp, batch=dp * 16)
        layout = TrainingLayout(tp=8, pp=pp, vp=vp, dp=dp, schedule="interleaved" if vp > 1 else "1f1b")
        x = columns_of([layout])
        choice, _ = choices(x)
        found = units(job, choice)
        head = end_pace(found, found.head)[0][0] if has_head else 0.0
        assert step_of(job, x).parts["forward"][0] == pytest.approx(
            16 * (layers * layer_pace(found).forward_s[0] + head)
        )


def test_a_published_cut_makes_sense():
    layout = TrainingLayout(tp=8, pp=16, vp=8, dp=128, schedule="interleaved", sharding="zero3")
    assert refusal(job_of(), columns_of([layout])) == ""
    assert "at most" in refusal(
        job_of(), columns_of([TrainingLayout(tp=8, pp=16, vp=9, dp=128, schedule="interleaved")])
    )


def test_memory_of_the_fullest_rank_is_the_one_that_the_search_sees():
    """The second rank holds a layer more than the first; every rank's bytes are worked out one by one."""
    job = job_of()
    layout = TrainingLayout(tp=8, pp=16, dp=128, sharding="zero1", recompute="full")
    ranks = ranks_of(job, layout)
    assert [r.parts["weights"] for r in ranks].index(max(r.parts["weights"] for r in ranks)) not in (0, 15)
    assert step_of(job, columns_of([layout])).memory_bytes[0] == pytest.approx(
        max(r.peak_bytes for r in ranks), rel=1e-9
    )


@pytest.mark.parametrize("pp", [4, 8, 16])
def test_pairs_of_passes_are_those_of_dualpipes_order(pp):
    """The rank at either end, which has the fewest."""
    m, schedule = 6 * pp, get_schedule("dualpipe")
    pairs = sum(piece.is_joined for piece in schedule.order(pp, 1, m, 0))
    assert schedule(pp, 1, m).joined_ratio == pytest.approx(pairs / m)
    fewest = min(sum(p.is_joined for p in schedule.order(pp, 1, m, rank)) for rank in range(pp))
    assert pairs == fewest


def test_dualpipe_hides_the_exchange_of_tokens_behind_another_micro_batch():
    """Of m micro-batches those that are paired wait only for what their work does not cover; the rest wait in full."""
    job = job_of("deepseek-v3", 2048, 15360, 4096, "h800-sxm")
    beside, alone = (
        step_of(job, columns_of([TrainingLayout(pp=16, dp=128, ep=64, schedule=name)])) for name in ("dualpipe", "1f1b")
    )
    m, pace = 120, job.framework.contention_ratio
    share = (m - 24 + 1) / m
    work = sum(float(beside.parts[n][0]) for n in ("forward", "backward", "weight gradients"))
    whole = float(alone.parts["expert parallel"][0])
    hidden = max(whole - work, 0.0) + (pace - 1.0) * min(whole, work)
    want = share * min(hidden, whole) + (1.0 - share) * whole
    assert float(beside.parts["expert parallel"][0]) == pytest.approx(want, rel=0.02)
    assert float(beside.parts["expert parallel"][0]) < 0.7 * whole


def test_every_rank_of_a_mirrored_pipeline_carries_half_of_both_ends():
    job = job_of("deepseek-v3", 2048, 15360, 4096, "h800-sxm")
    ranks = ranks_of(job, TrainingLayout(pp=16, dp=128, ep=64, schedule="dualpipe"))
    assert ranks[0].parts["weights"] == pytest.approx(ranks[-1].parts["weights"])


def test_activations_are_handed_over_in_cut_pieces():
    """2 s h bytes over tp x cp with sequence parallelism, over cp alone without; pp - 1 times to fill, twice a step."""
    job = job_of("llama-3.1-8b", 64, 64)
    assert job.framework.overlaps_pipeline
    found = {}
    for is_cut in (True, False):
        layout = TrainingLayout(tp=2, cp=2, pp=4, dp=4, is_sequence_parallel=is_cut)
        message = 2.0 * 8192 * 4096 / (2 * (2 if is_cut else 1))
        once = curves_of(job, "send_recv", ((2, 16),)).time_s(np.zeros(1, dtype=np.int64), np.array([message]))[0]
        found[is_cut] = step_of(job, columns_of([layout])).parts["hand-overs"][0]
        assert found[is_cut] == pytest.approx(2 * 3 * once * job.framework.scaleout_ratio)
    assert found[True] < found[False]


def test_the_pipeline_fills_at_the_pace_of_its_fullest_chunk():
    """32 layers in 4 x 5 chunks of two or one: fills take 2 / 1.6 as long as with 20 chunks of 1.6 layers."""
    job = job_of("llama-3.1-8b", 4, 16)
    x = columns_of([TrainingLayout(pp=4, vp=vp, schedule="interleaved") for vp in (5, 8)])
    idle = step_of(job, x).parts["bubble"]
    assert idle[0] / idle[1] == pytest.approx((2 / 1.6) * 8 / 5, rel=1e-9)
