"""Memory of a training step worked by hand: what a layer keeps, holds for a moment, and leaves out when made again."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.again import again_of
from orrery.execution.train.cut import choice_of
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.modules import MODULES, check_modules, mask_of, modules_of, read_modules
from orrery.execution.train.recipe_registry import get_recipe
from orrery.execution.train.units import units
from orrery.hardware.cluster import Cluster
from orrery.models.shape import resized
from orrery.training.columns import columns_of
from orrery.training.ranks import ranks_of
from orrery.training.reported import num_communicators, reported_bytes
from orrery.training.stage_kinds import stage_kinds
from orrery.training.stage_layers import stage_layers
from orrery.training.step import step_of

S, H, FFN, KV, VOCABULARY = 4096, 8192, 28672, 1024, 128256
LAYER = H * (2 * H + 2 * KV) + 3 * H * FFN + 2 * H
"""Parameters of a layer of Llama-3 70B: attention, a gated feed-forward part, two norms."""

LINEAR = LAYER - 2 * H
"""Those of its four matrices, which all differ in size: queries, keys and values; output; gate and up; down."""

KEPT = 2 * (6 * H + 2 * KV + 3 * FFN) * S + 4 * 64 * S
"""Bytes that a sequence leaves in it: both norms' inputs and outputs, queries, attention's output (6 h), keys, values,
gate, up and their product (3 ffn), and a row sum for each of 64 heads."""

MOMENT = 2 * (2 * FFN + H) * S
"""Gradients of gate and up, and of the residual stream; that of the product takes the room of what was kept of it."""


def job_of(model="llama-3-70b", layers=12, framework="megatron-lm", recipe="bf16", seq=S, batch=8, devices=8, **more):
    device = get_device("b200")
    return TrainingJob(
        model=resized(get_model(model), num_layers=layers) if layers else get_model(model),
        cluster=Cluster(device=device, num_devices=devices, devices_per_node=8),
        framework=replace(get_framework(framework, device, recipe), has_dropout=False, **more),
        recipe=get_recipe(recipe),
        seq_len=seq,
        global_batch=batch,
    )


def held(job, layout, stage="first"):
    steps = step_of(job, columns_of([layout]))
    return {k: float(np.ravel(v)[0]) for k, v in getattr(steps, stage).parts.items()}


def test_a_gated_layer_keeps_six_streams_and_three_widths():
    layer = units(job_of(), choice_of([TrainingLayout()])).layer
    assert layer.everything_bytes[0] == pytest.approx(KEPT)
    assert layer.working_bytes[0] == pytest.approx(MOMENT)


def test_sequence_parallelism_cuts_what_is_kept_and_gathers_it_for_a_moment():
    """Eight ways: gate and up are 2 ffn / 8 = 7168 wide, the gathered input and its gradient 2 h = 16384 less the
    product's ffn / 8 = 3584, so the gathered ones decide."""
    layer = units(job_of(), choice_of([TrainingLayout(tp=8)])).layer
    assert layer.everything_bytes[0] == pytest.approx(KEPT / 8)
    assert layer.working_bytes[0] == pytest.approx(2 * S * (2 * H - FFN / 8 + H / 8))


def test_the_first_stage_of_a_70b_cut_to_twelve_layers():
    """Two stages of six layers: two micro-batches in flight, FP32 gradients, an optimizer over four ranks, and an
    unread BF16 gradient for each of four sizes of weight: 71.4 GB, measured 71.46."""
    job = job_of()
    layout = TrainingLayout(pp=2, dp=4, sharding="zero1")
    parts, parameters = held(job, layout), 6 * LAYER + VOCABULARY * H
    assert parts["weights"] == pytest.approx(2 * parameters)
    assert parts["gradients"] == pytest.approx(4 * parameters)
    assert parts["optimizer"] == pytest.approx(12 * parameters / 4)
    assert parts["activations"] == pytest.approx(2 * 6 * KEPT + MOMENT)
    assert parts["buffers"] == pytest.approx(2 * LINEAR)
    assert sum(parts[k] for k in ("weights", "gradients", "optimizer", "activations", "buffers")) == pytest.approx(
        71.457e9, rel=5e-3
    )


def test_logits_and_a_layers_gradients_are_not_there_at_once():
    """The last stage peaks with its logits (6 bytes each: 16 bits and FP32) or with one layer's gradients."""
    job = job_of()
    last = held(job, TrainingLayout(pp=2, dp=4, sharding="zero1"), "last")
    assert last["logits"] == pytest.approx(6 * S * VOCABULARY)
    assert last["logits"] > MOMENT
    assert last["activations"] == pytest.approx(6 * KEPT)
    narrow = held(replace(job, model=resized(job.model, vocab_size=1024)), TrainingLayout(dp=8, sharding="zero1"))
    assert narrow["logits"] + narrow["activations"] == pytest.approx(12 * KEPT + MOMENT)


def test_ranks_that_part_the_vocabulary_hold_more_copies_of_a_logit():
    """torchtitan's parallel loss in PyTorch: log-probabilities, zeros with the targets' ones, their sum with the
    exponentials, and the product, 4 bytes each, of a half of the vocabulary; 12 bytes of all of it without."""
    job = job_of(framework="torchtitan")
    layout = TrainingLayout(dp=8, sharding="zero3", recompute="full")
    assert held(job, layout)["logits"] == pytest.approx(12 * S * VOCABULARY)
    assert held(job, replace(layout, tp=2, dp=4))["logits"] == pytest.approx(16 * S * VOCABULARY / 2)


def test_unread_gradients_are_kept_once_a_size():
    """Llama-3 70B's four matrices a layer differ, twelve layers share them; a framework without fused sums has none."""
    layout = TrainingLayout(dp=8, sharding="zero1")
    assert held(job_of(), layout)["buffers"] == pytest.approx(2 * LINEAR)
    assert held(job_of(keeps_unread_gradients=False), layout)["buffers"] == 0.0
    assert held(job_of(), replace(layout, tp=2, dp=4))["buffers"] == pytest.approx(LINEAR)


def test_experts_of_one_size_leave_one_unread_gradient_for_each_matrix():
    """DeepSeek-V3: 2 x 7168 x (2112, 16384, 3 x 18432, 3 x 2048 twice) and 2 x (1536 x 24576, 512 x 32768), where the
    shared expert is as wide as a routed one and counts once."""
    job = replace(job_of("deepseek-v3", 0), framework=replace(job_of().framework, bucket_bytes=0.0))
    hidden = 7168 * (2112 + 16384 + 3 * 18432 + 3 * 2048)
    assert held(job, TrainingLayout())["buffers"] == pytest.approx(2 * (hidden + 1536 * 24576 + 512 * 32768))


def test_whole_layers_are_there_once_more_while_they_are_made_again():
    """Full recomputation: twelve inputs, the rest of one layer, and its gradients."""
    parts = held(replace(job_of(), model=resized(job_of().model, vocab_size=1024)), TrainingLayout(recompute="full"))
    assert parts["logits"] + parts["activations"] == pytest.approx(12 * 2 * S * H + KEPT - 2 * S * H + MOMENT)


@pytest.mark.parametrize(
    ("modules", "gone"),
    [
        (("mlp",), 2 * 3 * FFN * S),
        (("layernorm",), 2 * 2 * H * S),
        (("core_attn",), 4 * 64 * S),
        (("core_attn", "layernorm", "mlp"), 2 * (3 * FFN + 2 * H) * S + 4 * 64 * S),
    ],
)
def test_what_a_module_saves(modules, gone):
    """A feed-forward part drops gate, up and product; norms their outputs; attention its row sums. The largest of
    them is there for a moment, beside the gradients."""
    job = replace(job_of(), model=resized(job_of().model, vocab_size=1024))
    layout = TrainingLayout(recompute="selective", recompute_modules=modules)
    parts = held(job, layout)
    largest = max(
        2 * 3 * FFN * S if "mlp" in modules else 0, 2 * 2 * H * S if "layernorm" in modules else 0, 4 * 64 * S
    )
    assert parts["logits"] + parts["activations"] == pytest.approx(12 * (KEPT - gone) + largest + MOMENT)


def test_making_a_module_again_takes_its_forward_pass():
    """A layer's feed-forward part again: its two products and the activation between, times the framework's ratios."""
    job = job_of()
    plain = step_of(job, columns_of([TrainingLayout(dp=8)]))
    made = step_of(job, columns_of([TrainingLayout(dp=8, recompute="selective", recompute_modules=("mlp",))]))
    f, found = job.framework, again_of(units(job, choice_of([TrainingLayout(dp=8)])))
    at = MODULES.index("mlp")
    each = f.matrix_ratio * found.products_s[at, 0] + f.elementwise_ratio * found.stream_s[at, 0]
    assert found.attention_s[at, 0] == 0.0
    assert made.parts["recomputation"][0] == pytest.approx(12 * each)
    assert made.time_s[0] - plain.time_s[0] == pytest.approx(12 * each)
    whole = step_of(job, columns_of([TrainingLayout(dp=8, recompute="full")]))
    assert 0.5 < made.parts["recomputation"][0] / whole.parts["recomputation"][0] < 0.95


def test_modules_of_latent_attention_and_experts():
    """A token of DeepSeek-V3: queries (128 x 192), keys (128 x 192) and values (128 x 128) for mla_up_proj; one of
    eight experts' 2048 outputs for moe_act."""
    job = job_of("deepseek-v3", 0)
    moe = units(job, choice_of([TrainingLayout()])).kinds[1][1]
    at = {name: i for i, name in enumerate(MODULES)}
    assert moe.module_bytes[at["mla_up_proj"], 0] == pytest.approx(2 * S * 128 * (192 + 192 + 128))
    assert moe.module_bytes[at["moe_act"], 0] == pytest.approx(2 * S * 8 * 2048)
    inside = moe.module_bytes[at["moe_act"], 0] + moe.module_bytes[at["shared_experts"], 0]
    assert moe.module_bytes[at["moe"], 0] > inside


def test_modules_are_named_as_megatron_names_them():
    assert read_modules("attention, mlp") == ("core_attn", "mlp")
    assert read_modules("layernorm mla_up_proj mlp moe_act") == ("moe_act", "layernorm", "mla_up_proj", "mlp")
    assert modules_of(mask_of(("layernorm", "mlp"))) == ("layernorm", "mlp")
    assert mask_of(("moe", "moe_act", "shared_experts")) == mask_of(("moe",)), "what lies inside counts once"
    with pytest.raises(ScenarioError, match="mpl is no part of a layer"):
        read_modules("mpl")
    with pytest.raises(ScenarioError, match="has no moe"):
        check_modules(get_model("llama-3-70b"), ("moe",))


def test_narrow_copies_are_of_the_layers_weights_and_not_kept_where_parameters_are_sharded():
    """FP8 with delayed scales keeps a weight and its transpose, a byte each; embedding and head stay in 16 bits."""
    job, parameters = job_of(recipe="fp8"), 12 * LAYER + 2 * VOCABULARY * H + H
    whole = held(job, TrainingLayout(dp=8, sharding="zero1"))["weights"]
    assert whole == pytest.approx(2 * parameters + 2 * 12 * LAYER)
    assert held(job, TrainingLayout(dp=8, sharding="zero3"))["weights"] == pytest.approx(2 * parameters / 8)


def test_eager_kernels_keep_norms_in_fp32_and_half_an_activation_more():
    """An eager RMS norm keeps its input in FP32 and its output before the scale, and a gated activation the half that
    is multiplied."""
    fused, eager = (
        units(job_of(framework="pytorch", is_fused=f), choice_of([TrainingLayout()])).layer.everything_bytes[0]
        for f in (True, False)
    )
    assert eager - fused == pytest.approx(S * (4 * 2 * H + 2 * FFN))


def test_a_shortened_mixture_keeps_the_dense_layers_that_are_said():
    model = get_model("deepseek-v3")
    counts = lambda **sizes: [(b.name, b.count) for b in resized(model, **sizes).blocks]  # noqa: E731
    assert counts(num_layers=4) == [("dense", 3), ("moe", 1)]
    assert counts(num_layers=4, num_dense_layers=1) == [("dense", 1), ("moe", 3)]
    assert counts(num_layers=4, num_dense_layers=0) == [("moe", 4)]
    assert counts(num_layers=2, num_dense_layers=3) == [("dense", 2)]


def test_stages_hold_the_layers_that_they_hold():
    """DeepSeek-V3 on sixteen stages: 61 layers leave 3 on both ends and 4 on most others; the first stage holds the
    three dense layers and no expert at all, the second four layers with experts, and that is the fullest."""
    job = job_of("deepseek-v3", 0, batch=256, devices=256)
    layout = TrainingLayout(pp=16, dp=16, ep=8, sharding="zero1")
    steps, ranks = step_of(job, columns_of([layout])), ranks_of(job, layout)
    attention = 7168 * (2112 + 16384) + 1536 * 24576 + 512 * 32768 + (2 * 7168 + 1536 + 512)
    dense = attention + 3 * 7168 * 18432
    assert ranks[0].parts["weights"] == pytest.approx(2 * (3 * dense + 129280 * 7168), rel=1e-4)
    moe = attention + 3 * 7168 * 2048 + 7168 * 256 + 256 * 3 * 7168 * 2048 / 8
    assert ranks[1].parts["weights"] == pytest.approx(2 * 4 * moe, rel=1e-4)
    assert ranks[1].peak_bytes == max(r.peak_bytes for r in ranks)
    assert steps.memory_bytes[0] == pytest.approx(ranks[1].peak_bytes, rel=1e-9)
    assert sum(r.parts["weights"] for r in ranks) == pytest.approx(
        2 * (3 * dense + 58 * moe + 2 * 129280 * 7168 + 7168), rel=1e-4
    )


def test_kinds_that_alternate_are_on_every_stage():
    """Llama 4 Maverick: every second layer has experts, so each stage holds as many of either."""
    job = job_of("llama-4-maverick", 0, batch=64, devices=64)
    x = columns_of([TrainingLayout(pp=4, dp=16, ep=16)])
    found = units(job, choice_of([TrainingLayout(pp=4, dp=16, ep=16)]))
    kinds = stage_kinds(found, x, stage_layers(found.num_layers, x))
    assert [c[0] for c in kinds.first] == [c[0] for c in kinds.middle] == [c[0] for c in kinds.last] == [6.0, 3.0, 3.0]


def test_torchtitan_keeps_every_other_product_and_attentions_output():
    """Llama-3 8B by operator: half of what seven products make (3 h + 2 kv + 2 ffn), attention's output, the input."""
    h, kv, ffn = 4096, 1024, 14336
    layer = units(job_of("llama-3-8b", 0, "torchtitan"), choice_of([TrainingLayout()])).layer
    assert layer.selective_bytes[0] == pytest.approx(2 * S * ((3 * h + 2 * kv + 2 * ffn) / 2 + h + h))


def test_a_pipeline_that_keeps_outputs_holds_one_more_of_each_micro_batch():
    layout = TrainingLayout(pp=4, dp=2, recompute="full")
    retained, plain = (held(job_of(keeps_stage_outputs=k, batch=16), layout)["activations"] for k in (True, False))
    assert retained - plain == pytest.approx(4 * 2 * S * H), "four micro-batches in flight on the first rank"


@pytest.mark.parametrize(
    ("tool", "bytes"),
    [("allocated", 40e9), ("reserved", 42e9), ("device", 42e9 + 0.5e9 + 6 * 693_633_024)],
)
def test_what_tools_report(tool, bytes):
    """The driver also counts its context and 24 x 3 x (4 MiB + 4,915,200 + 512 KiB) bytes for each of six groups:
    tensor, pipeline, data; all ranks; both ends of the pipeline; and the ranks of one copy."""
    layout = TrainingLayout(tp=8, pp=4, dp=4)
    assert reported_bytes(40e9, tool, get_framework("pytorch"), layout) == pytest.approx(bytes)


@pytest.mark.parametrize(
    ("layout", "groups"),
    [
        ({}, 0),
        ({"dp": 8}, 1),
        ({"tp": 2, "dp": 4}, 3),
        ({"pp": 8}, 2),
        ({"pp": 4, "dp": 2}, 4),
        ({"tp": 8, "pp": 4}, 5),
    ],
)
def test_groups_that_a_rank_is_in(layout, groups):
    """Both of tp2 dp4 and all; a pipeline and its ends; those, data and all; tensor, pipeline, ends, copy and all."""
    assert num_communicators(TrainingLayout(**layout)) == groups
