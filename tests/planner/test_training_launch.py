"""Training launches: flags that the version knows, files that parse, degrees and batches that multiply out."""

import ast
import json
import shlex
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_launches import LAYOUTS, TASKS, assigned, case, job, options, yaml

from orrery.catalog.devices import get_device
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.planner.launch.training import WRITERS, deepspeed, launches, refusals, scripts, slurm
from orrery.planner.launch.training.deepspeed import Offload
from orrery.planner.launch.training.fit import devices_of_node, misfit
from orrery.planner.launch.training.manifest import training_manifests
from orrery.planner.launch.training.script import Script, Unsupported
from orrery.planner.launch.training.torchtitan import layers_per_stage


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_flag_and_key_is_one_that_the_version_knows(name: str, task: str) -> None:
    known = training_manifests()
    plain, layout = case(name)
    for framework, script in scripts(replace(plain, task=task), layout).items():
        assert set(script.flags) <= known[framework].flags
        assert set(script.config_keys) <= known[framework].config_keys
        if script.launcher == "torchrun":
            started = slurm.start(plain, layout, script).split(script.program)[0]
            assert {w for w in started.split() if w.startswith("--")} <= known["torchrun"].flags
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


def test_deepspeed_json() -> None:
    d = json.loads(launches(*case("second copy"))["deepspeed"])
    assert d["zero_optimization"] == {
        "stage": 3,
        "overlap_comm": True,
        "contiguous_gradients": True,
        "reduce_scatter": True,
        "zero_hpz_partition_size": 8,
    }
    assert (d["bf16"], d["fp16"]) == ({"enabled": True}, {"enabled": False})
    d = json.loads(launches(*case("deepspeed's own degrees"))["deepspeed"])
    assert d["tensor_parallel"] == {"autotp_size": 2}
    assert d["expert_parallel"] == {"enabled": True, "autoep_size": 4, "expert_tensor_parallel_size": 1}
    assert "expert_parallel" not in json.loads(launches(*case("experts on every rank"))["deepspeed"])
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
    requested = Offload(optimizer="nvme", parameters="cpu", nvme_path="/data/swap")
    written = deepspeed.write(plain, layout, offload=requested)
    assert isinstance(written, Script)
    zero = json.loads(written.config)["zero_optimization"]
    assert zero["offload_optimizer"] == {"device": "nvme", "pin_memory": True, "nvme_path": "/data/swap"}
    assert zero["offload_param"] == {"device": "cpu", "pin_memory": True}
    assert set(written.config_keys) <= training_manifests()["deepspeed"].config_keys
    for sharding, bad, word in (
        ("zero2", Offload(parameters="cpu"), "zero3"),
        ("none", Offload(optimizer="cpu"), "zero1"),
        ("zero2", Offload(optimizer="nvme", nvme_path="/d"), "zero3"),
        ("zero3", Offload(optimizer="nvme"), "nvme_path"),
    ):
        refused = deepspeed.write(plain, replace(layout, sharding=sharding), offload=bad)
        assert isinstance(refused, Unsupported)
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
)
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


@pytest.mark.parametrize(
    ("model", "layout", "change", "why"),
    [
        ("llama-3.1-8b", {"dp": 8}, {}, ""),
        ("llama-3.1-8b", {"dp": 12}, {"global_batch": 12}, "12 devices do not fill nodes of 8"),
        ("llama-3.1-8b", {"dp": 16}, {}, ""),
        ("llama-3.1-8b", {"dp": 8}, {"task": "forward_backward"}, "make the task pretrain"),
        ("llama-3.1-8b", {"dp": 24}, {}, "make it a multiple of 24"),
        ("llama-3.1-8b", {"dp": 8, "micro_batch": 128}, {}, "dp 8 x micro-batches of 128; make it a multiple of 1024"),
        ("llama-3.1-8b", {"dp": 8, "micro_batch": 64}, {}, ""),
        ("llama-3.1-8b", {"cp": 8}, {"seq_len": 4104}, "4104 tokens do not cut into 2 x cp = 16 equal pieces"),
        ("llama-3.1-8b", {"cp": 8}, {"seq_len": 4112}, ""),
        ("llama-3.1-8b", {"dp": 8}, {"seq_len": 4097}, ""),
        ("llama-3.1-8b", {"vp": 2}, {}, "vp = 2 cuts pipeline stages, and pp is 1; make vp 1"),
        ("llama-3.1-8b", {"pp": 2, "vp": 2}, {}, ""),
        ("llama-3.1-8b", {"pp": 8, "vp": 8}, {}, "64 chunks are more than the 32 layers"),
        ("llama-3.1-8b", {"pp": 8, "vp": 4}, {}, ""),
        ("llama-3.1-8b", {"tp": 64}, {}, "32 attention heads do not divide 64 ways"),
        ("llama-3.1-8b", {"tp": 8, "cp": 8, "context_kind": "all-to-all"}, {}, "32 attention heads do not divide 64"),
        ("llama-3.1-8b", {"tp": 8, "cp": 8}, {}, ""),
        ("llama-3.1-8b", {"dp": 2, "ep": 2}, {}, "has no experts to deal out; make ep and etp 1"),
        ("qwen3-30b-a3b", {"dp": 6, "ep": 6}, {"global_batch": 6}, "128 experts do not divide by ep = 6"),
        ("qwen3-30b-a3b", {"dp": 8, "ep": 8}, {}, ""),
        ("qwen3-30b-a3b", {"dp": 8, "ep": 16}, {}, "ep 16 x etp 1 does not divide the 8 ranks of a stage"),
        (
            "llama-3.1-8b",
            {"dp": 16, "sharding": "zero3", "sharding_group": 3},
            {},
            "sharding_group = 3 does not divide",
        ),
        ("llama-3.1-8b", {"dp": 16, "sharding": "zero3", "secondary_group": 5}, {}, "secondary_group = 5 does not"),
    ],
)
def test_degrees_that_do_not_divide_are_named(model, layout, change, why) -> None:
    degrees = TrainingLayout(**layout)
    found = misfit(job(model, degrees, **change), degrees)
    assert why in found if why else not found, found


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
    four_groups = LAYOUTS["hybrid"][2]  # of eight ranks that share the parameters
    hybrid = assigned(launches(job("llama-3.1-8b", four_groups), four_groups)["torchtitan"])
    degrees = [hybrid[f"parallelism.data_parallel_{word}_degree"] for word in ("replicate", "shard")]
    assert [(type(x), x) for x in degrees] == [(int, 4), (int, 8)]
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
    assert y["parallelism_config"] == {"parallelism_config_dp_replicate_size": 4, "parallelism_config_dp_shard_size": 8}
    assert (y["mixed_precision"], y["fp8_config"]["backend"]) == ("fp8", "TE")
    y = yaml(launches(*case("gradients sharded"))["fsdp"])
    assert y["fsdp_config"]["fsdp_reshard_after_forward"] is False
    assert (y["mixed_precision"], y["num_machines"]) == ("bf16", 2)
    assert "parallelism_config" not in y
    y = yaml(launches(*case("fully sharded"))["fsdp"])
    assert y["fsdp_config"]["fsdp_activation_checkpointing"] is True
    assert y["fp8_config"]["backend"] == "AO"
