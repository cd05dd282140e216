"""PyTorch FSDP: the YAML of ``accelerate launch``, which calls ``fully_shard`` on every layer of the user's model.

Parameters that are gathered again in the backward pass are ZeRO-3, those kept after the forward pass ZeRO-2;
gradients and the optimizer's state are cut in both.
"""

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training.fit import devices_of_node, num_nodes, shard_ranks
from orrery.planner.launch.training.precision import Precision, precision_of
from orrery.planner.launch.training.script import Draft, Script, Unsupported

CONFIG = "fsdp.yaml"
BACKENDS = {"tensorwise": "AO", "delayed": "TE"}
"""Scaling of 8-bit products -> the library that accelerate calls for it."""


def write(job: TrainingJob, layout: TrainingLayout) -> Script | Unsupported:
    """The YAML, and how a script is started with it."""
    precision = precision_of(job)
    if isinstance(precision, Unsupported):
        return precision
    if reason := _beyond(job, layout, precision):
        return Unsupported(reason=reason)
    lines = _config(job, layout, precision)
    draft = Draft()
    draft.add("--config_file", CONFIG)
    draft.add("--gradient_accumulation_steps", job.num_micro_batches(layout))
    if num_nodes(job, layout) > 1:
        draft.variable("--machine_rank", "SLURM_NODEID", "this node's number, from 0")
        draft.variable("--main_process_ip", "MASTER_ADDR", "name or address of the first node")
        draft.variable("--main_process_port", "MASTER_PORT", "a free port of the first node", default="29500")
    return Script(
        program=draft.need("TRAIN_SCRIPT", "a training script that uses accelerate.Accelerator"),
        arguments=tuple(draft.arguments),
        flags=tuple(draft.flags),
        config_keys=_keys(lines),
        config_name=CONFIG,
        config="\n".join(lines),
        needs=tuple(draft.needs),
        launcher="accelerate",
    )


def _beyond(job: TrainingJob, layout: TrainingLayout, precision: Precision) -> str:
    degrees = {"tp": layout.tp, "pp": layout.pp, "cp": layout.cp, "ep": layout.ep, "etp": layout.etp}
    if cut := [name for name, degree in degrees.items() if degree > 1]:
        return f"FSDP alone cuts over data-parallel ranks; make {', '.join(cut)} 1 or use torchtitan"
    if layout.sharding in ("none", "zero1"):
        return f"FSDP shards gradients with the optimizer's state, {layout.sharding} does not; make sharding zero2"
    if layout.secondary_group:
        return (
            f"accelerate's YAML has no second, nearer copy of parameters; call fully_shard with "
            f"reshard_after_forward={layout.secondary_group}, or use deepspeed"
        )
    if layout.recompute == "selective" and not job.framework.has_fused_attention:
        return "accelerate recomputes whole layers or nothing; make recompute full or none"
    if layout.recompute_modules:
        return "accelerate names no modules of a layer to recompute; make recompute full or none"
    if layout.recompute_layers:
        return "accelerate recomputes every wrapped layer; make recompute_layers 0"
    if precision.scaling and precision.scaling not in BACKENDS:
        return f"accelerate has no {job.recipe.name} products; make the recipe fp8, fp8_current or bf16"
    if precision.is_pure:
        return "accelerate keeps 32-bit weights in mixed precision; make the recipe bf16 or use torchtitan"
    return ""


def _config(job: TrainingJob, layout: TrainingLayout, precision: Precision) -> list[str]:
    nodes = num_nodes(job, layout)
    products = "fp8" if precision.scaling else {"fp32": '"no"'}.get(precision.wide, precision.wide)
    lines = [
        f"# {job.global_batch} sequences of {job.seq_len} tokens a step: batches of {layout.micro_batch} "
        f"x {job.num_micro_batches(layout)} accumulated x {layout.dp} ranks",
        "compute_environment: LOCAL_MACHINE",
        "distributed_type: FSDP",
        f"num_machines: {nodes}",
        f"num_processes: {nodes * devices_of_node(job, layout)}",
        "machine_rank: 0",
        "main_training_function: main",
        "rdzv_backend: c10d",
        f"mixed_precision: {products}",
        "fsdp_config:",
        "  fsdp_version: 2",
        f"  fsdp_reshard_after_forward: {_word(layout.sharding == 'zero3')}",
        "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP",
        f"  fsdp_activation_checkpointing: {_word(layout.recompute == 'full')}",
        "  fsdp_offload_params: false",
        "  fsdp_cpu_ram_efficient_loading: true",
        "  fsdp_state_dict_type: SHARDED_STATE_DICT",
    ]
    copies = layout.dp // shard_ranks(layout)
    if copies > 1:
        lines += [
            "parallelism_config:",
            f"  parallelism_config_dp_replicate_size: {copies}",
            f"  parallelism_config_dp_shard_size: {shard_ranks(layout)}",
        ]
    return lines + _narrow(precision)


def _narrow(precision: Precision) -> list[str]:
    if precision.scaling == "tensorwise":
        gathers = _word(precision.gathers_narrow)
        return ["fp8_config:", "  backend: AO", f"  enable_fsdp_float8_all_gather: {gathers}"]
    if precision.scaling == "delayed":
        return ["fp8_config:", "  backend: TE", "  fp8_format: HYBRID"]
    return []


def _word(value: bool) -> str:
    return "true" if value else "false"


def _keys(lines: list[str]) -> tuple[str, ...]:
    """Dotted keys of the YAML, sections apart."""
    keys: list[str] = []
    section = ""
    for line in lines:
        if line.startswith("#"):
            continue
        name, _, value = line.partition(":")
        if not line.startswith(" "):
            section = "" if value else name
        keys.append(f"{section}.{name.strip()}" if line.startswith(" ") else name)
    return tuple(keys)
