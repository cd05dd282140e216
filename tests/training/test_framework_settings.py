"""What releases and recipes of a framework change in a step, each worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from orrery import kernels
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import Use, get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.cut import choice_of
from orrery.execution.train.experts import activation_s, expert_casts, expert_streams
from orrery.execution.train.job import BASE_WEIGHTS, NF4_BYTES, TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.execution.train.units import units
from orrery.hardware.cluster import Cluster
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm
from orrery.models.shape import encoder_decoder_of_shape
from orrery.training.columns import columns_of
from orrery.training.step import step_of

BATCH, SEQ = 64, 4096


def job_of(
    model="qwen3-30b-a3b", device="gb200", recipe="mxfp8", framework="megatron-bridge", devices=8, use=None, **more
):
    found = get_device(device)
    return TrainingJob(
        model=get_model(model),
        cluster=Cluster(device=found, num_devices=devices, devices_per_node=8),
        framework=get_framework(framework, found, recipe, use or Use(version="26.04")),
        recipe=get_recipe(recipe),
        seq_len=SEQ,
        global_batch=BATCH,
        **more,
    )


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
    assert (f.fuses_experts, f.cuda_graphs == "full_iteration", f.overlaps_experts) == (is_new,) * 3
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
    """16 experts of 1,024 rows on each rank: 14 bytes an element in kernels of each expert and 14 in kernels of all, 30
    and 10 on the way back; a sum moves six."""
    job, choice = job_of("gpt-oss-120b", recipe="bf16"), choice_of([TrainingLayout(dp=8, ep=8)])
    experts = job.model.blocks[-1].experts
    found, plain = (expert_streams(job, replace(experts, has_bias=b), choice) for b in (True, False))
    each, whole = 16.0 * seconds(job, "add", 1024, 2880) / 6.0, seconds(job, "add", 16384, 2880) / 6.0
    assert found.forward_s[0] - plain.forward_s[0] == pytest.approx(14.0 * each + 14.0 * whole, rel=1e-9)
    assert found.backward_s[0] - plain.backward_s[0] == pytest.approx(30.0 * each + 10.0 * whole, rel=1e-9)


def test_limits_of_an_activation_are_passes_before_it():
    """Both halves in and out and put together, 8 words; on the way back masked and put together, 10; a sum has 3."""
    job, choice = job_of("gpt-oss-120b", recipe="bf16"), choice_of([TrainingLayout(dp=8, ep=8)])
    experts = job.model.blocks[-1].experts
    assert experts.is_clamped
    assert not job_of().model.blocks[-1].experts.is_clamped
    found, plain = (expert_streams(job, replace(experts, is_clamped=c), choice) for c in (True, False))
    word = seconds(job, "add", 16384, 2880) / 3.0
    assert found.forward_s[0] - plain.forward_s[0] == pytest.approx(8.0 * word, rel=1e-9)
    assert found.backward_s[0] - plain.backward_s[0] == pytest.approx(10.0 * word, rel=1e-9)
    once = seconds(job, "gated_activation", 16384, 2880)
    assert activation_s(job, experts, choice)[0] == pytest.approx(once + 8.0 * word, rel=1e-9)
    fused = [
        expert_streams(changed(job, fuses_experts=True), replace(experts, is_clamped=c), choice) for c in (True, False)
    ]
    assert fused[0].forward_s[0] == fused[1].forward_s[0]


def test_a_rotation_that_stretches_has_no_fused_kernel():
    """64 + 8 heads of 64 elements: 12 words for a fused rotation's two, and 17 on the way back."""
    job, choice = job_of("gpt-oss-120b", recipe="bf16"), choice_of([TrainingLayout(dp=8, ep=8)])
    apart, fused = (units(changed(job, turns_stretched_apart=a), choice).layer for a in (True, False))
    word = seconds(job, "rope", SEQ, 72 * 64) / 2.0
    assert apart.stream_forward_s[0] - fused.stream_forward_s[0] == pytest.approx(10.0 * word, rel=1e-9)
    assert apart.stream_backward_s[0] - fused.stream_backward_s[0] == pytest.approx(15.0 * word, rel=1e-9)
    assert job.framework.turns_stretched_apart
    plain = job_of()
    assert plain.model.rotation.magnitude_ratio == 1.0
    same = [units(changed(plain, turns_stretched_apart=a), choice).layer.stream_forward_s[0] for a in (True, False)]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("device", "modules"), [("gb200", "layernorm,moe_act"), ("h100-sxm", "layernorm,moe_act"), ("gb300", "")]
)
def test_a_recipe_recomputes_on_some_devices(device, modules):
    use = Use(version="26.04", model="openai/gpt-oss-120b")
    f = get_framework("megatron-bridge", get_device(device), "bf16", use)
    assert (f.recompute, f.recompute_modules) == ("selective" if modules else "none", modules)


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
    assert step(changed(slow, cuda_graphs="full_iteration")).parts["launches"][0] == 0.0


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
    """Of a layer of Llama 2 7B: the inputs of attention, of the feed-forward part and of its last product; attention's
    own output is kept anyway, and low-rank additions keep copies of theirs."""
    choice = choice_of([TrainingLayout()])
    retained = {
        keeps: units(changed(adapted("qlora"), keeps_frozen_inputs=keeps), choice).layer.everything_bytes[0]
        for keeps in (False, True)
    }
    assert retained[True] - retained[False] == pytest.approx(2.0 * SEQ * (4096 + 4096 + 11008), rel=1e-9)
    assert adapted("qlora").framework.keeps_frozen_inputs
    assert not adapted("qlora", framework="torchtune").framework.keeps_frozen_inputs


def test_frozen_weights_have_the_format_that_is_said():
    """NF4 has an FP32 scale for 64 weights: half a byte and a sixteenth; quantised scales take less."""
    assert BASE_WEIGHTS == {"nf4": 0.5625, "nf4-dq": NF4_BYTES}
    held = {f: step_of(adapted("adapter", base_weights=f), columns_of([TrainingLayout()])).first for f in ("", "nf4")}
    weights = {f: h.parts["weights"][0] / adapted().model.num_parameters for f, h in held.items()}
    assert weights[""] == pytest.approx(2.0, rel=0.02)
    ends = 32000 * 4096 / 6.738e9  # the embedding stays in 16 bits
    assert weights["nf4"] == pytest.approx(0.5625 + (2.0 - 0.5625) * ends, rel=0.01)
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
        batch=2 * 22,
        query_tokens=180,
        context_tokens=180,
        num_heads=32,
        num_kv_heads=8,
        head_size=128,
        value_head_size=128,
        format="bf16",
        kv_format="bf16",
        window_tokens=0,
        is_causal=True,
    )
    assert packed == pytest.approx(
        float(kernels.predict(op, job.cluster.device, job.framework.kernels).time_s), rel=1e-9
    )
    assert packed < whole / 2
    assert get_framework("nemo", use=Use(task="pretrain")).packed_tokens == 0.0


def test_low_rank_additions_keep_inputs_behind_their_dropouts():
    """Into attention alone: 16 bits and a mask for 4,096 elements, in place of the norm's output. Beside everything:
    queries, keys and values; output; gate; up (4,096 each); down (11,008)."""
    choice = choice_of([TrainingLayout()])

    def retained(**facts):
        return units(changed(adapted(), **facts), choice).layer.everything_bytes[0]

    plain = retained(drops_adapted=False, adapter_targets="qkv")
    assert retained(drops_adapted=True) - plain == pytest.approx((3 - 2) * SEQ * 4096, rel=1e-9)
    whole = retained(drops_adapted=True, adapter_targets="all-linear") - plain
    assert whole == pytest.approx(SEQ * (3 * (4 * 4096 + 11008) - 2 * 4096), rel=1e-9)
    shared = retained(drops_adapted=False, adapter_targets="all-linear") - plain
    assert shared == pytest.approx(2 * SEQ * (4096 + 11008), rel=1e-9)  # without dropouts gate and up share one
    trained = [
        units(changed(adapted(), adapter_targets=a), choice).layer.trained_parameters[0] for a in ("qkv", "all-linear")
    ]
    sizes = (4096 + 12288) + (4096 + 4096) + (4096 + 22016) + (11008 + 4096)
    assert trained[1] / trained[0] == pytest.approx(sizes / (4096 + 12288), rel=1e-9)
    use = Use(task="lora", model="microsoft/phi-2")
    assert get_framework("litgpt", use=use).adapter_targets == "all-linear"
    assert adapted().framework.adapter_targets == "qkv"


def test_quantised_models_keep_their_ends_wide_and_widen_one_weight_at_a_time():
    """Llama 2 7B in NF4: 32,000 x 4,096 of the embedding in 16 bits, and of the head where it is not quantised; the
    largest weight in 16 bits is the head, else gate and up together."""
    ends, columns = 32000 * 4096, columns_of([TrainingLayout()])
    job = changed(adapted("qlora"), logits_bytes=0.0)  # logits would hide it
    found = {q: step_of(changed(job, quantises_head=q), columns) for q in (True, False)}
    each = adapted("qlora").model.num_parameters
    for q, times in ((True, 1), (False, 2)):
        weights = found[q].first.parts["weights"][0]
        added = adapted("qlora").framework.weights_bytes * 16 * 32 * (4096 + 12288)
        assert weights == pytest.approx(NF4_BYTES * each + times * (2.0 - NF4_BYTES) * ends + added, rel=2e-3)
    f = adapted("qlora").framework
    less = found[True].first.total[0] - found[False].first.total[0]
    widened = 2.0 * (ends - 2 * 11008 * 4096)
    assert less == pytest.approx(f.fragmentation_ratio * widened - (2.0 - NF4_BYTES) * ends, rel=1e-4)


def test_attention_through_scores_is_two_products_and_passes_over_the_scores():
    """GPT-3 175B, 12 of 96 heads of 128: 4,096 x 4,096 scores each. A fused mask reads half of them and writes all (1.5
    words), back reads half twice and writes all (2); else 2 and 3. Dropout moves one, one and half a mask each way."""
    job = changed(job_of("gpt3-175b", "a100-sxm-80gb", "fp16", "megatron-deepspeed"), has_dropout=True)
    assert (job.framework.has_fused_attention, job.framework.is_fused) == (False, True)
    choice = choice_of([TrainingLayout(tp=8)])
    found, plain, dry = (
        units(changed(job, **facts), choice).layer for facts in ({}, {"is_fused": False}, {"has_dropout": False})
    )
    products = [Gemm(m=SEQ, n=n, k=k, batch=12, format="fp16") for n, k in ((SEQ, 128), (128, SEQ))]
    both = sum(float(kernels.predict(p, job.cluster.device, job.framework.kernels).time_s) for p in products)
    assert found.score_products_s[0] == pytest.approx(both, rel=1e-9)
    word, dropped = seconds(job, "softmax", 12 * SEQ, SEQ) / 2.0, 2.5 / 3.0 * seconds(job, "add", 12 * SEQ, SEQ)
    assert found.score_forward_s[0] == pytest.approx(1.5 * word + dropped, rel=1e-9)
    assert found.score_backward_s[0] == pytest.approx(2.0 * word + dropped, rel=1e-9)
    assert plain.score_forward_s[0] == pytest.approx(2.0 * word + dropped, rel=1e-9)
    assert plain.score_backward_s[0] == pytest.approx(3.0 * word + dropped, rel=1e-9)
    assert dry.score_forward_s[0] == pytest.approx(1.5 * word, rel=1e-9)
    f = replace(job.framework, matrix_ratio=2.0, elementwise_ratio=3.0, attention_ratio=5.0)
    assert found.core_forward_s(f)[0] == pytest.approx(2.0 * both + 3.0 * (1.5 * word + dropped), rel=1e-9)
    assert found.core_backward_s(f)[0] == pytest.approx(4.0 * both + 3.0 * (2.0 * word + dropped), rel=1e-9)
    fused = units(changed(job, has_fused_attention=True), choice).layer
    assert fused.core_forward_s(f)[0] == pytest.approx(5.0 * fused.attention_forward_s[0], rel=1e-9)
    assert fused.core_backward_s(f)[0] == pytest.approx(12.5 * fused.attention_forward_s[0], rel=1e-9)
    assert (fused.score_products_s[0], found.attention_forward_s[0]) == (0.0, 0.0)


def test_a_decoder_of_fewer_tokens_costs_as_one_of_that_length():
    """T5: 512 tokens before 128. Layers of the encoder are those of a job of 512, the decoder and the head of 128."""
    shape = encoder_decoder_of_shape(num_layers=24, hidden_size=1024, num_heads=16)
    job = replace(job_of(device="a100-sxm-80gb", recipe="bf16", framework="nemo"), model=shape, seq_len=512)
    choice = choice_of([TrainingLayout(dp=8)])
    apart, long, short = (units(x, choice) for x in (replace(job, decoder_seq_len=128), job, replace(job, seq_len=128)))
    before = len(shape.encoder)
    for i, (_, layer) in enumerate(apart.kinds):
        like = (long if i < before else short).kinds[i][1]
        assert layer.products.forward_s[0] == like.products.forward_s[0]
        assert layer.everything_bytes[0] == like.everything_bytes[0]
        assert layer.attention_forward_s[0] == like.attention_forward_s[0]
    assert apart.head.products.forward_s[0] == short.head.products.forward_s[0]
    assert apart.head.stream_forward_s[0] == short.head.stream_forward_s[0]
    assert apart.embedding.stream_forward_s[0] == long.embedding.stream_forward_s[0]
