"""Launch commands use only flags that the engine's version accepts."""

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.hardware.cluster import Cluster
from orrery.planner.launch import WRITERS, launch, manifest_for
from orrery.planner.launch.manifest import Manifest, manifests

BF16 = Formats(weights="bf16", activations="bf16", kv="bf16")
FP8 = Formats(weights="fp8", activations="fp8", kv="fp8")
INT4 = Formats(weights="int4_weight_only", activations="bf16", kv="bf16")


def deployment(model: str = "llama-3.1-70b", layout: Layout | None = None, formats: Formats = FP8) -> Deployment:
    device, layout = get_device("h200-sxm"), layout or Layout(tp=4)
    return Deployment(
        model=get_model(model),
        cluster=Cluster(device=device, num_devices=layout.num_devices, devices_per_node=8),
        layout=layout,
        formats=formats,
        engine=get_engine("vllm", "", device),
        max_num_seqs=100,
        max_num_batched_tokens=8192,
        memory_utilization_frac=0.9,
    )


DEPLOYMENTS = {
    "tensor": deployment(),
    "pipeline": deployment(layout=Layout(tp=2, pp=2), formats=BF16),
    "context": deployment(layout=Layout(tp=2, cp=2), formats=BF16),
    "experts": deployment("qwen3-30b-a3b", Layout(tp=2, dp=2, ep=4), BF16),
    "attention data": deployment("deepseek-v3", Layout(tp=1, dp=8, ep=8), replace(FP8, weights="fp8_block")),
    "replicas inside": deployment("llama-3.1-8b", Layout(tp=1, dp=2), BF16),
    "weights only": deployment(formats=INT4),
    "seldom looking": replace(deployment(), scheduler_recv_interval=30),
    "copies of experts": replace(
        deployment("deepseek-v3", Layout(tp=1, dp=8, ep=8), replace(FP8, weights="fp8_block")),
        dispatcher="deepep-low-latency",
        num_redundant_experts=32,
    ),
    "without graphs": replace(deployment(), engine=replace(get_engine("vllm"), has_cuda_graphs=False)),
    "free memory": replace(deployment(), engine=get_engine("tensorrt-llm")),
}


@pytest.mark.parametrize("manifest", manifests(), ids=lambda m: f"{m.engine}-{m.version}")
@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_every_flag_is_one_that_the_version_accepts(manifest: Manifest, name: str) -> None:
    written = WRITERS[manifest.engine](DEPLOYMENTS[name], manifest, 5000.0)
    assert set(written.flags) <= manifest.flags
    assert set(written.config_keys) <= manifest.config_keys
    command = written.text.split("\nEOF\n")[-1]
    typed = {word for word in shlex.split(command.replace("\\\n", " ")) if word.startswith("--")}
    assert typed == set(written.flags)


def test_at_least_two_versions_of_every_engine_are_recorded() -> None:
    for engine in WRITERS:
        assert sum(m.engine == engine for m in manifests()) >= 2


def test_commands_say_what_the_plan_says() -> None:
    commands, notes = launch(DEPLOYMENTS["tensor"], longest_tokens=5000, replicas=2)
    assert "--tensor-parallel-size 4" in commands["vllm"]
    assert "--quantization fp8" in commands["vllm"]
    assert "--max-model-len 5120" in commands["vllm"]
    assert "--tp-size 4" in commands["sglang"]
    assert "--kv-cache-dtype fp8_e4m3" in commands["sglang"]
    assert "--tp_size 4" in commands["tensorrt-llm"]
    assert "dtype: fp8" in commands["tensorrt-llm"]
    assert any("start 2 of these" in n for n in notes)


def test_steps_without_graphs_are_asked_for_in_every_engines_words() -> None:
    words = {"vllm": "--enforce-eager", "sglang": "--disable-cuda-graph", "tensorrt-llm": "cuda_graph_config: null"}
    eager, _ = launch(DEPLOYMENTS["without graphs"])
    usual, _ = launch(DEPLOYMENTS["tensor"])
    assert {engine: word in eager[engine] for engine, word in words.items()} == dict.fromkeys(words, True)
    assert {engine: word in usual[engine] for engine, word in words.items()} == dict.fromkeys(words, False)


def test_data_parallel_attention_is_spelled_as_the_version_spells_it() -> None:
    d = DEPLOYMENTS["attention data"]
    new, _ = launch(d, versions={"sglang": "0.5.23"})
    old, _ = launch(d, versions={"sglang": "0.5.5"})
    assert "--attn-dp-size 8" in new["sglang"]
    assert "--enable-dp-attention" not in new["sglang"]
    assert "--dp-size 8" in old["sglang"]
    assert "--enable-dp-attention" in old["sglang"]
    assert "--tp-size 8" in old["sglang"]
    assert "enable_attention_dp: true" in new["tensorrt-llm"]
    assert "--data-parallel-size 8" in new["vllm"]


def test_a_format_no_engine_makes_is_said() -> None:
    _, notes = launch(DEPLOYMENTS["weights only"])
    assert sum("int4_weight_only" in n for n in notes) == 3


@pytest.mark.parametrize(
    ("requested", "got"),
    [("", "0.33.0"), ("0.25.0", "0.20.0"), ("0.11.0", "0.11.0"), ("0.6.0", "0.11.0"), ("9", "0.33.0")],
)
def test_the_newest_recorded_version_that_is_not_newer_answers(requested: str, got: str) -> None:
    assert manifest_for("vllm", requested).version == got


def test_flags_are_recorded_from_source(tmp_path: Path) -> None:
    folder = tmp_path / "sglang" / "srt" / "arg_groups" / "fields"
    folder.mkdir(parents=True)
    (tmp_path / "sglang" / "srt" / "server_args.py").write_text(
        "parser.add_argument('--old-flag', '-o', help='--not this')"
    )
    (folder / "parallel.py").write_text(
        "class P:\n"
        "    tp_size: A[int, Arg(help='x', aliases=['--tensor-parallel-size'])] = 1\n"
        "    hidden: A[int, Arg(no_cli=True)] = 1\n"
        "    plain: int = 3\n"
    )
    tool = Path(__file__).parents[2] / "tools" / "record_flags.py"
    subprocess.run(
        [sys.executable, tool, "sglang", "9.9", tmp_path, "--out", tmp_path], check=True, capture_output=True
    )
    text = (tmp_path / "sglang-9.9.toml").read_text()
    for flag in ("--old-flag", "--tp-size", "--tensor-parallel-size"):
        assert f'"{flag}"' in text
    for absent in ("--hidden", "--plain", "--not this"):
        assert f'"{absent}"' not in text
