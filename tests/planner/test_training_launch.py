"""Training launches: flags that the version knows, files that parse, degrees and batches that multiply out."""

import ast
import json
import os
import shlex
import subprocess
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.train.framework import Framework
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.models.model import Model
from orrery.planner.launch.training import WRITERS, deepspeed, launches, refusals, scripts, slurm
from orrery.planner.launch.training.deepspeed import Offload
from orrery.planner.launch.training.fit import devices_of_node, misfit, num_nodes
from orrery.planner.launch.training.manifest import training_manifests
from orrery.planner.launch.training.megatron_settings import uneven_stages
from orrery.planner.launch.training.script import Refusal, Script
from orrery.planner.launch.training.torchtitan import layers_per_stage
from orrery.training.stage_layers import by_rank

SAID: dict[str, Any] = {
    "name": "megatron-lm", "has_fused_attention": True, "overlaps_gradients": True, "overlaps_parameters": True,
    "overlaps_tensor": True, "overlaps_pipeline": True,
}  # fmt: skip
"""What launches read of a framework; its times and bytes do not matter here."""


def blank(of: Any) -> Any:
    """A value of a field that does not matter, by its type."""
    return {str: "none", bool: False, float: 1.0, int: 1}.get(of, "none")


KINDS = get_type_hints(Framework)
NEEDED = [f.name for f in fields(Framework) if f.default is MISSING and f.default_factory is MISSING]
FRAMEWORK = Framework(**({name: blank(KINDS[name]) for name in NEEDED} | SAID))

LAYOUTS: dict[str, tuple[str, str, TrainingLayout]] = {
    "one device": ("llama-3.1-8b", "bf16", TrainingLayout()),
    "copies": ("llama-3.1-8b", "bf16", TrainingLayout(dp=8)),
    "optimizer sharded": ("gpt3-175b", "fp16", TrainingLayout(tp=8, pp=8, dp=2, sharding="zero1", recompute="full")),
    "gradients sharded": ("llama-3.1-8b", "bf16", TrainingLayout(dp=16, sharding="zero2", micro_batch=2)),
    "fully sharded": ("qwen3-14b", "fp8_current", TrainingLayout(dp=16, sharding="zero3", recompute="full")),
    "hybrid": ("llama-3.1-8b", "fp8", TrainingLayout(dp=32, sharding="zero3", sharding_group=8)),
    "second copy": ("llama-3.1-8b", "bf16", TrainingLayout(dp=32, sharding="zero3", secondary_group=8)),
    "interleaved": (
        "llama-3.1-70b", "fp8_current",
        TrainingLayout(tp=4, pp=4, dp=4, vp=2, sharding="zero3", recompute="selective"),
    ),
    "half recomputed": (
        "llama-3.1-70b", "bf16",
        TrainingLayout(tp=8, pp=4, dp=2, sharding="zero1", recompute="full", recompute_layers=10),
    ),
    "ring": ("llama-3.1-8b", "bf16", TrainingLayout(tp=2, cp=4, dp=2, sharding="zero3")),
    "heads dealt out": (
        "llama-3.1-8b", "bf16", TrainingLayout(cp=4, dp=4, sharding="zero2", context_kind="all-to-all")
    ),
    "experts": (
        "qwen3-30b-a3b", "mxfp8", TrainingLayout(tp=2, dp=16, ep=16, sharding="zero3", micro_batch=2)
    ),
    "latent attention": (
        "deepseek-v3", "fp8_block",
        TrainingLayout(tp=2, pp=16, dp=16, vp=2, ep=32, sharding="zero1", recompute="full"),
    ),
    "four bits": ("llama-3.1-8b", "nvfp4", TrainingLayout(dp=8, sharding="zero3")),
    "no master weights": ("llama-3.1-8b", "bf16_pure", TrainingLayout(tp=2, dp=8, sharding="zero2")),
    "deepspeed's own degrees": ("qwen3-30b-a3b", "bf16", TrainingLayout(tp=2, dp=8, ep=4, sharding="zero3")),
    "deepspeed's pipeline": ("llama-3.1-8b", "bf16", TrainingLayout(pp=4, dp=4, sharding="zero1", recompute="full")),
    "zero bubble": (
        "llama-3.1-8b", "bf16",
        TrainingLayout(pp=4, dp=2, vp=2, sharding="zero2", schedule="zero-bubble-v"),
    ),
}  # fmt: skip

TASKS = ("pretrain", "full_finetune", "lora", "qlora", "adapter")


def job(model: str | Model, layout: TrainingLayout, recipe: str = "bf16", **changes: Any) -> TrainingJob:
    device, found = get_device("h100-sxm"), get_model(model) if isinstance(model, str) else model
    cluster = Cluster(device=device, num_devices=layout.num_devices, devices_per_node=8)
    plain = TrainingJob(
        model=found, cluster=cluster, framework=FRAMEWORK, recipe=get_recipe(recipe), seq_len=4096, global_batch=512
    )
    return replace(plain, **changes)


def case(name: str) -> tuple[TrainingJob, TrainingLayout]:
    model, recipe, layout = LAYOUTS[name]
    return job(model, layout, recipe), layout


def yaml(text: str) -> dict[str, Any]:
    """The little YAML there is: names with scalars, and one level of sections."""
    found: dict[str, Any] = {}
    inside = found
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, separator, value = line.partition(":")
        assert separator, line
        word: Any = value.strip().strip('"')
        word = int(word) if word.isdigit() else {"true": True, "false": False}.get(word, word)
        if line.startswith("  "):
            inside[name.strip()] = word
        elif value:
            found[name] = word
        else:
            inside = found[name] = {}
    return found


def assigned(text: str) -> dict[str, Any]:
    """``config.a.b = value`` of torchtitan's function, as {"a.b": value} where the value is a constant."""
    found: dict[str, Any] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            key = ast.unparse(node.targets[0]).removeprefix("config.")
            found[key] = node.value.value if isinstance(node.value, ast.Constant) else ast.unparse(node.value)
    return found


def words(text: str) -> list[str]:
    """Words of the launch line, line ends joined."""
    joined = text.replace("\\\n", " ")
    return shlex.split(next(line for line in joined.splitlines() if "torchrun " in line))


def options(text: str) -> dict[str, str]:
    """Flag -> word after it ("" where another flag follows)."""
    listed = words(text)
    after = [*listed[1:], "--"]
    return {w: "" if n.startswith("--") else n for w, n in zip(listed, after, strict=True) if w.startswith("--")}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_flag_and_key_is_one_that_the_version_knows(name: str, task: str) -> None:
    known = training_manifests()
    plain, layout = case(name)
    for framework, script in scripts(replace(plain, task=task), layout).items():
        assert set(script.flags) <= known[framework].flags
        assert set(script.config_keys) <= known[framework].config_keys
        assert set(slurm.torchrun_flags(plain, layout)) <= known["torchrun"].flags
        typed = {w for a in script.arguments for w in shlex.split(a) if w.startswith("--")}
        assert typed == set(script.flags)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_framework_answers_or_says_why_not(name: str) -> None:
    made, refused = launches(*case(name)), refusals(*case(name))
    assert made.keys() | refused.keys() == {*WRITERS, "slurm"}
    assert not made.keys() & refused.keys()
    for reason in refused.values():
        assert "\n" not in reason
        assert any(word in reason for word in ("make ", "use ", "it has ", "call ")), reason


def test_every_framework_can_run_some_layout() -> None:
    assert {f for name in LAYOUTS for f in launches(*case(name))} == {*WRITERS, "slurm"}


@pytest.mark.parametrize("name", LAYOUTS)
def test_degrees_multiply_to_the_devices_and_batches_to_the_global_batch(name: str) -> None:
    plain, layout = case(name)
    made = launches(plain, layout)
    if text := made.get("megatron-lm"):
        o = options(text)
        degrees = [int(o.get(f"--{k}-parallel-size", "1")) for k in ("tensor-model", "pipeline-model", "context")]
        ranks = int(o.get("--nnodes", "1")) * int(o["--nproc-per-node"])
        assert ranks == layout.num_devices
        data = ranks // (degrees[0] * degrees[1] * degrees[2])
        assert int(o["--global-batch-size"]) % (int(o["--micro-batch-size"]) * data) == 0
    if text := made.get("deepspeed"):
        d = json.loads(text)
        data = layout.num_devices // (layout.tp * layout.pp * layout.cp)
        share = d["train_micro_batch_size_per_gpu"] * d["gradient_accumulation_steps"]
        assert share * data == plain.global_batch
        assert d.get("train_batch_size") == (None if layout.tp > 1 else plain.global_batch)
    if text := made.get("torchtitan"):
        c = assigned(text)
        dp = c["parallelism.data_parallel_replicate_degree"] * c["parallelism.data_parallel_shard_degree"]
        rest = ("tensor", "context", "pipeline")
        product = dp
        for kind in rest:
            product *= c[f"parallelism.{kind}_parallel_degree"]
        assert product == layout.num_devices
        assert plain.global_batch % (c["training.local_batch_size"] * dp) == 0
        cut = c["parallelism.data_parallel_shard_degree"] * layout.cp * layout.tp
        assert cut % c["parallelism.expert_parallel_degree"] == 0
    if text := made.get("fsdp"):
        y = yaml(text)
        assert y["num_processes"] == layout.num_devices == y["num_machines"] * devices_of_node(plain, layout)
        group = y.get("parallelism_config", {"parallelism_config_dp_replicate_size": 1})
        assert layout.dp == group["parallelism_config_dp_replicate_size"] * group.get(
            "parallelism_config_dp_shard_size", layout.dp
        )
        assert set(y) <= training_manifests()["fsdp"].config_keys


@pytest.mark.parametrize("name", LAYOUTS)
def test_shell_texts_are_shell(name: str) -> None:
    for text in launches(*case(name)).values():
        if text.startswith((":", "#!")):
            subprocess.run(["bash", "-n"], input=text, text=True, check=True, capture_output=True)


def test_megatron_says_what_the_layout_says() -> None:
    o = options(launches(*case("latent attention"))["megatron-lm"])
    expected = {
        "--tensor-model-parallel-size": "2", "--pipeline-model-parallel-size": "16", "--sequence-parallel": "",
        "--expert-model-parallel-size": "32", "--expert-tensor-parallel-size": "1", "--use-distributed-optimizer": "",
        "--recompute-granularity": "full", "--recompute-method": "uniform", "--recompute-num-layers": "1",
        "--num-layers": "61", "--hidden-size": "7168", "--ffn-hidden-size": "18432", "--num-experts": "256",
        "--moe-router-topk": "8", "--moe-ffn-hidden-size": "2048", "--moe-shared-expert-intermediate-size": "2048",
        "--moe-layer-freq": "([0]*3+[1]*58)", "--multi-latent-attention": "", "--kv-lora-rank": "512",
        "--q-lora-rank": "1536", "--qk-layernorm": "", "--fp8-format": "e4m3", "--fp8-recipe": "blockwise",
        "--normalization": "RMSNorm", "--swiglu": "", "--disable-bias-linear": "", "--nnodes": "64",
    }  # fmt: skip
    assert {k: o.get(k) for k in expected} == expected
    assert "--num-virtual-stages-per-pipeline-rank" not in o  # said by the uneven layout of 61 layers in 32 chunks
    assert o["--pipeline-model-parallel-layout"].count("|") == 31


def test_megatron_tells_families_apart() -> None:
    gpt = options(launches(*case("optimizer sharded"))["megatron-lm"])
    assert gpt["--normalization"] == "LayerNorm"
    assert gpt["--position-embedding-type"] == "learned_absolute"
    assert "--fp16" in gpt
    for absent in ("--swiglu", "--group-query-attention", "--disable-bias-linear", "--qk-layernorm"):
        assert absent not in gpt
    assert "--untie-embeddings-and-output-weights" not in gpt
    layout = TrainingLayout(dp=2, sharding="zero1")
    qwen = options(launches(job("qwen2.5-7b", layout), layout)["megatron-lm"])
    assert {"--add-qkv-bias", "--disable-bias-linear", "--swiglu", "--group-query-attention"} <= qwen.keys()
    assert qwen["--num-query-groups"] == "4"
    qwen3 = options(launches(*case("deepspeed's own degrees"))["megatron-lm"])
    assert "--qk-layernorm" in qwen3
    assert qwen3["--kv-channels"] == "128"  # 32 heads of 128 beside a hidden size of 2048
    assert qwen3["--ffn-hidden-size"] == qwen3["--moe-ffn-hidden-size"] == "768"


def test_megatron_shards_as_asked() -> None:
    full = options(launches(*case("hybrid"))["megatron-lm"])
    assert full["--data-parallel-sharding-strategy"] == "optim_grads_params"
    assert full["--num-distributed-optimizer-instances"] == "4"
    assert full["--fp8-recipe"] == "delayed"
    assert full["--fp8-format"] == "hybrid"
    assert options(launches(*case("gradients sharded"))["megatron-lm"])["--data-parallel-sharding-strategy"] == (
        "optim_grads"
    )
    copies = options(launches(*case("copies"))["megatron-lm"])
    assert "--use-distributed-optimizer" not in copies
    assert "--overlap-param-gather" not in copies
    assert "--overlap-grad-reduce" in copies
    part = options(launches(*case("half recomputed"))["megatron-lm"])
    assert (part["--recompute-method"], part["--recompute-num-layers"]) == ("block", "10")
    ring = launches(*case("ring"))["megatron-lm"]
    assert options(ring)["--cp-comm-type"] == "p2p"
    assert options(launches(*case("heads dealt out"))["megatron-lm"])["--cp-comm-type"] == "a2a"
    four = options(launches(*case("four bits"))["megatron-lm"])  # 16 % of 32 layers are 5: one first, four last
    assert (four["--fp4-format"], four["--fp4-recipe"]) == ("e2m1", "nvfp4")
    assert (four["--num-layers-at-start-in-bf16"], four["--num-layers-at-end-in-bf16"]) == ("1", "4")


def test_one_queue_to_the_device_but_not_with_megatron_fsdp() -> None:
    assert "CUDA_DEVICE_MAX_CONNECTIONS=1" in launches(*case("half recomputed"))["megatron-lm"]
    assert "CUDA_DEVICE_MAX_CONNECTIONS" not in launches(*case("ring"))["megatron-lm"]
    assert "CUDA_DEVICE_MAX_CONNECTIONS" not in launches(*case("copies"))["megatron-lm"]


def test_bridge_says_the_same_in_its_own_words() -> None:
    listed = words(launches(*case("interleaved"))["megatron-bridge"])
    pairs = dict(w.split("=", 1) for w in listed if "=" in w and not w.startswith("-"))
    assert listed[listed.index("--recipe") + 1] == "llama31_70b_pretrain_config"
    assert pairs["model.tensor_model_parallel_size"] == "4"
    assert pairs["model.virtual_pipeline_model_parallel_size"] == "2"
    assert pairs["ddp.data_parallel_sharding_strategy"] == "optim_grads_params"
    assert pairs["mixed_precision"] == "bf16_with_fp8_current_scaling_mixed"
    assert pairs["model.recompute_granularity"] == "selective"
    assert pairs["dataset.seq_length"] == pairs["model.seq_length"] == "4096"
    assert (pairs["comm_overlap"], pairs["model.tp_comm_overlap"], pairs["model.overlap_p2p_comm"]) == (
        "null", "true", "true"
    )  # fmt: skip
    uneven = launches(*case("latent attention"))["megatron-bridge"]
    layout = next(w for w in words(uneven) if w.startswith("model.pipeline_model_parallel_layout="))
    assert layout.split("=", 1)[1] == f"'{uneven_stages(61, 16, 2)}'"  # quoted once more, for Hydra


def test_bridge_finetunes_from_recipes_of_its_own() -> None:
    plain, layout = case("gradients sharded")
    tuned = launches(replace(plain, task="lora", adapter_rank=32), layout)
    assert "--recipe llama31_8b_peft_config" in tuned["megatron-bridge"]
    assert "peft.dim=32" in tuned["megatron-bridge"]
    assert "LoRAConverter.Config(rank=32)" in tuned["torchtitan"]
    assert "megatron-lm" not in tuned
    unknown = replace(plain, model=replace(plain.model, name="me/mine"))
    assert '--recipe "$RECIPE"' in launches(unknown, layout)["megatron-bridge"]


@given(layers=st.integers(1, 200), pp=st.integers(1, 32), vp=st.integers(1, 8))
def test_uneven_stages_hold_all_layers_and_ranks_hold_what_memory_is_counted_of(layers: int, pp: int, vp: int) -> None:
    if pp > layers or pp * vp > layers + 2:
        return
    stages = uneven_stages(layers, pp, vp).split("|")
    counts = [int("".join(c for c in s if c.isdigit()) or 0) for s in stages]
    assert len(stages) == pp * vp
    assert max(counts) - min(counts) <= 1
    assert stages[0].startswith("E")
    assert stages[-1].endswith("L")
    assert tuple(sum(counts[rank::pp]) for rank in range(pp)) == by_rank(layers, pp, vp)


@pytest.mark.parametrize(
    ("model", "flags"),
    [
        ("llama-3.1-8b", {"--rotary-base": "500000", "--use-rope-scaling": "", "--rope-scaling-factor": "8"}),
        ("meta-llama/Meta-Llama-3-8B", {"--rotary-base": "500000"}),
        ("qwen3-30b-a3b", {"--rotary-base": "1000000"}),
        ("deepseek-v3", {"--rotary-base": "10000", "--rope-type": "yarn", "--rotary-scaling-factor": "40"}),
    ],
)  # fmt: skip
def test_rotations_are_those_of_the_models_config(model: str, flags: dict[str, str]) -> None:
    layout = TrainingLayout(dp=8)
    found = options(launches(job(model, layout, "bf16"), layout)["megatron-lm"])
    names = ("--rotary-base", "--use-rope-scaling", "--rope-scaling-factor", "--rope-type", "--rotary-scaling-factor")
    assert {name: found[name] for name in names if name in found} == flags


def test_a_model_whose_rotations_are_not_known_asks_for_their_base() -> None:
    layout = TrainingLayout(dp=8)
    plain = job("llama-3.1-8b", layout, "bf16")
    text = launches(replace(plain, model=replace(plain.model, rotation=None)), layout)["megatron-lm"]
    assert "ROTARY_BASE:?" in text
    assert "10000" not in text


def test_a_chunk_without_layers_holds_its_end_alone() -> None:
    """Llama 3 405B: 126 layers in 128 chunks."""
    stages = uneven_stages(126, 16, 8).split("|")
    assert (stages[0], stages[1], stages[-1]) == ("E", "t*1", "L")


def test_deepspeed_json() -> None:
    d = json.loads(launches(*case("second copy"))["deepspeed"])
    assert d["zero_optimization"] == {
        "stage": 3, "overlap_comm": True, "contiguous_gradients": True, "reduce_scatter": True,
        "zero_hpz_partition_size": 8,
    }  # fmt: skip
    assert (d["bf16"], d["fp16"]) == ({"enabled": True}, {"enabled": False})
    d = json.loads(launches(*case("deepspeed's own degrees"))["deepspeed"])
    assert d["tensor_parallel"] == {"autotp_size": 2}
    assert d["expert_parallel"] == {"enabled": True, "autoep_size": 4, "expert_tensor_parallel_size": 1}
    d = json.loads(launches(*case("deepspeed's pipeline"))["deepspeed"])
    assert d["pipeline"] == {"stages": 4, "activation_checkpoint_interval": 1}
    assert d["activation_checkpointing"]["number_checkpoints"] == 32
    d = json.loads(launches(*case("heads dealt out"))["deepspeed"])
    assert (d["sequence_parallel_size"], d["data_parallel_size"]) == (4, 4)
    d = json.loads(launches(*case("no master weights"))["deepspeed"])
    assert d["bf16"]["bf16_master_weights_and_grads"] is True


def test_deepspeed_offloads_where_it_can() -> None:
    plain, layout = case("fully sharded")
    plain = replace(plain, recipe=get_recipe("bf16"))
    asked = Offload(optimizer="nvme", parameters="cpu", nvme_path="/data/swap")
    written = deepspeed.write(plain, layout, offload=asked)
    assert isinstance(written, Script)
    zero = json.loads(written.config)["zero_optimization"]
    assert zero["offload_optimizer"] == {"device": "nvme", "pin_memory": True, "nvme_path": "/data/swap"}
    assert zero["offload_param"] == {"device": "cpu", "pin_memory": True}
    assert set(written.config_keys) <= training_manifests()["deepspeed"].config_keys
    for sharding, bad, word in (
        ("zero2", Offload(parameters="cpu"), "zero3"), ("none", Offload(optimizer="cpu"), "zero1"),
        ("zero2", Offload(optimizer="nvme", nvme_path="/d"), "zero3"),
        ("zero3", Offload(optimizer="nvme"), "nvme_path"),
    ):  # fmt: skip
        refused = deepspeed.write(plain, replace(layout, sharding=sharding), offload=bad)
        assert isinstance(refused, Refusal)
        assert word in refused.reason


@pytest.mark.parametrize(
    ("framework", "model", "recipe", "layout", "word"),
    [
        ("deepspeed", "llama-3.1-8b", "bf16", TrainingLayout(pp=2, dp=4, sharding="zero2"), "zero1"),
        ("deepspeed", "llama-3.1-8b", "bf16", TrainingLayout(pp=2, dp=4, sharding="zero3"), "zero1"),
        ("deepspeed", "llama-3.1-8b", "bf16", TrainingLayout(pp=2, tp=2, dp=2), "megatron-lm"),
        ("deepspeed", "llama-3.1-8b", "bf16", TrainingLayout(cp=2, dp=4), "all-to-all"),
        ("deepspeed", "llama-3.1-8b", "fp8", TrainingLayout(dp=8, sharding="zero3"), "fp8"),
        ("fsdp", "llama-3.1-8b", "bf16", TrainingLayout(tp=2, dp=4, sharding="zero3"), "make tp 1"),
        ("fsdp", "llama-3.1-8b", "bf16", TrainingLayout(dp=8, sharding="zero1"), "zero2"),
        ("fsdp", "llama-3.1-8b", "bf16", TrainingLayout(dp=8, sharding="zero3", secondary_group=4), "=4"),
        ("torchtitan", "gpt3-175b", "bf16", TrainingLayout(dp=8, sharding="zero3"), "Llama-3.1-8B"),
        ("torchtitan", "llama-3.1-8b", "bf16", TrainingLayout(dp=8, sharding="zero1"), "zero2"),
        ("torchtitan", "llama-3.1-8b", "fp8", TrainingLayout(dp=8, sharding="zero3"), "fp8_current"),
        ("torchtitan", "llama-3.1-8b", "bf16", TrainingLayout(pp=2, dp=4, schedule="dualpipe"), "1f1b"),
        ("megatron-lm", "llama-3.1-8b", "bf16", TrainingLayout(pp=2, dp=4, schedule="zero-bubble-h1"), "1f1b"),
        ("megatron-lm", "llama-3.1-8b", "bf16", TrainingLayout(dp=8, sharding="zero3", secondary_group=4), "hpZ"),
        ("megatron-lm", "gemma-2-9b", "bf16", TrainingLayout(dp=8), "megatron-bridge"),
        ("megatron-lm", "gpt-oss-20b", "bf16", TrainingLayout(dp=8), "megatron-bridge"),
        ("megatron-lm", "llama-3.1-8b", "fp8-lm", TrainingLayout(dp=8), "8 bits"),
        ("megatron-lm", "llama-3.1-8b", "bf16", TrainingLayout(dp=7), "multiple of 7"),
        ("megatron-lm", "llama-3.1-8b", "bf16", TrainingLayout(tp=3, dp=8), "32 attention heads"),
        ("megatron-lm", "llama-3.1-8b", "bf16", TrainingLayout(dp=8, ep=2), "no experts"),
        ("megatron-lm", "qwen3-30b-a3b", "bf16", TrainingLayout(dp=8, ep=3), "128 experts"),
        ("megatron-lm", "qwen3-30b-a3b", "bf16", TrainingLayout(dp=8, ep=16), "8 ranks"),
        ("megatron-lm", "llama-3.1-8b", "bf16", TrainingLayout(dp=12), "multiple of 8"),
        ("megatron-lm", "llama-3.1-8b", "bf16", TrainingLayout(pp=64), "32 layers"),
        ("megatron-lm", "llama-3.1-8b", "bf16", TrainingLayout(dp=8, sharding="zero3", sharding_group=3), "= 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_with_a_way_out(
    framework: str, model: str, recipe: str, layout: TrainingLayout, word: str
) -> None:
    plain = job(model, layout, recipe)
    assert word in refusals(plain, layout)[framework]
    assert framework not in launches(plain, layout)


def test_nothing_is_launched_on_devices_that_are_not_there() -> None:
    layout = TrainingLayout(tp=2, dp=8)
    plain = job(
        "llama-3.1-8b", layout, cluster=Cluster(device=get_device("h100-sxm"), num_devices=8, devices_per_node=8)
    )
    assert launches(plain, layout) == {}
    reasons = refusals(plain, layout)
    assert reasons.keys() == {*WRITERS, "slurm"}
    assert "needs 16 devices, the cluster has 8; dp = 4 is the most that fits" in reasons["megatron-lm"]
    assert misfit(plain, replace(layout, dp=4)) == ""


def test_torchtitan_function() -> None:
    c = assigned(launches(*case("interleaved"))["torchtitan"])
    assert c["parallelism.pipeline_parallel_schedule"] == "Interleaved1F1B"
    assert c["training.local_batch_size"] == 128  # 512 sequences over four ranks, all in one schedule
    assert c["parallelism.pipeline_parallel_microbatch_size"] == 1
    assert c["activation_checkpoint"] == "SelectiveAC.Config()"
    assert "Float8LinearConverter" in c["model_spec"]
    c = assigned(launches(*case("zero bubble"))["torchtitan"])
    assert c["parallelism.pipeline_parallel_schedule"] == "ZBVZeroBubble"
    assert c["parallelism.fsdp_reshard_after_forward"] == "never"
    c = assigned(launches(*case("gradients sharded"))["torchtitan"])
    assert c["training.local_batch_size"] == 2
    assert c["activation_checkpoint"] is None
    experts = launches(*case("experts"))["torchtitan"]
    assert "MXFP8GroupedExpertsConverter.Config(pad_multiple=128, model_compile_enabled=True)" in experts
    assert 'fqns=["attention", "shared_experts", "feed_forward"]' in experts  # neither router nor head
    assert assigned(experts)["parallelism.expert_parallel_degree"] == 16
    four = launches(*case("four bits"))["torchtitan"]
    call = next(n for n in ast.walk(ast.parse(four)) if isinstance(n, ast.ListComp))
    assert ast.unparse(call) == "[f'layers.{i}.' for i in range(1, 28)]"


def test_torchtitan_imports_every_name_that_it_uses() -> None:
    for name in LAYOUTS:
        if text := launches(*case(name)).get("torchtitan"):
            tree = ast.parse(text)
            imported = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
            used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            assert used - imported <= {"config", "os", "range", "i"}
            assert imported <= used


@given(layers=st.integers(4, 130), chunks=st.integers(2, 32))
def test_layers_per_stage_never_make_more_chunks_than_asked(layers: int, chunks: int) -> None:
    per_stage = layers_per_stage(layers, chunks)
    assert -(-(layers + 2) // per_stage) <= chunks
    assert per_stage == 1 or -(-(layers + 2) // (per_stage - 1)) > chunks


def test_fsdp_yaml() -> None:
    y = yaml(launches(*case("hybrid"))["fsdp"])
    assert y["fsdp_config"]["fsdp_reshard_after_forward"] is True
    assert y["parallelism_config"] == {
        "parallelism_config_dp_replicate_size": 4, "parallelism_config_dp_shard_size": 8
    }  # fmt: skip
    assert (y["mixed_precision"], y["fp8_config"]["backend"]) == ("fp8", "TE")
    y = yaml(launches(*case("gradients sharded"))["fsdp"])
    assert y["fsdp_config"]["fsdp_reshard_after_forward"] is False
    assert (y["mixed_precision"], y["num_machines"]) == ("bf16", 2)
    assert "parallelism_config" not in y
    y = yaml(launches(*case("fully sharded"))["fsdp"])
    assert y["fsdp_config"]["fsdp_activation_checkpointing"] is True
    assert y["fp8_config"]["backend"] == "AO"


def stubs(folder: Path, status: int) -> dict[str, str]:
    """An environment where srun runs its words here, launchers write theirs down, and every variable is set."""
    programs = {
        "srun": f'shift\n"$@"\nexit {status}\n', "scontrol": 'echo "$@" >> "$NOTES/queued"\necho node-1\n',
        "torchrun": 'printf "%s\\0" "$@" > "$NOTES/words"\n', "accelerate": 'printf "%s\\0" "$@" > "$NOTES/words"\n',
    }  # fmt: skip
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/bash\n{body}")
        (folder / name).chmod(0o755)
    slurm_own = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node-[1-2]", "SLURM_NODEID": "1"}
    asked = ("DATA_PATH", "TRAIN_ITERS", "LEARNING_RATE", "CHECKPOINTS", "MEGATRON_PATH", "MEGATRON_BRIDGE_PATH")
    asked += ("TRAIN_SCRIPT",)
    return slurm_own | {
        "PATH": f"{folder}:{os.environ['PATH']}", "NOTES": str(folder), **{n: f"a b/{n}" for n in asked},
    }  # fmt: skip


def run_batch(folder: Path, text: str, status: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    script = folder / "job.sh"
    script.write_text(text)
    return subprocess.run(
        ["bash", script], env=stubs(folder, status) | more, cwd=folder, text=True, capture_output=True, check=False
    )


@pytest.mark.parametrize("framework", WRITERS)
def test_the_batch_script_hands_every_word_over_whole(framework: str, tmp_path: Path) -> None:
    name = "hybrid" if framework == "fsdp" else "gradients sharded"
    plain, layout = case(name)
    script = scripts(plain, layout)[framework]
    done = run_batch(tmp_path, slurm.batch(plain, layout, script))
    assert (done.returncode, done.stderr) == (0, "")
    got = (tmp_path / "words").read_text().split("\0")[:-1]
    if framework == "fsdp":
        assert got[0] == "launch"
        assert got[got.index("--machine_rank") + 1] == "1"
        assert got[-1] == "a b/TRAIN_SCRIPT"
    else:
        assert got[:4] == ["--nnodes", str(num_nodes(plain, layout)), "--nproc-per-node", "8"]
        assert "node-1:29500" in got
    if script.config:
        assert (tmp_path / script.config_name).read_text() == script.config + "\n"


def test_odd_names_stay_one_word(tmp_path: Path) -> None:
    plain, layout = case("gradients sharded")
    odd = 'me/it\'s; rm -rf "$HOME" `x` 100%'
    plain = replace(plain, model=replace(plain.model, name=odd))
    text = launches(plain, layout)["slurm"]
    assert "#SBATCH --job-name=it-s--rm--rf---HOME---x--100-" in text
    assert run_batch(tmp_path, text).returncode == 0
    got = (tmp_path / "words").read_text().split("\0")
    assert got[got.index("--tokenizer-model") + 1] == odd
    assert got[got.index("--data-path") + 1] == "a b/DATA_PATH"


def test_a_failed_run_is_queued_again_but_not_for_ever(tmp_path: Path) -> None:
    text = launches(*case("gradients sharded"))["slurm"]
    notes = tmp_path / "queued"
    assert run_batch(tmp_path, text, status=3).returncode == 3
    assert "requeue 7" in notes.read_text()
    notes.unlink()
    assert run_batch(tmp_path, text, status=3, SLURM_RESTART_COUNT="3").returncode == 3
    assert "requeue" not in notes.read_text()
    assert run_batch(tmp_path, text, status=3, SLURM_RESTART_COUNT="3", MAX_RESTARTS="5").returncode == 3
    assert "requeue 7" in notes.read_text()
    notes.unlink()
    assert run_batch(tmp_path, text).returncode == 0
    assert "requeue" not in notes.read_text()


def test_a_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    text = launches(*case("gradients sharded"))["slurm"]
    done = run_batch(tmp_path, text, DATA_PATH="")
    assert done.returncode != 0
    assert "DATA_PATH: tokenized data" in done.stderr
    assert not (tmp_path / "words").exists()


@pytest.mark.parametrize("name", LAYOUTS)
def test_batch_options_are_slurms_and_ask_for_the_devices(name: str) -> None:
    plain, layout = case(name)
    asked = [
        line.removeprefix("#SBATCH ") for line in launches(plain, layout)["slurm"].splitlines() if "#SBATCH" in line
    ]
    flags = {a.partition("=")[0]: a.partition("=")[2] for a in asked}
    assert flags.keys() | {"--kill-on-bad-exit"} <= training_manifests()["slurm"].flags
    assert int(flags["--nodes"]) * int(flags["--gpus-per-node"]) == layout.num_devices
    assert flags["--ntasks-per-node"] == "1"


def test_the_jobs_own_framework_is_queued() -> None:
    plain, layout = case("gradients sharded")
    for framework, word in (("deepspeed", "ds_config.json"), ("torchtitan", "torchtitan.train"), ("fsdp", "fsdp.yaml")):
        own = replace(plain, framework=replace(FRAMEWORK, name=framework))
        assert word in launches(own, layout)["slurm"]
    assert "pretrain_gpt.py" in launches(plain, layout)["slurm"]
