"""Jobs and layouts that launches are written of, and readers of what was written."""

import ast
import shlex
from dataclasses import MISSING, fields, replace
from typing import Any, get_type_hints

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.train.framework import Framework
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.models.model import Model

SAID: dict[str, Any] = {
    "name": "megatron-lm",
    "has_fused_attention": True,
    "overlaps_gradients": True,
    "overlaps_parameters": True,
    "overlaps_tensor": True,
    "overlaps_pipeline": True,
}
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
        "llama-3.1-70b",
        "fp8_current",
        TrainingLayout(tp=4, pp=4, dp=4, vp=2, sharding="zero3", recompute="selective"),
    ),
    "half recomputed": (
        "llama-3.1-70b",
        "bf16",
        TrainingLayout(tp=8, pp=4, dp=2, sharding="zero1", recompute="full", recompute_layers=10),
    ),
    "ring": ("llama-3.1-8b", "bf16", TrainingLayout(tp=2, cp=4, dp=2, sharding="zero3")),
    "heads dealt out": (
        "llama-3.1-8b",
        "bf16",
        TrainingLayout(cp=4, dp=4, sharding="zero2", context_kind="all-to-all"),
    ),
    "experts": ("qwen3-30b-a3b", "mxfp8", TrainingLayout(tp=2, dp=16, ep=16, sharding="zero3", micro_batch=2)),
    "latent attention": (
        "deepseek-v3",
        "fp8_block",
        TrainingLayout(tp=2, pp=16, dp=16, vp=2, ep=32, sharding="zero1", recompute="full"),
    ),
    "four bits": ("llama-3.1-8b", "nvfp4", TrainingLayout(dp=8, sharding="zero3")),
    "no master weights": ("llama-3.1-8b", "bf16_pure", TrainingLayout(tp=2, dp=8, sharding="zero2")),
    "deepspeed's own degrees": ("qwen3-30b-a3b", "bf16", TrainingLayout(tp=2, dp=8, ep=4, sharding="zero3")),
    "experts on every rank": ("qwen3-30b-a3b", "bf16", TrainingLayout(tp=2, dp=8, sharding="zero3")),
    "deepspeed's pipeline": ("llama-3.1-8b", "bf16", TrainingLayout(pp=4, dp=4, sharding="zero1", recompute="full")),
    "zero bubble": (
        "llama-3.1-8b",
        "bf16",
        TrainingLayout(pp=4, dp=2, vp=2, sharding="zero2", schedule="zero-bubble-v"),
    ),
}

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
