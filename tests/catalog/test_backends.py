"""Which kernels engines choose: published cases, one a line, and what happens to words that mean nothing."""

import pytest

from orrery.base.errors import UnknownName
from orrery.catalog.backends import backend_names, backend_of_kernel, get_backend
from orrery.catalog.devices import get_device
from orrery.catalog.engines import engine_names, get_engine
from orrery.catalog.models import get_model, model_names
from orrery.execution.choice import by_tokens, choices, chosen
from orrery.execution.engine import BackendRule
from orrery.execution.layout import Backends, Deployment, Formats, Layout
from orrery.hardware.cluster import Cluster


def deployed(engine, version, device_name, model="qwen3-30b-a3b", mode="", backends=None, **layout) -> Deployment:
    device = get_device(device_name)
    cut = Layout(**layout)
    return Deployment(
        model=get_model(model),
        layout=cut,
        formats=Formats(weights="bf16", activations="bf16", kv="bf16"),
        cluster=Cluster(device=device, num_devices=cut.num_devices, devices_per_node=8),
        engine=get_engine(engine, version, device),
        backends=backends or Backends(),
        mode=mode,
    )


EXPERTS = [
    ("vllm", "0.33.0", "h100-sxm", "bf16", {}, "triton"),
    ("vllm", "0.22.1", "h100-sxm", "bf16", {}, "cutlass"),
    ("vllm", "0.33.0", "b200", "bf16", {}, "trtllm-gen"),
    ("vllm", "0.33.0", "b200", "bf16", {"dp": 2, "ep": 2}, "triton"),
    ("vllm", "0.18.0", "h200-sxm", "fp8_block", {"tp": 4}, "triton"),
    ("vllm", "0.18.0", "h200-sxm", "fp8_block", {"tp": 8, "ep": 8}, "cutlass"),
    ("vllm", "0.16.0", "h200-sxm", "fp8_block", {"tp": 4}, "cutlass"),
    ("vllm", "0.13.0", "h200-sxm", "fp8_block", {"tp": 8}, "triton"),
    ("vllm", "0.15.1", "b200", "fp8_block", {}, "trtllm-gen"),
    ("vllm", "0.14.1", "b200", "nvfp4", {}, "cutlass"),
    ("vllm", "0.15.1", "gb300", "nvfp4", {}, "trtllm-gen"),
    ("vllm", "0.33.0", "rtx-pro-6000-server", "nvfp4", {}, "cutlass"),
    ("vllm", "0.33.0", "h100-sxm", "nvfp4", {}, "marlin"),
    ("vllm", "0.11.2", "h100-sxm", "mxfp4", {}, "triton-kernels"),
    ("vllm", "0.33.0", "l40s", "mxfp4", {}, "marlin"),
    ("vllm", "0.20.2", "h200-sxm", "int4_weight_only", {}, "marlin"),
    ("sglang", "0.5.12", "b200", "mxfp4", {}, "trtllm-gen"),
    ("sglang", "0.5.12", "h100-sxm", "mxfp4", {}, "triton-kernels"),
    ("sglang", "0.5.3.post1", "b200", "nvfp4", {}, "cutlass"),
    ("sglang", "0.5.6.post2", "b200", "nvfp4", {}, "trtllm-gen"),
    ("sglang", "0.5.12", "h200-sxm", "fp8_block", {"tp": 8}, "triton"),
    ("sglang", "0.5.12", "b200", "int4_weight_only", {}, "trtllm-gen"),
    ("tensorrt-llm", "1.1.0", "b200", "nvfp4", {}, "cutlass"),
    ("tensorrt-llm", "1.2.0", "b200", "mxfp4", {}, "trtllm-gen"),
    ("tensorrt-llm", "1.0.0", "b200", "mxfp4", {}, "cutlass"),
    ("tensorrt-llm", "1.2.0", "h200-sxm", "mxfp4", {}, "triton-kernels"),
]


@pytest.mark.parametrize(("engine", "version", "device", "format", "layout", "expected"), EXPERTS)
def test_experts_run_what_the_release_chooses(engine, version, device, format, layout, expected):
    found = choices(deployed(engine, version, device, **layout), "moe", format)
    assert [c.backend for c in found] == [expected]
    assert found[0].fact is not None
    assert found[0].fact.source is not None


FAMILIES = [
    ("sglang", "0.5.8", "deepseek-r1", "b200", "fp8_block", "trtllm-gen"),
    ("sglang", "0.5.8", "MiniMaxAI/MiniMax-M2.5", "b200", "fp8_block", "triton"),
    ("sglang", "0.5.12", "qwen3-30b-a3b", "b200", "bf16", "trtllm-gen"),
    ("sglang", "0.5.12", "gpt-oss-120b", "b200", "bf16", "triton"),
    ("sglang", "0.5.15", "deepseek-ai/DeepSeek-V4-Flash", "h100-sxm", "mxfp4", "marlin"),
    ("sglang", "0.5.15", "gpt-oss-120b", "h100-sxm", "mxfp4", "triton-kernels"),
    ("vllm", "0.33.0", "deepseek-ai/DeepSeek-V4-Flash", "h100-sxm", "mxfp4", "marlin"),
    ("vllm", "0.33.0", "gpt-oss-120b", "h100-sxm", "mxfp4", "triton-kernels"),
]


@pytest.mark.parametrize(("engine", "version", "model", "device", "format", "expected"), FAMILIES)
def test_experts_run_what_the_release_chooses_for_a_family(engine, version, model, device, format, expected):
    found = choices(deployed(engine, version, device, model), "moe", format)
    assert [c.backend for c in found] == [expected]


def test_families_that_engines_ask_for_are_models_known_here():
    """A mistyped family would hold for no model, and be seen by nobody."""
    known = {get_model(name).family for name in model_names()}
    asked = {f for e in engine_names() for rule in get_engine(e).backends for f in rule.families}
    asked |= {f for e in engine_names() for f in (*get_engine(e).max_num_server_seqs, *get_engine(e).window_room_fracs)}
    assert "deepseek_v4" in asked
    assert asked <= known


def test_rooms_of_windows_by_family():
    rooms = get_engine("sglang").window_room_fracs
    assert (rooms["deepseek_v4"], rooms["gpt_oss"], rooms["gemma4_text"]) == (0.1, 0.8, 0.8)
    assert "gemma3_text" not in rooms
    assert "gpt_oss" not in get_engine("sglang", "0.5.6").window_room_fracs
    assert (get_engine("sglang").window_room_frac, get_engine("vllm").window_room_frac) == (1.0, 0.0)


def test_the_number_of_tokens_chooses_where_the_release_looks_at_it():
    """vLLM 0.11 to 0.14 on Hopper: Triton below 128 tokens, DeepGEMM from there on."""
    few, many = choices(deployed("vllm", "0.13.0", "h200-sxm", tp=4), "moe", "fp8_block")
    assert (few.backend, few.most_tokens, many.backend) == ("triton", 127.0, "deepgemm")


def test_guides_for_traffic_are_followed_where_the_traffic_is_known():
    """TensorRT-LLM's default is CUTLASS; its scripts for closed loops set its own kernels, without data parallelism."""
    for mode, dp, expected in (("closed", 1, "trtllm-gen"), ("closed", 2, "cutlass"), ("offline", 1, "cutlass")):
        found = choices(deployed("tensorrt-llm", "1.1.0", "b200", mode=mode, dp=dp, ep=dp), "moe", "nvfp4")
        assert found[0].backend == expected


def test_a_blank_version_is_the_newest_and_an_unknown_one_the_oldest():
    newest, oldest = (choices(deployed("vllm", v, "b200"), "moe", "nvfp4")[0].backend for v in ("", "unknown"))
    assert (newest, oldest) == ("trtllm-gen", "cutlass")


def test_what_is_asked_for_wins():
    found = choices(deployed("vllm", "0.33.0", "b200", backends=Backends(moe="cutlass")), "moe", "nvfp4")
    assert [(c.backend, c.fact) for c in found] == [("cutlass", None)]


ATTENTION = [
    ("vllm", "0.13.0", "deepseek-r1", "b200", "cutlass-mla"),
    ("vllm", "0.15.1", "deepseek-r1", "b200", "trtllm-gen"),
    ("vllm", "0.33.0", "deepseek-r1", "h100-sxm", "flash-attention-3"),
    ("vllm", "0.33.0", "qwen3-30b-a3b", "h100-sxm", "flash-attention-3"),
    ("vllm", "0.33.0", "qwen3-30b-a3b", "l40s", "flash-attention-2"),
    ("vllm", "0.33.0", "gpt-oss-120b", "l40s", "triton"),
    ("sglang", "0.5.12", "qwen3-30b-a3b", "b200", "trtllm-gen"),
    ("sglang", "0.5.2", "qwen3-30b-a3b", "b200", "flashinfer"),
    ("sglang", "0.5.12", "deepseek-r1", "h200-sxm", "flash-attention-3"),
    ("sglang", "0.5.16", "google/gemma-4-E4B-it", "h200-sxm", "triton"),
    ("sglang", "0.5.16", "google/gemma-4-E4B-it", "b200", "trtllm-gen"),
]


@pytest.mark.parametrize(("engine", "version", "model", "device", "expected"), ATTENTION)
def test_attention_runs_what_the_release_chooses(engine, version, model, device, expected):
    assert chosen(deployed(engine, version, device, model))["attention"][0].backend == expected


@pytest.mark.parametrize(
    ("version", "device", "format", "expected"),
    [
        ("0.33.0", "h100-sxm", "bf16", "cublas"),
        ("0.10.2", "h100-sxm", "fp8_block", "cutlass"),
        ("0.11.0", "h100-sxm", "fp8_block", "deepgemm"),
        ("0.19.1", "b200", "nvfp4", "cutlass"),
        ("0.33.0", "b200", "nvfp4", "cutedsl"),
        ("0.33.0", "h100-sxm", "int4_weight_only", "machete"),
        ("0.33.0", "a100-sxm-80gb", "fp8", "marlin"),
    ],
)
def test_products_run_what_vllm_chooses(version, device, format, expected):
    assert choices(deployed("vllm", version, device), "gemm", format)[0].backend == expected


def test_an_engine_without_rules_keeps_its_own_kernels():
    found = choices(deployed("tgi", "", "h100-sxm"), "moe", "bf16")
    assert found[0].backend == get_engine("tgi").kernels
    assert found[0].fact is None


def test_words_of_engines_mean_the_same_back_end():
    for word in ("flashinfer_trtllm", "TRTLLM", "flashinfer_mxfp4", "min-latency", "trtllm-gen"):
        assert get_backend("moe", word) == "trtllm-gen"


def test_an_unknown_back_end_is_refused_with_the_known_ones():
    with pytest.raises(UnknownName, match=r"no moe_backend 'tritn'\. Did you mean 'triton'") as refused:
        get_backend("moe", "tritn")
    assert all(name in str(refused.value) for name in backend_names("moe"))


@pytest.mark.parametrize(
    ("kernel", "format", "expected"),
    [
        ("moe_torch_flow_min_latency", "nvfp4", "trtllm-gen"),
        ("moe_torch_flow_cutlass", "nvfp4", "cutlass"),
        ("vllm_fp8moe_flashinfer_trtllm_trtllmfp8expertsmodular", "fp8_block", "trtllm-gen"),
        ("vllm_compressedtensorswna16marlinmoe_marlin_marlinexperts", "int4_weight_only", "marlin"),
        ("sglang_fused_moe_triton", "bf16", "triton"),
        ("sglang_fused_moe_triton", "mxfp4_weight_only", "triton-kernels"),
        ("vllm_gptossmxfp4moe_triton_oaitritonmxfp4expertsmonolithic", "mxfp4_weight_only", "triton-kernels"),
        ("vllm_fp8moe_flashinfer_cutlass_flashinferexperts", "fp8_block", "cutlass"),
        ("unheard_of", "bf16", ""),
    ],
)
def test_measured_kernels_are_told_by_their_names(kernel, format, expected):
    assert backend_of_kernel("moe", kernel, format) == expected


def _rule(backend: str, low: float = 0.0, high: float = float("inf")) -> BackendRule:
    fact = chosen(deployed("vllm", "0.33.0", "b200"))["gemm"][0].fact
    assert fact is not None
    return BackendRule(kind="moe", backend=backend, fact=fact, tokens=(low, high))


def test_the_first_rule_decides_at_every_number_of_tokens():
    """a holds from 10 to 20, b from 15 on, c everywhere: c to 9, a to 20, b from there."""
    found = by_tokens((_rule("a", 10, 20), _rule("b", 15), _rule("c")), "own")
    assert [(c.backend, c.most_tokens) for c in found] == [("c", 9.0), ("a", 20.0), ("b", float("inf"))]
    alone = by_tokens((_rule("a", 10, 20),), "own")
    assert [(c.backend, c.most_tokens) for c in alone] == [("own", 9.0), ("a", 20.0), ("own", float("inf"))]
