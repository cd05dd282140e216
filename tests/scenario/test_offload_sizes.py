"""What fits where: the work of models, sizes that follow from bytes, and the largest model of a schedule."""

from dataclasses import replace
from functools import partial

import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.memory import Infeasible
from orrery.execution.offload import OFFLOADS
from orrery.execution.offload.largest import PRECISION_RATIO, Largest, largest_model
from orrery.execution.offload.shapes import gpt, gpt_of
from orrery.execution.offload.step import OffloadedStep
from orrery.execution.offload.tiers import MemoryUse, Tiers, shortage, tiers_of
from orrery.execution.offload.work import Work
from orrery.execution.train.job import Task, TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device
from orrery.models.model import Model
from orrery.scenario.train_offload_work import pieces_of

V100 = get_device("v100-sxm-32gb")
HOST = {"host_bytes": 1.5e12, "host_memory_bytes_per_s": 256e9}


def layer_work(
    model: Model,
    device: Device,
    *,
    sequences: int,
    sequence_tokens: int,
    precision: str = "fp16",
    tp: int = 1,
    num_micro_batches: int = 1,
    is_attention_fused: bool = True,
    task: Task = "pretrain",
) -> Work:
    """The work of one of ``tp`` devices, as `orrery train --offload` sees it."""
    recipe = get_recipe(precision)
    framework = replace(get_framework("deepspeed", device, precision), has_fused_attention=is_attention_fused)
    job = TrainingJob(
        model=model,
        recipe=recipe,
        framework=framework,
        cluster=Cluster(device=device, num_devices=tp, devices_per_node=tp),
        seq_len=sequence_tokens,
        task=task,
        global_batch=sequences * num_micro_batches,
    )
    return pieces_of(job, TrainingLayout(tp=tp, micro_batch=sequences, is_sequence_parallel=False)).work


def work_of(size: float, **given: object) -> Work:
    return layer_work(gpt_of(size), V100, sequences=4, sequence_tokens=1024, **given)  # type: ignore[arg-type]


def step(name: str, work: Work, tiers: Tiers, **knobs: object) -> OffloadedStep:
    technique = OFFLOADS.get(name)
    return technique.rule(work, tiers, technique.knobs(**knobs))


def test_gpt_shapes_have_the_parameters_of_their_formula():
    model = gpt(96, 12288)
    assert sum(b.num_parameters for b in model.blocks) == 96 * (12 * 12288**2 + 13 * 12288)
    assert model.num_layers == 96
    assert gpt_of(13e9, hidden_size=5120).num_layers == 40
    for size in (1e9, 13e9, 175e9, 1e12):
        assert gpt_of(size).num_parameters == pytest.approx(size, rel=0.05)


def test_gpt_of_the_size_of_gpt_3_has_its_parameters():
    ours, published = gpt(40, 5120), get_model("gpt3-13b")
    assert sum(b.num_parameters for b in ours.blocks) == sum(b.num_parameters for b in published.blocks)


def test_work_of_gpt_3_13b():
    """Six flops a parameter and token; activations of 32 bytes a token and element: 213 GB as published."""
    work = layer_work(get_model("gpt3-13b"), get_device("rtx-4090"), sequences=32, sequence_tokens=1024)
    tokens = 32 * 1024
    assert work.num_parameters == pytest.approx(get_model("gpt3-13b").num_parameters, rel=1e-6)
    assert work.num_layers * work.activation_bytes == pytest.approx(213e9, rel=0.02)
    assert work.boundary_bytes == 2 * tokens * 5120
    assert work.kept_bytes == 9 * work.boundary_bytes
    assert work.logits_bytes == tokens * 51200 * 12
    assert 1.9 < work.backward_s / work.forward_s < 2.3
    assert work.weight_gradient_s < work.backward_s
    assert work.recompute_s <= work.forward_s


def test_work_is_cut_by_tensor_parallelism():
    one, two = (layer_work(gpt(4, 4096), V100, sequences=4, sequence_tokens=1024, tp=tp) for tp in (1, 2))
    assert two.num_parameters == pytest.approx(one.num_parameters / 2, rel=1e-4)  # norms are on both
    assert two.boundary_bytes == one.boundary_bytes
    assert one.activation_bytes / 2 < two.activation_bytes < one.activation_bytes
    assert two.forward_s < one.forward_s


def test_more_micro_batches_are_more_work_and_no_more_memory():
    one, four = (layer_work(gpt(4, 1024), V100, sequences=2, sequence_tokens=512, num_micro_batches=k) for k in (1, 4))
    assert replace(four, num_micro_batches=1) == one


def test_fp32_keeps_sixteen_bytes_a_parameter_too():
    single = layer_work(gpt(4, 1024), get_device("rtx-a6000"), sequences=2, sequence_tokens=512, precision="fp32")
    assert single.parameter_bytes + single.gradient_bytes + single.state_bytes == 16.0
    assert single.update_bytes == 28.0
    assert single.boundary_bytes == 2 * 2 * 2 * 512 * 1024


def test_unfused_attention_keeps_and_moves_the_scores():
    fused, plain = (
        layer_work(gpt(2, 2048), V100, sequences=2, sequence_tokens=1024, is_attention_fused=f) for f in (True, False)
    )
    row_sums = 4 * 16 * 2 * 1024
    assert plain.activation_bytes - fused.activation_bytes == 2 * 16 * 1024 * 2 * 1024 - row_sums
    assert plain.forward_s > fused.forward_s


def test_tiers_share_a_host():
    alone, shared = tiers_of(V100, **HOST), tiers_of(V100, **HOST, num_sharing=16, num_per_link=4)
    assert shared.host_bytes == alone.host_bytes / 16
    assert shared.host_memory_bytes_per_s == alone.host_memory_bytes_per_s / 16
    assert shared.host_link_each_way_bytes_per_s == alone.host_link_each_way_bytes_per_s / 4
    assert shared.gpu_bytes == alone.gpu_bytes < V100.memory_capacity_bytes


def test_one_v100_holds_1_4_billion_plain_and_13_billion_offloaded():
    tiers = tiers_of(V100, **HOST)
    for name, fits, fails in (("all-on-device", 1.4e9, 2.5e9), ("zero-offload", 13e9, 17e9)):
        assert shortage(step(name, work_of(fits), tiers).held, tiers) is None
        assert shortage(step(name, work_of(fails), tiers).held, tiers) is not None


def test_a_trillion_parameters_need_a_node_with_drives():
    tiers = tiers_of(V100, **HOST, nvme_bytes=28e12, num_sharing=16, num_ranks=16)
    work = layer_work(gpt(128, 25600, num_heads=160), V100, sequences=1, sequence_tokens=1024)
    assert shortage(step("zero-infinity", work, tiers).held, tiers) is None
    for changes in ({"parameters": "host"}, {"states": "host"}, {"states": "gpu"}):
        assert shortage(step("zero-infinity", work, tiers, **changes).held, tiers) is not None


def test_4_bit_adapters_fit_where_whole_training_does_not():
    tiers = tiers_of(get_device("rtx-a6000"))
    work = layer_work(get_model("llama-2-70b"), get_device("rtx-a6000"), sequences=1, sequence_tokens=512, task="lora")
    held = {bits: step("adapters-only", work, tiers, is_4bit=bits).held.gpu_bytes for bits in (True, False)}
    assert 0.516 * 68e9 < held[True] < 48e9 < 139e9 < held[False]


def a_step(size: float) -> OffloadedStep:
    """A step that holds one byte for each of the sizes that it is asked."""
    return OffloadedStep(step_s=1.0, held=MemoryUse(gpu_bytes=size), busy_s={}, choices={})


@pytest.mark.parametrize("limit", [2e8, 7.7e8, 1e9, 3.14e12])
def test_the_largest_model_is_where_memory_ends(limit):
    tiers = Tiers(gpu_bytes=limit, gpu_memory_bytes_per_s=1.0)
    found = largest_model(
        lambda w: a_step(w.num_layer_parameters), tiers, lambda size: replace(WORK, num_layer_parameters=size)
    )
    assert isinstance(found, Largest)
    assert limit / PRECISION_RATIO <= found.num_parameters <= limit
    assert found.infeasible is not None
    assert found.infeasible.have == limit < found.infeasible.need


WORK = layer_work(gpt(2, 256), V100, sequences=1, sequence_tokens=64)


def test_the_largest_model_may_be_all_that_was_asked_or_nothing():
    wide, narrow = (Tiers(gpu_bytes=b, gpu_memory_bytes_per_s=1.0) for b in (1e30, 1e3))
    requested = partial(largest_model, lambda w: a_step(w.num_layer_parameters))
    everything = requested(wide, lambda size: replace(WORK, num_layer_parameters=size), most_parameters=5e9)
    assert isinstance(everything, Largest)
    assert (everything.num_parameters, everything.infeasible) == (5e9, None)
    nothing = requested(narrow, lambda size: replace(WORK, num_layer_parameters=size))
    assert isinstance(nothing, Infeasible)
    assert nothing.need == 1e8


def test_bounds_the_wrong_way_round_are_refused():
    with pytest.raises(ScenarioError, match="write the least first"):
        largest_model(
            lambda w: a_step(w.num_layer_parameters),
            Tiers(gpu_bytes=1.0, gpu_memory_bytes_per_s=1.0),
            lambda _: WORK,
            least_parameters=2.0,
            most_parameters=1.0,
        )


def test_offloaded_rates_follow_the_host():
    """10B on a V100: a single small micro-batch waits for the host's update; many of them hide it."""
    tiers = tiers_of(V100, **HOST)
    few, many = (
        step(
            "zero-offload",
            layer_work(gpt(50, 4096), V100, sequences=4, sequence_tokens=1024, num_micro_batches=k),
            tiers,
        ).step_s
        / k
        for k in (1, 16)
    )
    assert many < few
