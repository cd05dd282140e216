"""One row of a training table as a job and a layout; every default that a blank takes is written down."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.evidence.metrics import OUT_OF_MEMORY, OUTCOME_COLUMNS
from orrery.evidence.row import Row
from orrery.evidence.training_cluster import cluster_of, device_of
from orrery.evidence.training_framework import framework_of, recipe_of
from orrery.evidence.training_layout import layout_of
from orrery.evidence.training_model import model_of
from orrery.execution.host_rates import copy_bytes_per_s
from orrery.execution.train.experts import DISPATCHERS, MASKED
from orrery.execution.train.framework import Framework
from orrery.execution.train.job import BASE_WEIGHTS, FROZEN, Task, TrainingJob
from orrery.execution.train.layout import Sharding, TrainingLayout
from orrery.execution.train.modules import modules_in
from orrery.execution.train.recipe import Recipe
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device
from orrery.kernels.ops import Popularity
from orrery.models.model import Block, Model
from orrery.scenario.expert_loads import expert_loads
from orrery.training.columns import columns_of
from orrery.training.memory import USABLE_FRAC
from orrery.training.reported import Tool
from orrery.training.step import step_of

TASKS: dict[str, Task] = {
    "": "pretrain",
    "pretrain": "pretrain",
    "pretraining": "pretrain",
    "full_finetune": "full_finetune",
    "finetune": "full_finetune",
    "sft": "full_finetune",
    "lora": "lora",
    "qlora": "qlora",
    "adapter": "adapter",
    "adapter_v2": "adapter",
    "forward_backward": "forward_backward",
}

ADAPTER_RANKS = {"litgpt": 8, "torchtune": 8, "huggingface-trainer": 8, "nemo": 32, "megatron-bridge": 32}
"""Rank of low-rank additions that each framework's recipes set (lora_r, lora_rank, dim)."""

INSTRUCTION_TOKENS = 512
"""Length that a fine-tuning row without one is taken to have: instruction samples are short. Assumed."""

LONGEST_INSTRUCTION_TOKENS = 1304
"""The longest sample of Alpaca, as LitGPT's fine-tuning scripts print it: what memory must hold."""

CONTEXT_BYTES = 1.5e9
"""Smallest part of a GPU's memory that the driver's context and libraries hold outside the allocator; assumed."""

T5_TOKENS_RATIO = 4
"""Tokens before T5's decoder over those behind it: 512 and 128 in Megatron's and NeMo's recipes."""

FEWEST_FRAC = 0.75
"""Smallest plausible share of six operations for each parameter of the linear layers that a token visits: whoever
states fewer ran another model, or counted otherwise than anybody else."""

CLEARLY = 1.1
"""A default is only overruled where it needs that much more memory than there is, and no sooner said not to fit."""

TOOLS: dict[str, Tool] = {
    "allocated": "allocated",
    "allocator": "allocated",
    "reserved": "reserved",
    "device": "device",
    "nvidia-smi": "device",
    "rocm-smi": "device",
}
"""Words of the column memory_tool."""

PADDED_FRAC = 0.5
"""Half of the tokens of BERT's samples of 512 are padding, which packing and unpadding leave out. [krell-2021]"""

_RANK = re.compile(r"rank (\d+)", re.IGNORECASE)


def read_training_row(row: Row) -> tuple[TrainingJob, TrainingLayout]:
    """The job and its layout. Raises an OrreryError whose text is the reason to decline."""
    device = device_of(row)
    model = model_of(row)
    task = _task(row)
    _check_operations(row, model, task)
    recipe = recipe_of(row, device)
    framework = framework_of(row, device, recipe, task, has_dropout=_has_dropout(row, model))
    seq_len = _seq_len(row, model, task)
    layout, global_batch = layout_of(row, model, device, framework, recipe, task, seq_len)
    cluster = cluster_of(row, device, layout.num_devices)
    longest = 0 if row.word("seq_len") or task in ("pretrain", "forward_backward") else LONGEST_INSTRUCTION_TOKENS
    job = _job(
        model,
        cluster,
        framework,
        recipe,
        seq_len,
        global_batch,
        task,
        _adapter_rank(row, framework) if task in FROZEN else 16,
        longest,
        _dispatcher(row),
        expert_loads(row.word("expert_loads"), model),
        _base_weights(row, task),
        row.count("loss_tokens"),
        row.number("expert_capacity_factor"),
        row.is_set("pad_experts"),
        copy_bytes_per_s(device) if offloads_activations(row) else 0.0,
    )
    if leaves_recompute_open(row, layout):
        layout = _as_little_again_as_fits(row, job, layout)
    return job, layout


def _check_operations(row: Row, model: Model, task: Task) -> None:
    """Refuse a row whose own rates leave a token far fewer operations than its model's linear layers have."""
    tokens, flops = (row.number(c) for c in ("tokens_per_s_per_device", "model_flops_per_s_per_device"))
    if not (tokens and flops) or task not in ("pretrain", "full_finetune"):
        return
    linear = 6.0 * sum(b.count * _active_parameters(b) for b in model.blocks)
    if flops / tokens < FEWEST_FRAC * linear:
        raise ScenarioError(
            f"the row's own rates give {flops / tokens:.2g} operations a token; {model.name} takes {linear:.2g}"
        )


def _active_parameters(block: Block) -> float:
    """Number of parameters of a layer's linear layers and of the experts that one token visits."""
    routed = block.experts.experts_per_token * block.experts.num_parameters_each if block.experts else 0
    return float(sum(x.num_parameters for x in block.linears) + routed)


def _as_little_again_as_fits(row: Row, job: TrainingJob, layout: TrainingLayout) -> TrainingLayout:
    """A run at scale that does not say what it shares or recomputes: as little as fits, where its default clearly does
    not. Sharing the optimizer costs least, whole parameters most."""
    layers = -(-job.model.num_layers // layout.pp)
    modules = [replace(layout, recompute="selective", recompute_modules=m) for m in _modules(job)]
    more: tuple[Sharding, ...] = ("zero1", "zero3") if layout.pp == 1 else ("zero1",)
    is_open = not row.word("sharding") and layout.num_data_ranks > 1
    shardings = [layout.sharding, *(s for s in more if is_open and s != layout.sharding)]
    partly = [replace(layout, recompute="full", recompute_layers=n) for n in range(1, layers)]
    again = (layout, *modules, *partly, replace(layout, recompute="full"))
    cheap = [s for s in shardings if s != "zero3" or s == layout.sharding]
    tried = [replace(x, sharding=s) for x in again for s in cheap]
    last = [replace(x, sharding=s) for s in shardings if s not in cheap for x in again]
    steps = step_of(job, columns_of([*tried, *last]))
    usable = usable_bytes(job.cluster.device)
    if steps.memory_bytes[0] <= CLEARLY * usable or not (fits := np.flatnonzero(steps.memory_bytes <= usable)).size:
        return layout
    first = fits[fits < len(tried)] if fits[0] < len(tried) else fits
    chosen = (*tried, *last)[int(first[np.argmin(steps.time_s[first])])]
    row.default("sharding and recompute", "as little as it takes to fit")
    return chosen


def _modules(job: TrainingJob) -> Iterator[tuple[str, ...]]:
    """Modules that Megatron's recipes recompute where memory is short, in the order of what they cost: activations and
    norms first, then what latent vectors expand to, feed-forward parts last. Only its own core names modules."""
    if not job.framework.names_modules:
        return
    chosen: tuple[str, ...] = ()
    for name in ("moe_act", "layernorm", "mla_up_proj", "shared_experts", "mlp", "moe"):
        if name in modules_in(job.model):
            chosen = (*chosen, name)
            yield chosen


def leaves_recompute_open(row: Row, layout: TrainingLayout) -> bool:
    """Whether a run at scale does not say what it computes again, so that a little more of it may make it fit."""
    return not row.word("recompute") and layout.num_devices > 1 and layout.recompute != "full"


def usable_bytes(device: Device, outside: float = 0.0) -> float:
    """Memory that the allocator may fill: the rest is the driver's, and on GPUs its context and communication
    libraries.
    """
    return USABLE_FRAC * device.memory_capacity_bytes - (max(CONTEXT_BYTES, outside) if device.kind == "gpu" else 0.0)


@lru_cache(maxsize=4096)
def _job(
    model: Model,
    cluster: Cluster,
    framework: Framework,
    recipe: Recipe,
    seq_len: int,
    global_batch: int,
    task: Task,
    rank: int,
    longest: int,
    dispatcher: str,
    loads: Popularity | None,
    base_weights: str,
    loss_tokens: int,
    capacity: float,
    pads: bool,
    offload_bytes_per_s: float,
) -> TrainingJob:
    """One object for all rows that describe the same job, so that their layouts can be answered together."""
    has_experts = any(b.experts for b in model.blocks)
    return TrainingJob(
        model=model,
        cluster=cluster,
        framework=framework,
        recipe=recipe,
        seq_len=seq_len,
        global_batch=global_batch,
        task=task,
        adapter_rank=rank,
        longest_seq_len=longest,
        dispatcher=dispatcher,
        expert_loads=loads,
        base_weights=base_weights,
        decoder_seq_len=seq_len // T5_TOKENS_RATIO if model.encoder else 0,
        loss_tokens=loss_tokens,
        expert_capacity_ratio=capacity if has_experts else 0.0,
        activation_offload_bytes_per_s=offload_bytes_per_s,
        pads_experts=(pads or dispatcher in MASKED) and has_experts and capacity > 0,
    )


def _task(row: Row) -> Task:
    word = row.word("task").casefold()
    if word not in TASKS:
        raise ScenarioError(f"task {word} is not modelled")
    if not word:
        row.default("task", "pretrain")
    return TASKS[word]


def _base_weights(row: Row, task: Task) -> str:
    """The format of frozen weights, where a row states one of fewer than 16 bits."""
    word = row.word("base_weights_format").casefold()
    return word if task in FROZEN and word in BASE_WEIGHTS else ""


def _dispatcher(row: Row) -> str:
    """The dispatcher of tokens to experts, where the row states it."""
    word = row.word("dispatcher").casefold()
    if word and word not in DISPATCHERS:
        raise ScenarioError(f"unknown dispatcher {word}; write {', '.join(DISPATCHERS)}")
    return word


def _has_dropout(row: Row, model: Model) -> bool:
    """Models of the Llama line train without dropout, and so does whatever has gated or squared activations."""
    options = row.word("framework_options").casefold()
    is_gated = any(x.name == "gate_up" for b in model.blocks for x in b.linears)
    return not (is_gated or "swiglu" in options or "squared-relu" in options or row.word("gated_ffn") == "true")


def _seq_len(row: Row, model: Model, task: Task) -> int:
    """Tokens of a sample. A blank is what the model was made for, or what instruction samples have."""
    if "strip padding" in row.word("note"):
        seq = round(PADDED_FRAC * row.needed("seq_len"))
        row.default("seq_len", f"{seq} (without padding)")
        return seq
    if row.word("seq_len"):
        return round(row.needed("seq_len"))
    if task in ("pretrain", "forward_backward"):
        return int(row.default("seq_len", str(min(model.max_context_tokens, 4096))))
    return int(row.default("seq_len", str(INSTRUCTION_TOKENS)))


def _adapter_rank(row: Row, framework: Framework) -> int:
    if rank := row.count("lora_rank"):
        return rank
    if found := _RANK.search(row.word("note")):
        return int(found[1])
    return int(row.default("adapter_rank", str(ADAPTER_RANKS.get(framework.name, 16))))


def is_out_of_memory(row: Row) -> bool:
    """Whether the run ended because memory did not suffice."""
    return any(row.word(c).casefold() in OUT_OF_MEMORY for c in OUTCOME_COLUMNS)


def counts_full_attention(row: Row) -> bool:
    """Whether the row's operations count every pair of tokens, though attention is causal (the note says so)."""
    return "full s^2 attention" in row.word("note")


def leaves_device(row: Row) -> bool:
    """Whether activations go to the host by a policy that the row does not spell out: what stays is not known."""
    return "offload" in row.word("recompute_as_published").casefold()


def offloads_activations(row: Row) -> bool:
    """Whether all that layers save goes to the host."""
    return row.is_set("activation_offloading") or "activation offloading" in row.word("technique").casefold()


def memory_tool(row: Row, framework: Framework) -> Tool:
    """Tool that measured a row's memory: as the row says, else the one that the framework's logs report."""
    word = row.word("memory_tool").casefold()
    if not word:
        return "device" if "nvidia-smi" in row.word("note").casefold() else framework.reports_memory
    if word not in TOOLS:
        raise ScenarioError(f"unknown memory_tool {word}; write allocated, reserved, or device (nvidia-smi)")
    return TOOLS[word]


def is_last_rank(row: Row) -> bool:
    """Whether the memory is the last rank's, not the fullest's: Megatron's logs, and so the golden values of its tests,
    are written by the last rank, which holds the last pipeline stage."""
    word = row.word("memory_rank").casefold()
    if word not in ("", "fullest", "last"):
        raise ScenarioError(f"unknown memory_rank {word}; write fullest or last")
    return word == "last" or (not word and "golden-value" in row.word("note"))
