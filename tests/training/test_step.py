"""A training step: parts that add up, numbers worked by hand, and one answer for one layout or many."""

from dataclasses import fields, replace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.cut import choice_of
from orrery.execution.train.job import Islands, TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.execution.train.units import units
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Link
from orrery.models.shape import model_of_shape
from orrery.training.columns import columns_of
from orrery.training.ranks import ranks_of
from orrery.training.step import PARTS, bounds_of, step_of
from orrery.training.worth import mfu_frac, power_w, work_power_w

LAYOUTS = (
    TrainingLayout(tp=8, pp=8, dp=1, micro_batch=1),
    TrainingLayout(tp=8, pp=8, vp=3, dp=1, micro_batch=1, recompute="selective", schedule="interleaved"),
    TrainingLayout(tp=4, pp=2, dp=8, micro_batch=2, recompute="full", sharding="zero1"),
    TrainingLayout(tp=2, cp=2, pp=4, dp=4, micro_batch=1, schedule="zero-bubble-h1", sharding="zero1"),
    TrainingLayout(tp=2, dp=32, micro_batch=2, sharding="zero3", recompute="full", recompute_layers=10),
    TrainingLayout(dp=64, micro_batch=1, sharding="zero3", sharding_group=8, is_sequence_parallel=False),
    TrainingLayout(tp=8, cp=8, micro_batch=1, context_kind="all-to-all", recompute="full"),
)


def job_of(
    model="gpt3-175b",
    device="a100-sxm-80gb",
    devices=64,
    framework="megatron-lm",
    recipe="bf16",
    batch=64,
    seq=2048,
    **more,
):
    found = get_device(device)
    return TrainingJob(
        model=get_model(model) if isinstance(model, str) else model,
        cluster=Cluster(device=found, num_devices=devices, devices_per_node=8),
        framework=get_framework(framework, found, recipe),
        recipe=get_recipe(recipe),
        seq_len=seq,
        global_batch=batch,
        **more,
    )


def time_of(job, layout):
    return float(step_of(job, columns_of([layout])).time_s[0])


def test_parts_add_up_and_none_is_negative():
    steps = step_of(job_of(), columns_of(LAYOUTS))
    assert tuple(steps.parts) == PARTS
    assert np.allclose(sum(steps.parts.values()), steps.time_s, rtol=1e-12)
    assert all((value >= 0).all() for value in steps.parts.values())
    assert all((value >= 0).all() for value in (*steps.first.parts.values(), *steps.last.parts.values()))


def test_many_layouts_get_the_answers_of_each_alone():
    job, together = job_of(), step_of(job_of(), columns_of(LAYOUTS))
    for i, layout in enumerate(LAYOUTS):
        alone = step_of(job, columns_of([layout]))
        for name in PARTS:
            assert alone.parts[name][0] == pytest.approx(together.parts[name][i], rel=1e-12, abs=1e-15), (layout, name)
        assert alone.memory_bytes[0] == pytest.approx(together.memory_bytes[i], rel=1e-12)


def test_a_layer_of_gpt_keeps_what_korthikanti_counts():
    """34 s b h + 5 a s^2 b bytes without fusion and with dropout, all over t with sequence parallelism."""
    job = job_of(batch=1)
    job = replace(job, framework=replace(job.framework, has_fused_attention=False, has_dropout=True))
    for tp in (1, 8):
        layer = units(job, choice_of([TrainingLayout(tp=tp)])).layer
        s, h, a = 2048, 12288, 96
        assert layer.everything_bytes[0] == pytest.approx((34 * s * h + 5 * a * s * s) / tp, rel=1e-3)
        assert layer.selective_bytes[0] == pytest.approx(34 * s * h / tp, rel=1e-3)
        assert layer.boundary_bytes[0] == 2 * s * h / tp


def test_operations_are_six_per_parameter_and_token():
    job = job_of(batch=8, devices=8)
    flops = step_of(job, columns_of([TrainingLayout(tp=8)])).model_flops[0]
    tokens = 8 * 2048
    linear = 6.0 * (job.model.num_parameters - job.model.embedding_parameters + 50257 * 12288) * tokens
    core = 6.0 * 96 * 12288 * (2049 / 2) * 2 * tokens
    assert flops == pytest.approx(linear + core, rel=2e-3)


def test_state_takes_eighteen_bytes_a_parameter_and_sharding_divides_it():
    job = job_of("gpt3-1.3b", devices=8, batch=64)
    plain = step_of(job, columns_of([TrainingLayout(dp=8)])).first.parts
    held = plain["weights"][0] + plain["gradients"][0] + plain["optimizer"][0]
    assert held == pytest.approx(18.0 * job.model.num_parameters, rel=1e-3)
    for sharding, bytes_each in (("zero1", 6 + 12 / 8), ("zero2", 2 + 16 / 8), ("zero3", 18 / 8)):
        parts = step_of(job, columns_of([TrainingLayout(dp=8, sharding=sharding)])).first.parts
        held = parts["weights"][0] + parts["gradients"][0] + parts["optimizer"][0]
        assert held == pytest.approx(bytes_each * job.model.num_parameters, rel=1e-3), sharding


def test_more_micro_batches_cost_their_own_time_and_nothing_else():
    """t(m) is a straight line in m: the slope is a micro-batch, the rest is the bubble and what happens once."""
    layout = TrainingLayout(tp=8, pp=8)
    t = [time_of(job_of(batch=m), layout) for m in (64, 128, 256)]
    assert t[2] - t[1] == pytest.approx(2 * (t[1] - t[0]), rel=1e-9)


def test_the_bubble_of_1f1b_is_its_share():
    """(pp - 1) / m of the work of a micro-batch on an even pipeline. [megatron-lm-2021]"""
    job = job_of(batch=64)
    parts = step_of(job, columns_of([TrainingLayout(tp=8, pp=8)])).parts
    busy = sum(parts[n][0] for n in ("forward", "backward", "weight gradients", "tensor parallel", "launches"))
    assert parts["bubble"][0] / busy == pytest.approx(7 / 64, rel=0.06)  # the last stage's head is not waited for
    chunks = step_of(job, columns_of([TrainingLayout(tp=8, pp=8, vp=3, schedule="interleaved")])).parts
    assert chunks["bubble"][0] == pytest.approx(parts["bubble"][0] / 3, rel=0.02)


def test_every_rank_of_1f1b_holds_one_micro_batch_less():
    ranks = ranks_of(job_of(batch=64), TrainingLayout(tp=8, pp=8))
    assert [r.in_flight for r in ranks] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert ranks[0].parts["logits"] == 0
    assert ranks[-1].parts["logits"] > 0
    steps = step_of(job_of(batch=64), columns_of([TrainingLayout(tp=8, pp=8)]))
    assert max(r.peak_bytes for r in ranks) == pytest.approx(steps.memory_bytes[0])


def test_bounds_are_below_the_cost():
    job, x = job_of(), columns_of(LAYOUTS)
    found = units(job, choice_of(LAYOUTS))
    bounds, steps = bounds_of(job, x, (found, np.arange(len(LAYOUTS)))), step_of(job, x)
    assert (bounds.time_s <= steps.time_s).all()
    assert (bounds.memory_bytes <= steps.memory_bytes).all()


def test_recomputation_trades_time_for_memory():
    job = job_of()
    none, full = (step_of(job, columns_of([TrainingLayout(tp=8, pp=8, recompute=r)])) for r in ("none", "full"))
    part = step_of(job, columns_of([TrainingLayout(tp=8, pp=8, recompute="full", recompute_layers=6)]))
    assert none.time_s[0] < part.time_s[0] < full.time_s[0]
    assert none.memory_bytes[0] > part.memory_bytes[0] > full.memory_bytes[0]
    assert full.parts["recomputation"][0] == pytest.approx(2 * part.parts["recomputation"][0])


def test_a_slower_link_between_islands_costs_where_groups_cross_it():
    link = Link(name="slow", each_way_bytes_per_s=1e8, latency_s=1e-3)
    near = Islands(num_devices=32, link=link)
    inside = TrainingLayout(tp=8, pp=2, dp=4)  # data ranks stay on an island, stages do not
    across = TrainingLayout(tp=8, pp=1, dp=8)
    for layout, most in ((inside, 1.6), (across, 1e9)):
        plain, islands = time_of(job_of("gpt3-13b"), layout), time_of(job_of("gpt3-13b", islands=near), layout)
        assert plain < islands < most * plain
    assert time_of(job_of("gpt3-13b", islands=near), inside) < time_of(job_of("gpt3-13b", islands=near), across)


def test_frozen_weights_have_no_gradients():
    """Low-rank additions have gradients of their own, a hundredth of the model's, and state for themselves alone."""
    job = job_of("llama-3.1-8b", devices=1, batch=4, framework="litgpt", task="lora", adapter_rank=8)
    parts = step_of(job, columns_of([TrainingLayout()]))
    whole = step_of(replace(job, task="full_finetune"), columns_of([TrainingLayout()]))
    assert 0 < parts.parts["weight gradients"][0] < 0.05 * whole.parts["weight gradients"][0]
    adapters = 32 * 8 * (4096 + 6144)
    assert parts.first.parts["optimizer"][0] < 20 * adapters
    assert parts.first.parts["weights"][0] == pytest.approx(2 * job.model.num_parameters, rel=0.01)
    narrow = step_of(replace(job, task="qlora"), columns_of([TrainingLayout()]))
    embedding = 128256 * 4096  # stays in 16 bits
    narrowed = parts.first.parts["weights"][0] - narrow.first.parts["weights"][0]
    assert narrowed > 0.7 * 2 * (job.model.num_parameters - embedding)


def test_four_bit_weights_are_widened_in_every_pass():
    """Reading 4 bits and writing 16 takes at least the memory's time, whatever the number of tokens."""
    device = get_device("a100-sxm-80gb")
    for batch in (1, 4):
        job = job_of("llama-3.1-8b", devices=1, batch=batch, framework="litgpt", task="lora", adapter_rank=8)
        wide, narrow = (
            units(replace(job, task=task), choice_of([TrainingLayout(micro_batch=batch)])).layer
            for task in ("lora", "qlora")
        )
        least_s = wide.dense_parameters[0] * 2.5 / device.memory_bandwidth_bytes_per_s
        for direction in ("cast_forward_s", "cast_backward_s"):
            more_s = getattr(narrow, direction)[0] - getattr(wide, direction)[0]
            assert least_s < more_s < 2 * least_s


def test_experts_are_dealt_out():
    model = model_of_shape(
        name="moe",
        num_layers=8,
        hidden_size=2048,
        num_heads=16,
        ffn_size=4096,
        vocab_size=32000,
        gated_ffn=True,
        num_experts=16,
        experts_per_token=2,
        moe_ffn_size=4096,
    )
    job = job_of(model, devices=16, batch=64)
    alone, dealt = TrainingLayout(dp=16), TrainingLayout(dp=16, ep=8)
    one, many = (units(job, choice_of([x])).layer for x in (alone, dealt))
    assert many.expert_parameters[0] == one.expert_parameters[0] / 8
    assert many.expert_forward_s[0] > 0 == one.expert_forward_s[0]
    assert many.forward_flops[0] == one.forward_flops[0]


def test_utilisation_and_power_stay_within_the_device():
    steps = step_of(job_of(), columns_of(LAYOUTS))
    device = steps.job.cluster.device
    assert ((mfu_frac(steps) > 0) & (mfu_frac(steps) < 1)).all()
    assert ((power_w(steps) >= device.idle_power_w) & (power_w(steps) <= device.power_limit_w)).all()


def test_power_counts_each_operation_against_the_peak_of_its_format():
    """1 s on H100 with 4e14 operations, three in four in FP8 (1,979 T/s) and one in BF16 (989 T/s), and 1e12 bytes."""
    job = job_of(device="h100-sxm", recipe="fp8")
    device = job.cluster.device
    found = work_power_w(job, np.array([4e14]), np.array([0.25]), np.array([1e12]), np.array([1.0]))
    busy_s = 3e14 / 1979e12 + 1e14 / 989.5e12
    share = 1.0393 * busy_s**0.2 + 0.1845 * (1e12 / 3.35e12) ** 0.2
    assert share < 1.0
    span = device.power_limit_w - device.idle_power_w
    assert float(found[0]) == pytest.approx(device.idle_power_w + span * share, rel=1e-3)
    idle = work_power_w(job, np.array([0.0]), np.array([0.25]), np.array([0.0]), np.array([1.0]))
    assert float(idle[0]) == device.idle_power_w
    most = work_power_w(job, np.array([2e15]), np.array([0.25]), np.array([1e12]), np.array([1.0]))
    assert float(most[0]) == pytest.approx(device.power_limit_w)


def test_operations_outside_a_narrow_recipe_are_those_of_attention_and_the_head():
    """By hand: attention and the head three times each (forward and both gradients), and attention once more again."""
    job = job_of(device="h100-sxm", devices=8, recipe="fp8")
    layouts = [TrainingLayout(dp=8), TrainingLayout(dp=8, recompute="full")]
    found = units(job, choice_of([layouts[0]]))
    core, linear = (found.num_layers * float(x[0]) for x in (found.layer.attention_flops, found.layer.forward_flops))
    head, left = float(found.head.forward_flops[0]), found.num_layers * float(found.layer.unmade_flops[0])
    plain, again = (step_of(job, columns_of([x])).wide_frac[0] for x in layouts)
    assert plain == pytest.approx((3 * core + 3 * head) / (3 * core + 3 * head + 3 * linear))
    assert again == pytest.approx((4 * core + 3 * head) / (4 * core + 3 * head + 4 * linear - left))


def test_a_fast_time_unit_scales_the_step():
    """Rates twice as fast and times half as long: everything follows, so no constant hides in the arithmetic."""
    job = job_of()
    f = job.framework
    halved = replace(f, host_layer_s=f.host_layer_s * 1e3, step_s=f.step_s * 1e3, host_collective_s=f.host_collective_s)
    assert time_of(replace(job, framework=halved), LAYOUTS[0]) > 0.999 * f.step_s * 1e3
    assert {x.name for x in fields(TrainingLayout)} >= {"tp", "pp", "dp", "cp", "ep"}
