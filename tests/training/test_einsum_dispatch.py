"""Dispatch by products with one-hot masks, against sizes worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.cut import choice_of
from orrery.execution.train.experts import expert_streams, expert_times, mask_elements, mask_flops, mask_times
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.passes import elementwise_s
from orrery.execution.train.products import wide_times
from orrery.execution.train.recipe_registry import get_recipe
from orrery.execution.train.units import units
from orrery.hardware.cluster import Cluster

LAYOUT = TrainingLayout(dp=8, ep=8, micro_batch=2)
CHOICE = choice_of([LAYOUT])


def job(dispatcher="einsum", seq_len=1024, ratio=1.25):
    device = get_device("h100-sxm")
    return TrainingJob(
        model=get_model("mixtral-8x7b"),
        cluster=Cluster(device=device, num_devices=8, devices_per_node=8),
        framework=get_framework("maxtext", device, "bf16"),
        recipe=get_recipe("bf16"),
        seq_len=seq_len,
        global_batch=64,
        dispatcher=dispatcher,
        expert_capacity_ratio=ratio,
        pads_experts=True,
    )


EXPERTS = next(b.experts for b in job().model.blocks if b.experts)


def test_products_with_masks_by_hand():
    """1,024 tokens, two experts each, capacity factor 1.25: 2,560 places in front of 4,096 columns."""
    found = mask_times(job(), EXPERTS, CHOICE)
    m, n, k = (np.array(x) for x in ([[2560], [1024]], [[4096], [4096]], [[1024], [2560]]))
    into, out_of = wide_times(job(), m, n, k, np.array([[2], [2]]))
    weights = wide_times(job(), np.array([[1024]]), np.array([[2560]]), np.array([[4096]]), np.array([[2]]))[0]
    assert found.forward_s == pytest.approx(into.forward_s + out_of.forward_s)
    assert found.input_gradient_s == pytest.approx(found.forward_s)
    assert found.weight_gradient_s == pytest.approx(weights.forward_s)
    assert mask_flops(job(), EXPERTS, CHOICE)[0] == 2 * 2 * 2 * 1024 * 2560 * 4096


def test_a_tokens_masks_grow_with_its_sequence_and_its_experts_do_not():
    short, long = (job(seq_len=s) for s in (1024, 4096))
    masks = [mask_flops(j, EXPERTS, CHOICE)[0] for j in (short, long)]
    assert masks[1] == 16 * masks[0]
    assert mask_flops(job(dispatcher="all-to-all"), EXPERTS, CHOICE)[0] == 0.0


def test_masks_come_on_top_of_the_experts_and_spare_one_reordering():
    masked, sent = job(), job(dispatcher="all-to-all")
    times = [expert_times(j, EXPERTS, CHOICE) for j in (masked, sent)]
    alone = mask_times(masked, EXPERTS, CHOICE)
    assert times[0].forward_s - times[1].forward_s == pytest.approx(alone.forward_s)
    assert expert_streams(masked, EXPERTS, CHOICE).forward_s < expert_streams(sent, EXPERTS, CHOICE).forward_s


FLAT_LAYOUT = TrainingLayout(tp=2, dp=4, ep=4, etp=2, micro_batch=2)
FLAT_CHOICE = choice_of([FLAT_LAYOUT])


def test_one_mask_of_all_tokens_by_hand():
    """Two sequences of 1,024 tokens on each of two tensor-parallel ranks: 2,048 by 5,120 places, once in each rank."""
    flat, whole = job(dispatcher="einsum-flat"), job(seq_len=2048)
    alone = choice_of([TrainingLayout(dp=8, ep=4, micro_batch=1)])
    assert mask_elements(flat, EXPERTS, FLAT_CHOICE)[0] == 2048 * 5120
    assert mask_flops(flat, EXPERTS, FLAT_CHOICE)[0] == 2 * 2 * 2048 * 5120 * 4096
    assert mask_times(flat, EXPERTS, FLAT_CHOICE).forward_s == pytest.approx(
        mask_times(whole, EXPERTS, alone).forward_s
    )
    assert mask_elements(job(), EXPERTS, FLAT_CHOICE)[0] == 2 * 512 * 1280  # each rank routes its half of each sequence


def test_masks_are_written_and_kept():
    """34 bytes of an element forward and 14 backward; 4 are kept for the way back."""
    flat, plain = job(dispatcher="einsum-flat"), job()
    one = elementwise_s(flat, "add", np.array([2048]), np.array([5120]))
    streams = [expert_streams(j, EXPERTS, FLAT_CHOICE) for j in (flat, plain)]
    assert streams[0].forward_s - streams[1].forward_s == pytest.approx(34 / 6 * one)
    assert streams[0].backward_s - streams[1].backward_s == pytest.approx(14 / 6 * one)
    layers = [units(j, FLAT_CHOICE).layer.everything_bytes for j in (flat, plain)]
    assert layers[0] - layers[1] == pytest.approx(4.0 * 2048 * 5120)


SETTINGS = SimpleNamespace(
    model="mixtral-8x7b", device="h100-sxm", devices=64, ep=8, global_batch=64, seq_len=2048, recompute="full"
)


def test_the_command_takes_it_with_a_number_of_places():
    asked = vars(SETTINGS) | {"sharding": "zero3", "framework": "maxtext", "expert_capacity_factor": 1.25}
    masked, padded = (
        orrery.train(**asked, **way)
        for way in ({"dispatcher": "einsum"}, {"dispatcher": "all-to-all", "pad_experts": True})
    )
    assert masked.step_time_s > padded.step_time_s
    flat = orrery.train(**asked, dispatcher="einsum-flat", micro_batch=1)
    assert flat.step_time_s > masked.step_time_s
    for way in ("einsum", "einsum-flat"):
        with pytest.raises(
            ScenarioError, match=f"dispatcher: {way} needs a number of places; write expert_capacity_factor"
        ):
            orrery.train(**vars(SETTINGS), dispatcher=way)
