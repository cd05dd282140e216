"""Megatron-LM's and Megatron-Bridge's launches say what layouts, models and tasks ask for."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_launches import case, job, options, words

from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training import launches
from orrery.planner.launch.training.megatron_settings import uneven_stages
from orrery.training.stage_layers import by_rank


def test_megatron_says_what_the_layout_says() -> None:
    o = options(launches(*case("latent attention"))["megatron-lm"])
    expected = {
        "--tensor-model-parallel-size": "2",
        "--pipeline-model-parallel-size": "16",
        "--sequence-parallel": "",
        "--expert-model-parallel-size": "32",
        "--expert-tensor-parallel-size": "1",
        "--use-distributed-optimizer": "",
        "--recompute-granularity": "full",
        "--recompute-method": "uniform",
        "--recompute-num-layers": "1",
        "--num-layers": "61",
        "--hidden-size": "7168",
        "--ffn-hidden-size": "18432",
        "--num-experts": "256",
        "--moe-router-topk": "8",
        "--moe-ffn-hidden-size": "2048",
        "--moe-shared-expert-intermediate-size": "2048",
        "--moe-layer-freq": "([0]*3+[1]*58)",
        "--multi-latent-attention": "",
        "--kv-lora-rank": "512",
        "--q-lora-rank": "1536",
        "--qk-layernorm": "",
        "--fp8-format": "e4m3",
        "--fp8-recipe": "blockwise",
        "--normalization": "RMSNorm",
        "--swiglu": "",
        "--disable-bias-linear": "",
        "--nnodes": "64",
    }
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
        "null",
        "true",
        "true",
    )
    uneven = launches(*case("latent attention"))["megatron-bridge"]
    layout = next(w for w in words(uneven) if w.startswith("model.pipeline_model_parallel_layout="))
    assert (
        layout.split("=", 1)[1] == f"'{uneven_stages(61, TrainingLayout(pp=16, vp=2))}'"
    )  # quoted once more, for Hydra


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
    layout = TrainingLayout(pp=pp, vp=vp)
    stages = uneven_stages(layers, layout).split("|")
    counts = [int("".join(c for c in s if c.isdigit()) or 0) for s in stages]
    assert len(stages) == pp * vp
    assert max(counts) - min(counts) <= 1
    assert stages[0].startswith("E")
    assert stages[-1].endswith("L")
    assert tuple(sum(counts[rank::pp]) for rank in range(pp)) == by_rank(layers, layout)


@pytest.mark.parametrize(
    ("model", "flags"),
    [
        ("llama-3.1-8b", {"--rotary-base": "500000", "--use-rope-scaling": "", "--rope-scaling-factor": "8"}),
        ("meta-llama/Meta-Llama-3-8B", {"--rotary-base": "500000"}),
        ("qwen3-30b-a3b", {"--rotary-base": "1000000"}),
        ("deepseek-v3", {"--rotary-base": "10000", "--rope-type": "yarn", "--rotary-scaling-factor": "40"}),
    ],
)
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
    stages = uneven_stages(126, TrainingLayout(pp=16, vp=8)).split("|")
    assert (stages[0], stages[1], stages[-1]) == ("E", "t*1", "L")


def test_told_ends_are_flags_of_their_own() -> None:
    """DeepSeek-V3 as Megatron's recipes cut it: 15 stages of 4 layers, and one layer with the head."""
    layout = TrainingLayout(tp=2, pp=16, dp=16, ep=32, sharding="zero1", recompute="full", last_stage_layers=1)
    made = launches(job("deepseek-v3", layout, "bf16"), layout)
    found = options(made["megatron-lm"])
    assert found["--decoder-last-pipeline-num-layers"] == "1"
    assert not {"--decoder-first-pipeline-num-layers", "--pipeline-model-parallel-layout"} & set(found)
    assert "model.num_layers_in_last_pipeline_stage=1" in made["megatron-bridge"]
    assert "model.num_layers_in_first_pipeline_stage=null" in made["megatron-bridge"]
    layout = TrainingLayout(tp=4, pp=8, vp=2, dp=4, sharding="zero1", first_stage_layers=4, last_stage_layers=4)
    found = options(launches(job("llama-3.1-70b", layout, "bf16"), layout)["megatron-lm"])
    assert (found["--decoder-first-pipeline-num-layers"], found["--num-virtual-stages-per-pipeline-rank"]) == ("4", "2")


def test_experts_with_a_capacity_say_it_and_others_do_not() -> None:
    layout = TrainingLayout(dp=8, ep=8, sharding="zero1")
    limited = job("mixtral-8x7b", layout, expert_capacity_ratio=1.25, pads_experts=True)
    said = options(launches(limited, layout)["megatron-lm"])
    assert said["--moe-expert-capacity-factor"] == "1.25"
    assert said["--moe-pad-expert-input-to-capacity"] == ""
    plain = options(launches(job("mixtral-8x7b", layout), layout)["megatron-lm"])
    assert not {"--moe-expert-capacity-factor", "--moe-pad-expert-input-to-capacity"} & plain.keys()


@pytest.mark.parametrize(
    ("graphs", "flags", "overrides"),
    [
        ("", {}, {}),
        ("none", {"--cuda-graph-impl": "none"}, {"model.cuda_graph_impl": "none"}),
        (
            "moe_router,attn",
            {"--cuda-graph-impl": "transformer_engine", "--cuda-graph-modules": "attn"},  # the first of two words
            {"model.cuda_graph_impl": "transformer_engine", "model.cuda_graph_modules": "[attn,moe_router]"},
        ),
        (
            "full_iteration",
            {"--cuda-graph-impl": "full_iteration"},
            {"model.cuda_graph_impl": "full_iteration"},
        ),
    ],
)
def test_graphs_are_said_where_somebody_speaks_of_them(graphs, flags, overrides) -> None:
    layout = TrainingLayout(dp=8, ep=8, sharding="zero1")
    plain = job("mixtral-8x7b", layout)
    asked = replace(plain, framework=replace(plain.framework, cuda_graphs=graphs, overlaps_experts=bool(graphs)))
    written = launches(asked, layout)
    found = options(written["megatron-lm"])
    assert {k: v for k, v in found.items() if k.startswith("--cuda-graph")} == flags
    assert ("--overlap-moe-expert-parallel-comm" in found) == bool(graphs)
    pairs = dict(w.split("=", 1) for w in words(written["megatron-bridge"]) if "=" in w and not w.startswith("-"))
    assert {k: v for k, v in pairs.items() if "cuda_graph" in k} == overrides
    assert pairs["model.overlap_moe_expert_parallel_comm"] == ("true" if graphs else "false")
