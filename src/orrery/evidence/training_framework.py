"""With which framework and recipe a row of a training table ran, and which of its settings the row changes."""

import re
from dataclasses import replace
from functools import lru_cache
from typing import get_args

from orrery.base.errors import ScenarioError
from orrery.catalog.frameworks import DEFAULT_FRAMEWORK, Use, framework_called, get_framework
from orrery.catalog.releases import UNVERSIONED, newest_at
from orrery.evidence.row import Row
from orrery.execution.train.framework import AdapterTargets, Framework
from orrery.execution.train.job import Task
from orrery.execution.train.recipe import Recipe
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.device import Device
from orrery.training.launches import read_scopes

FUSED_ATTENTION_SINCE = "2023"
"""Year from which runs of Megatron have fused attention: FlashAttention came out in mid-2022. [dao-2022]"""

UNFUSED_GENERATION = "volta"
"""FlashAttention needs the tensor cores of Turing or later. [dao-2022]"""

MEGATRON = frozenset({"megatron-lm", "megatron-llama", "megatron-deepspeed"})
"""Frameworks whose rows list the flags that a run had: what is not listed was off."""

SWITCHES = {
    "overlap-grad-reduce": "overlaps_gradients",
    "overlap-param-gather": "overlaps_parameters",
    "tp-comm-overlap": "overlaps_tensor",
    "sequence-parallel": "is_sequence_parallel",
    "use-flash-attn": "has_fused_attention",
    "overlap-moe-expert-parallel-comm": "overlaps_experts",
}
"""Megatron's flags, and what they switch on."""

ATTENTION: dict[str, tuple[bool, bool | None]] = {
    "unfused": (False, None),
    "local": (False, None),
    "eager": (False, None),
    "fused": (True, None),
    "flash": (True, None),
    "flash-2": (True, False),
    "flash-3": (True, True),
    "flash-4": (True, True),
    "cudnn": (True, True),
}
"""Words for what computes attention: whether scores stay out of memory, and whether the kernel is the generation's own
(None: as the framework's is). The first five are Megatron's and transformers'."""

_NIGHTLY = re.compile(r"dev(20\d\d)(\d\d)\d\d")
_CONTAINER = re.compile(r"^(?:NeMo container )?v?(\d+(?:\.\d+)+)")
_ARXIV = re.compile(r"arXiv:(\d\d)\d\d\.")


def recipe_of(row: Row, device: Device) -> Recipe:
    """The recipe behind ``precision``, made sharper by how the source spelled it."""
    word, spelled = row.word("precision").casefold(), row.word("precision_as_published").casefold()
    if not word:
        return get_recipe(row.default("precision", _usual_precision(row, device)))
    if word == "bf16" and ("pure" in spelled or "bf16-true" in spelled):
        return get_recipe("bf16_pure")
    if word == "fp8":
        for name, words in (
            ("fp8_current", ("fp8-cs", "float8", "current")),
            ("mxfp8", ("fp8-mx", "mxfp8")),
            ("fp8_block", ("fp8-sc", "block")),
        ):
            if any(w in spelled for w in words):
                return get_recipe(name)
    return get_recipe(word)


def _usual_precision(row: Row, device: Device) -> str:
    """FP8 in MLPerf where the device has it (submissions do not say), BF16 where the device has that, else FP16."""
    peaks = device.dense_flops_per_s
    if row.word("mlperf_round") and "fp8" in peaks and device.vendor.casefold() == "nvidia":
        return "fp8"
    return next((p for p in ("bf16", "fp16") if p in peaks), "fp32")


def framework_of(row: Row, device: Device, recipe: Recipe, task: Task, *, has_dropout: bool) -> Framework:
    """The framework, with the flags, words and dates of the row applied to its defaults."""
    name = row.word("framework") or row.default("framework", f"{DEFAULT_FRAMEWORK} (documented defaults)")
    name = name.split(" ")[0]
    if "same configs as NeMo perf scripts" in row.word("note"):
        name = row.default("settings", "nemo (the note says so)").split(" ")[0]
    use = Use(version=_release(row, name), model=row.word("model"), task=task, is_alone=row.count("num_devices") == 1)
    base = get_framework(name, device, recipe.name, use)
    changes = _flags(row, base, device) | _words(row, base)
    if base.has_dropout and not has_dropout:
        changes["has_dropout"] = False
    return _changed(base, tuple(sorted((k, v) for k, v in changes.items() if getattr(base, k) != v)))


def _release(row: Row, name: str) -> str:
    """The release that a row ran, as its version or container says, else the newest of its day; not known of a row
    that says neither."""
    if found := _CONTAINER.search(row.word("framework_version")):
        return found[1]
    day = row.word("measured_date")
    found = newest_at(framework_called(name), day) if day else ""
    return str(row.default("framework_version", f"{found} (the newest of {day})")).split()[0] if found else UNVERSIONED


@lru_cache(maxsize=1024)
def _changed(framework: Framework, changes: tuple[tuple[str, bool | float | str], ...]) -> Framework:
    """One object for equal settings, so that what is known of them is worked out once."""
    return replace(framework, **dict(changes)) if changes else framework  # pyright: ignore[reportArgumentType]


def _flags(row: Row, framework: Framework, device: Device) -> dict[str, bool | float | str]:
    """Megatron's listed flags; and those of a run that lists them where none is listed."""
    options = {w.strip() for w in row.word("framework_options").casefold().split(";") if w.strip()}
    out: dict[str, bool | float | str] = {SWITCHES[o]: True for o in options if o in SWITCHES}
    if word := row.word("attention_backend").casefold():
        if word not in ATTENTION:
            raise ScenarioError(f"unknown attention_backend {word}; write {', '.join(ATTENTION)}")
        is_fused, is_native = ATTENTION[word]
        out.setdefault("has_fused_attention", is_fused)
        if is_native is not None:
            out["has_native_attention"] = is_native
    if targets := row.word("target_modules"):
        if targets not in get_args(AdapterTargets):
            raise ScenarioError(f"unknown target_modules {targets}; write {', '.join(get_args(AdapterTargets))}")
        out["adapter_targets"] = targets
    if words := row.word("cuda_graphs"):
        out["cuda_graphs"] = ",".join(sorted(read_scopes(words))) or "none"
    if framework.name not in MEGATRON:
        return out
    note = row.word("note").casefold()
    if "sequence parallel" in note:
        out["is_sequence_parallel"] = "no sequence parallel" not in note
    if row.word("precision") == "fp16" and options and "accumulate-allreduce-grads-in-fp32" not in options:
        out["gradient_bytes"] = 2.0
    words = row.word("model").casefold().split("_")
    if "mcore" in words and "te" not in words and not options & {"use-flash-attn"}:
        out["has_fused_attention"] = False
        row.default("attention", "scores in memory (a test of the local layers, without Transformer Engine)")
    is_old = "" < _year(row) < FUSED_ATTENTION_SINCE or device.generation == UNFUSED_GENERATION
    if is_old and "has_fused_attention" not in out:
        out["has_fused_attention"] = False
        row.default("attention", "scores in memory (the run is older than fused attention, or the device has none)")
    return out


def _month(row: Row) -> str:
    """Year and month of a run, as far as its date or the build of PyTorch that it ran on says them."""
    if len(day := row.word("measured_date")) >= 7:
        return day[:7]
    found = _NIGHTLY.search(row.word("framework_version"))
    return f"{found[1]}-{found[2]}" if found else ""


def _year(row: Row) -> str:
    """The year of the run, or of the paper that reports it; blank where neither is known."""
    if day := row.word("measured_date"):
        return day[:4]
    found = _ARXIV.search(row.word("source"))
    return f"20{found[1]}" if found else ""


def _words(row: Row, framework: Framework) -> dict[str, bool | float | str]:
    """Return the settings that the texts of technique, torch_compile, note and version imply."""
    out: dict[str, bool | float | str] = {}
    technique, note = row.word("technique").casefold(), row.word("note").casefold()
    run = f"{row.word('model')} {row.word('framework_options')}".casefold()
    left = technique.replace("activation offloading", "")
    if "offload" in left or "offloads to cpu" in note or "offload" in run:
        raise ScenarioError("offloading activations or weights is not modelled in training")
    if "unpacked" in technique:
        raise ScenarioError("samples are not packed: how many tokens a step has is not known")
    if row.word("mlperf_round"):
        row.default("kernels and collectives", "fused and overlapped (MLPerf's submissions are tuned)")
        out |= dict.fromkeys(TUNED, True) | {"packed_tokens": 0.0}  # samples of GovReport fill a sequence
        out["adapter_targets"] = MLPERF_TARGETS
        out["overlaps_tensor"] = row.word("mlperf_round") >= TENSOR_OVERLAP_SINCE
    if row.is_set("torch_compile") or "compile" in technique:
        out["is_fused"] = True
        if framework.compiled_logits_bytes and (not _month(row) or _month(row) >= framework.compiles_loss_since):
            out["logits_bytes"] = out["parallel_logits_bytes"] = framework.compiled_logits_bytes
    if "eager" in note:
        out["has_fused_attention"] = False
    version = row.word("framework_version")
    if framework.name == "megatron-llama" and version.endswith(" DistributedOptimizer"):
        out |= {"overlaps_gradients": False, "overlaps_parameters": False}
    if "each row adds one technique to the row above" in note:
        out |= _added(technique)
    return out


TUNED = (
    "is_fused",
    "has_native_attention",
    "overlaps_gradients",
    "overlaps_parameters",
    "overlaps_tensor",
    "overlaps_pipeline",
)
"""Settings of tuned submissions."""

MLPERF_TARGETS = "attention"
"""Layers with low-rank adapters in the round's reference: target_modules qkv_proj and o_proj. (MLCommons training,
llama2_70b_lora)"""

TENSOR_OVERLAP_SINCE = "v3.1"
"""Transformer Engine cuts tensor-parallel collectives into pieces since 0.11 (August 2023), after round v3.0."""

STACK = (
    "packed dataset",
    "compile",
    "chunked cross entropy",
    "activation checkpointing",
    "optimizer in backward",
    "activation offloading",
    "8-bit adamw",
)
"""torchtune's table of techniques, each on top of those before it."""


def _added(technique: str) -> dict[str, bool | float | str]:
    """The settings of one line of that table; adapters keep those that do not touch the optimizer."""
    word = technique.removeprefix("+")
    place = STACK.index(word) if word in STACK else len(STACK)
    out: dict[str, bool | float | str] = {
        "is_fused": place >= STACK.index("compile"),
        "gradient_bytes": 2.0,
        "moments_bytes": 2.0 if word == STACK[-1] else 4.0,
    }
    if place < STACK.index("chunked cross entropy"):
        out["logits_bytes"] = 12.0
    if word in STACK and place >= STACK.index("optimizer in backward"):
        out["gradient_bytes"] = 0.0
    return out
