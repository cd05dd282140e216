"""Layout settings common to Megatron-LM's flags and Megatron-Bridge's overrides: one core, two spellings."""

from collections.abc import Iterator
from dataclasses import dataclass

from orrery.execution.train.experts import DEEPEP, GATHER, HYBRIDEP, SEND, dispatcher_of
from orrery.execution.train.hidden import gradient_technique
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training.fit import experts_of, shard_ranks
from orrery.training.launches import PARTS, WHOLE_STEP, read_scopes
from orrery.training.stage_layers import by_chunk

STRATEGIES = {"zero2": "optim_grads", "zero3": "optim_grads_params"}
"""Megatron-FSDP's words for what is sharded beside the optimizer's state."""

DISPATCHERS = {
    GATHER: ("allgather", ""),
    SEND: ("alltoall", ""),
    DEEPEP: ("flex", "deepep"),
    HYBRIDEP: ("flex", "hybridep"),
}
"""Dispatchers of tokens to experts -> the core's words: a dispatcher, and the back end of the flexible one."""

SCHEDULES = ("1f1b", "interleaved")
"""Pipeline schedules of the core; the second wherever a rank holds several chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One choice: a flag ("" = has none), the keys of its overrides, its value, and what a blank takes.

    A value of ``True`` is a flag without a word, several words are a list; ``None`` leaves the flag out and is
    ``null`` in an override.
    """

    flag: str
    keys: tuple[str, ...]
    value: int | str | bool | tuple[str, ...] | None
    default: int | str | bool | None = None


def beyond_megatron(job: TrainingJob, layout: TrainingLayout) -> str:
    """Why the core cannot run the layout; "" where it can."""
    if layout.secondary_group:
        return "keeps no second, nearer copy of sharded parameters (hpZ); make secondary_group 0 or use deepspeed"
    if experts_of(job) is not None and dispatcher_of(job) not in DISPATCHERS:
        return f"has no dispatcher {dispatcher_of(job)}; make it {', '.join(DISPATCHERS)}"
    if layout.pp > 1 and layout.schedule not in SCHEDULES:
        return f"has no {layout.schedule} schedule; make it 1f1b or interleaved"
    if layout.pp > 1 and layout.vp > 1 and job.num_micro_batches(layout) < layout.pp:
        return f"interleaves from {layout.pp} micro-batches on; there are {job.num_micro_batches(layout)}"
    if layout.sharding_group and layout.sharding_group % layout.cp:
        return f"shards over whole context groups; make sharding_group a multiple of cp = {layout.cp}"
    if layout.ep > 1 and layout.tp > 1 and not layout.is_sequence_parallel:
        return "needs sequence parallelism where both tp and ep are above 1"
    if layout.recompute_layers % layout.vp:
        return f"recomputes layers of each chunk; make recompute_layers a multiple of vp = {layout.vp}"
    return ""


def settings(job: TrainingJob, layout: TrainingLayout) -> tuple[Setting, ...]:
    """Every choice, defaults too."""
    return (
        *_degrees(job, layout),
        *_experts(job, layout),
        *_sharding(job, layout),
        *_recompute(layout),
        *_graphs(job),
        *_batch(job, layout),
    )


def uneven_stages(num_layers: int, layout: TrainingLayout) -> str:
    """Layers of each chunk in Megatron's letters: E embeds, t is a layer, L the loss; ``|`` ends a chunk."""
    counts, chunks = by_chunk(num_layers, layout), layout.pp * layout.vp
    parts = [f"t*{n}" if n else "" for n in counts]
    return "|".join(("E" if i == 0 else "") + p + ("L" if i == chunks - 1 else "") for i, p in enumerate(parts))


def _degrees(job: TrainingJob, layout: TrainingLayout) -> Iterator[Setting]:
    chunks = layout.pp * layout.vp
    is_told = layout.first_stage_layers + layout.last_stage_layers > 0
    is_even = is_told or layout.pp == 1 or job.model.num_layers % chunks == 0
    yield Setting(
        flag="--tensor-model-parallel-size", keys=("model.tensor_model_parallel_size",), value=layout.tp, default=1
    )
    yield Setting(
        flag="--pipeline-model-parallel-size", keys=("model.pipeline_model_parallel_size",), value=layout.pp, default=1
    )
    yield Setting(
        flag="--num-virtual-stages-per-pipeline-rank" if is_even else "",
        keys=("model.virtual_pipeline_model_parallel_size",),
        value=layout.vp if layout.vp > 1 else None,
    )
    yield Setting(
        flag="--pipeline-model-parallel-layout",
        keys=("model.pipeline_model_parallel_layout",),
        value=None if is_even else uneven_stages(job.model.num_layers, layout),
    )
    for end, count in (("first", layout.first_stage_layers), ("last", layout.last_stage_layers)):
        yield Setting(
            flag=f"--decoder-{end}-pipeline-num-layers",
            keys=(f"model.num_layers_in_{end}_pipeline_stage",),
            value=count or None,
        )
    yield Setting(flag="--context-parallel-size", keys=("model.context_parallel_size",), value=layout.cp, default=1)
    if layout.cp > 1:
        kind = "a2a" if layout.context_kind == "all-to-all" else "p2p"
        yield Setting(flag="--cp-comm-type", keys=("model.cp_comm_type",), value=kind)
    has_sequence = layout.tp > 1 and layout.is_sequence_parallel
    yield Setting(flag="--sequence-parallel", keys=("model.sequence_parallel",), value=has_sequence, default=False)


def _experts(job: TrainingJob, layout: TrainingLayout) -> Iterator[Setting]:
    """``--expert-tensor-parallel-size`` is said even where it is 1: a blank takes tp."""
    if experts_of(job) is None:
        return
    yield Setting(
        flag="--expert-model-parallel-size", keys=("model.expert_model_parallel_size",), value=layout.ep, default=1
    )
    yield Setting(flag="--expert-tensor-parallel-size", keys=("model.expert_tensor_parallel_size",), value=layout.etp)
    kind, backend = DISPATCHERS[dispatcher_of(job)]
    yield Setting(flag="--moe-token-dispatcher-type", keys=("model.moe_token_dispatcher_type",), value=kind)
    if backend:
        yield Setting(flag="--moe-flex-dispatcher-backend", keys=("model.moe_flex_dispatcher_backend",), value=backend)
    yield Setting(
        flag="--overlap-moe-expert-parallel-comm",
        keys=("comm_overlap.overlap_moe_expert_parallel_comm", "model.overlap_moe_expert_parallel_comm"),
        value=job.framework.overlaps_experts,
        default=False,
    )
    yield Setting(
        flag="--moe-expert-capacity-factor",
        keys=("model.moe_expert_capacity_factor",),
        value=f"{job.expert_capacity_ratio:g}" if job.expert_capacity_ratio else None,
    )
    yield Setting(
        flag="--moe-pad-expert-input-to-capacity",
        keys=("model.moe_pad_expert_input_to_capacity",),
        value=job.pads_experts,
        default=False,
    )


def _sharding(job: TrainingJob, layout: TrainingLayout) -> Iterator[Setting]:
    framework, is_fsdp = job.framework, layout.sharding in STRATEGIES
    has_ranks = layout.num_data_ranks > 1
    yield Setting(
        flag="--use-distributed-optimizer",
        keys=("ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer"),
        value=layout.sharding != "none",
        default=False,
    )
    yield Setting(
        flag="--use-megatron-fsdp",
        keys=("ddp.use_megatron_fsdp", "dist.use_megatron_fsdp"),
        value=is_fsdp,
        default=False,
    )
    if is_fsdp:
        strategy = STRATEGIES[layout.sharding]
        yield Setting(
            flag="--data-parallel-sharding-strategy", keys=("ddp.data_parallel_sharding_strategy",), value=strategy
        )
        yield Setting(flag="--ckpt-format", keys=("checkpoint.ckpt_format",), value="fsdp_dtensor")
    yield Setting(
        flag="--num-distributed-optimizer-instances",
        keys=("ddp.num_distributed_optimizer_instances",),
        value=layout.num_data_ranks // shard_ranks(layout),
        default=1,
    )
    overlaps = gradient_technique(job).name != "gradient-serial" and has_ranks
    yield Setting(flag="--overlap-grad-reduce", keys=("ddp.overlap_grad_reduce",), value=overlaps, default=False)
    gathers = overlaps and framework.overlaps_parameters and layout.sharding != "none"
    yield Setting(flag="--overlap-param-gather", keys=("ddp.overlap_param_gather",), value=gathers, default=False)


def _recompute(layout: TrainingLayout) -> Iterator[Setting]:
    kind = layout.recompute
    is_part = kind == "full" and layout.recompute_layers > 0
    method = ("block" if is_part else "uniform") if kind == "full" else None
    layers = (layout.recompute_layers // layout.vp if is_part else 1) if kind == "full" else None
    granularity = None if kind == "none" else kind
    yield Setting(flag="--recompute-granularity", keys=("model.recompute_granularity",), value=granularity)
    if layout.recompute_modules:
        yield Setting(flag="--recompute-modules", keys=("model.recompute_modules",), value=layout.recompute_modules)
    yield Setting(flag="--recompute-method", keys=("model.recompute_method",), value=method)
    yield Setting(flag="--recompute-num-layers", keys=("model.recompute_num_layers",), value=layers)


def _graphs(job: TrainingJob) -> Iterator[Setting]:
    """CUDA graphs, where the scenario or the framework's recipes speak of them."""
    if not job.framework.cuda_graphs:
        return
    scopes = read_scopes(job.framework.cuda_graphs)
    is_whole = WHOLE_STEP in scopes
    kind = WHOLE_STEP if is_whole else "transformer_engine" if scopes else "none"
    yield Setting(flag="--cuda-graph-impl", keys=("model.cuda_graph_impl",), value=kind)
    if parts := tuple(p for p in PARTS if p in scopes and not is_whole):
        yield Setting(flag="--cuda-graph-modules", keys=("model.cuda_graph_modules",), value=parts)


def _batch(job: TrainingJob, layout: TrainingLayout) -> Iterator[Setting]:
    yield Setting(flag="--micro-batch-size", keys=("train.micro_batch_size",), value=layout.micro_batch)
    yield Setting(flag="--global-batch-size", keys=("train.global_batch_size",), value=job.global_batch)
    yield Setting(flag="--seq-length", keys=("model.seq_length", "dataset.seq_length"), value=job.seq_len)
