"""What releases and recipes of a framework change in a step, each worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from orrery import kernels
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import Use, get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.cut import choice_of
from orrery.execution.train.experts import expert_casts, expert_streams
from orrery.execution.train.job import BASE_WEIGHTS, NF4_BYTES, TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.execution.train.units import units
from orrery.hardware.cluster import Cluster
from orrery.kernels.ops import AttentionPrefill, Elementwise
from orrery.training.columns import columns_of
from orrery.training.step import step_of

BATCH, SEQ = 64, 4096


def job_of(model="qwen3-30b-a3b", device="gb200", recipe="mxfp8", framework="megatron-bridge", devices=8, use=None,
           **more):  # fmt: skip
    found = get_device(device)
    return TrainingJob(
        model=get_model(model), cluster=Cluster(device=found, num_devices=devices, devices_per_node=8),
        framework=get_framework(framework, found, recipe, use or Use(version="26.04")), recipe=get_recipe(recipe),
        seq_len=SEQ, global_batch=BATCH, **more,
    )  # fmt: skip


def changed(job, **facts):
    return replace(job, framework=replace(job.framework, **facts))


def seconds(job, kind, rows, width):
    op = Elementwise(kind=kind, tokens=np.array([rows]), width=np.array([width]))
    return float(kernels.predict(op, job.cluster.device, job.framework.kernels).time_s[0])


def step(job, **layout):
    return step_of(job, columns_of([TrainingLayout(**({"dp": 8, "ep": 8, "sharding": "zero1"} | layout))]))


@pytest.mark.parametrize(
    ("device", "recipe", "version", "is_new"),
    [
        ("gb200", "mxfp8", "26.04.01", False),
        ("gb200", "mxfp8", "26.06", True),
        ("gb300", "mxfp8", "", True),  # who states no version has the newest
        ("gb200", "mxfp8", "unknown", False),
        ("gb200", "bf16", "26.06", False),
        ("h100-sxm", "fp8", "26.06", False),
    ],
)
def test_bridge_fuses_experts_from_a_release_on(device, recipe, version, is_new):
    f = get_framework("megatron-bridge", get_device(device), recipe, Use(version=version))
    assert (f.fuses_experts, f.has_graphed_step, f.overlaps_experts) == (is_new,) * 3
    assert f.attention_format == ("fp8" if is_new else "")


def test_a_fused_loss_reads_twice_and_writes_once_then_scales():
    """Three words of 16 bits for each logit, as a sum moves, and two on the way back."""
    job, choice = job_of(recipe="bf16"), choice_of([TrainingLayout(dp=8)])
    rows = seconds(job, "add", SEQ, job.model.vocab_size)
    norm = seconds(job, "norm", SEQ, job.model.hidden_size)
    head = units(changed(job, fuses_loss=True), choice).head
    assert head.stream_forward_s[0] == pytest.approx(norm + rows, rel=1e-12)
    assert head.stream_backward_s[0] == pytest.approx(1.5 * norm + 2.0 / 3.0 * rows, rel=1e-12)
    apart = units(changed(job, fuses_loss=False), choice).head
    soft = seconds(job, "softmax", SEQ, job.model.vocab_size)
    assert apart.stream_forward_s[0] == pytest.approx(norm + 3.0 * soft, rel=1e-12)
    assert apart.stream_backward_s[0] == pytest.approx(1.5 * norm + 2.0 * soft, rel=1e-12)


def test_fused_experts_leave_the_casts_of_rows_that_come_from_outside():
    """128 experts of 768 over eight ranks, eight of them a token: 32,768 rows of 2,048 on each."""
    job, choice = job_of(), choice_of([TrainingLayout(dp=8, ep=8)])
    experts = job.model.blocks[-1].experts
    rows, once = SEQ * 8, job.recipe.input_casts * seconds(job, "quantise", SEQ * 8, 2048)
    fused = expert_casts(changed(job, fuses_experts=True), experts, choice)
    assert fused.forward_s[0] == pytest.approx(once, rel=1e-12)
    assert fused.backward_s[0] == pytest.approx(once, rel=1e-12)
    apart = expert_casts(changed(job, fuses_experts=False), experts, choice)
    both = job.recipe.input_casts * seconds(job, "quantise", rows, 2048 + 768)
    assert apart.forward_s[0] == pytest.approx(both, rel=1e-12)
    streams = [expert_streams(changed(job, fuses_experts=is_so), experts, choice) for is_so in (False, True)]
    activation = seconds(job, "gated_activation", rows, 768)
    assert streams[0].forward_s[0] - streams[1].forward_s[0] == pytest.approx(activation, rel=1e-9)
    assert streams[0].backward_s[0] - streams[1].backward_s[0] == pytest.approx(5.0 / 3.0 * activation, rel=1e-9)


def test_biased_experts_add_their_biases_in_passes_of_their_own():
    """28 bytes an element of what leaves the experts, and 36 on the way back; a sum moves six."""
    job, choice = job_of("gpt-oss-120b", recipe="bf16"), choice_of([TrainingLayout(dp=8, ep=8)])
    experts = job.model.blocks[-1].experts
    found, plain = (expert_streams(job, replace(experts, has_bias=b), choice) for b in (True, False))
    once = seconds(job, "add", SEQ * 4, 2880) / 6.0
    assert found.forward_s[0] - plain.forward_s[0] == pytest.approx(28.0 * once, rel=1e-9)
    assert found.backward_s[0] - plain.backward_s[0] == pytest.approx(36.0 * once, rel=1e-9)


def test_an_overlapped_exchange_hides_in_all_micro_batches_but_one():
    """Eight micro-batches: in seven the exchange runs beside products that take longer, and only slows them."""
    job = changed(job_of(recipe="bf16"), host_layer_s=0.0, host_expert_s=0.0, host_collective_s=0.0)
    plain = float(step(job).parts["expert parallel"][0])
    hidden = float(step(changed(job, overlaps_experts=True)).parts["expert parallel"][0])
    ratio = job.framework.contention_ratio - 1.0
    assert hidden == pytest.approx(plain * (1.0 / 8.0 + 7.0 / 8.0 * min(ratio, 1.0)), rel=1e-9)
    stages = {"pp": 2, "dp": 4, "ep": 4}
    same = [float(step(changed(job, overlaps_experts=o), **stages).parts["expert parallel"][0]) for o in (False, True)]
    assert same[0] == same[1], "a pipeline without chunks has no second micro-batch at hand"


def test_a_recorded_step_launches_nothing():
    slow = changed(job_of(), host_layer_s=1.0)
    assert step(slow).parts["launches"][0] > 0.0
    assert step(changed(slow, has_graphed_step=True)).parts["launches"][0] == 0.0


def test_attention_in_eight_bits_is_faster():
    choice = choice_of([TrainingLayout(dp=8, ep=8)])
    layers = [units(changed(job_of(), attention_format=f), choice).layer for f in ("", "fp8")]
    assert layers[1].attention_forward_s[0] < layers[0].attention_forward_s[0]
    assert layers[1].attention_backward_s[0] == pytest.approx(2.5 * layers[1].attention_forward_s[0])


def adapted(task="lora", devices=1, framework="litgpt", **more):
    use = Use(task=task, is_alone=devices == 1)
    return job_of("llama-2-7b", "a100-sxm-40gb", "bf16_pure", framework, devices, use, task=task, **more)


def test_a_checkpoint_that_is_loaded_whole_stands_beside_the_shards():
    """Two devices: a half and a whole of the 16-bit weights, before there is anything else."""
    job = adapted(devices=2)
    assert (job.framework.recompute, job.framework.loads_whole) == ("full", True)
    layout = TrainingLayout(dp=2, sharding="zero3", recompute="full")
    held = step_of(job, columns_of([layout])).first
    weights = 2.0 * job.model.num_parameters
    assert held.total[0] == pytest.approx(1.5 * weights + job.framework.fixed_bytes, rel=3e-3)
    without = step_of(changed(job, loads_whole=False), columns_of([layout])).first
    assert without.total[0] < held.total[0] - 0.4 * weights


def test_quantised_products_keep_what_nothing_reads():
    """Of a layer of Llama 2 7B: the input of the feed-forward part and of its last product, besides attention's."""
    choice = choice_of([TrainingLayout()])
    kept = {
        keeps: units(changed(adapted("qlora"), keeps_frozen_inputs=keeps), choice).layer.everything_bytes[0]
        for keeps in (False, True)
    }
    assert kept[True] - kept[False] == pytest.approx(2.0 * SEQ * (4096 + 11008), rel=1e-9)
    assert adapted("qlora").framework.keeps_frozen_inputs
    assert not adapted("qlora", framework="torchtune").framework.keeps_frozen_inputs


def test_frozen_weights_have_the_format_that_is_said():
    """NF4 has an FP32 scale for 64 weights: half a byte and a sixteenth; quantised scales take less."""
    assert BASE_WEIGHTS == {"nf4": 0.5625, "nf4-dq": NF4_BYTES}
    held = {f: step_of(adapted("adapter", base_weights=f), columns_of([TrainingLayout()])).first for f in ("", "nf4")}
    weights = {f: h.parts["weights"][0] / adapted().model.num_parameters for f, h in held.items()}
    assert weights[""] == pytest.approx(2.0, rel=0.02)
    assert weights["nf4"] == pytest.approx(0.5625, rel=0.05)
    assert adapted("qlora").base_format == "nf4-dq"
    assert adapted("qlora").gathered_weight_bytes == NF4_BYTES


def test_torchtune_on_one_device_updates_as_it_goes_with_paged_moments():
    alone, many = (get_framework("torchtune", use=Use(task="full_finetune", is_alone=one)) for one in (True, False))
    assert (alone.gradient_bytes, alone.moments_bytes) == (0.0, 0.0)
    assert (many.gradient_bytes, many.moments_bytes) == (2.0, 4.0)


def test_packed_samples_see_no_further_than_themselves():
    """4,096 tokens as 22 samples of 180 in one kernel: 22 x 180^2 pairs for 4,096^2, less what tiles pad."""
    job = job_of("llama-3-8b", "h100-sxm", "bf16", "nemo", 8, Use(task="lora"), task="lora")
    assert job.framework.packed_tokens == 180
    choice = choice_of([TrainingLayout(dp=8, micro_batch=2)])
    packed, whole = (units(changed(job, packed_tokens=n), choice).layer.attention_forward_s[0] for n in (180.0, 0.0))
    op = AttentionPrefill(
        batch=2 * 22, query_tokens=180, context_tokens=180, num_heads=32, num_kv_heads=8, head_size=128,
        value_head_size=128, format="bf16", kv_format="bf16", window_tokens=0, is_causal=True,
    )  # fmt: skip
    assert packed == pytest.approx(
        float(kernels.predict(op, job.cluster.device, job.framework.kernels).time_s), rel=1e-9
    )
    assert packed < whole / 2
    assert get_framework("nemo", use=Use(task="pretrain")).packed_tokens == 0.0
