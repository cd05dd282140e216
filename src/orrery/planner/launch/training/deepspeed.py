"""DeepSpeed: its JSON configuration. The training script is the user's, and calls ``deepspeed.initialize`` with it.

train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x data-parallel ranks. Beside tensor
parallelism it is left to DeepSpeed, which checks it against all ranks unless the script passes it groups of its own.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from orrery.execution.train.hidden import gradient_technique
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training.fit import experts_of
from orrery.planner.launch.training.precision import Precision, precision_of
from orrery.planner.launch.training.script import Draft, Script, Unsupported

CONFIG = "ds_config.json"
STAGES = {"none": 0, "zero1": 1, "zero2": 2, "zero3": 3}
Tier = Literal["", "cpu", "nvme"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """Where the optimizer's state and the parameters live between uses: on the device (""), in the host, on a drive."""

    optimizer: Tier = ""
    parameters: Tier = ""
    nvme_path: str = ""  # folder of the drive


ON_DEVICE = Offload()


def write(job: TrainingJob, layout: TrainingLayout, *, offload: Offload = ON_DEVICE) -> Script | Unsupported:
    """The JSON, and how a script is started with it."""
    precision = precision_of(job)
    if isinstance(precision, Unsupported):
        return precision
    if reason := _beyond(job, layout, precision) or _beyond_pipeline(layout) or _beyond_offload(layout, offload):
        return Unsupported(reason=reason)
    config = _config(job, layout, precision, offload)
    draft = Draft()
    draft.add("--deepspeed")
    draft.add("--deepspeed_config", CONFIG)
    return Script(
        program=draft.need("TRAIN_SCRIPT", "a training script that calls deepspeed.initialize"),
        arguments=tuple(draft.arguments),
        flags=tuple(draft.flags),
        config_keys=tuple(_dotted(config)),
        config_name=CONFIG,
        config=json.dumps(config, indent=2),
        needs=tuple(draft.needs),
    )


def _beyond(job: TrainingJob, layout: TrainingLayout, precision: Precision) -> str:
    if precision.scaling:
        return f"DeepSpeed's JSON has no {job.recipe.name} products; make the recipe bf16 or use megatron-lm"
    if layout.sharding_group and layout.sharding_group != layout.num_data_ranks:
        return "DeepSpeed shards over all data-parallel ranks; make sharding_group 0, or keep a secondary_group"
    if precision.is_pure and layout.sharding == "none":
        return "DeepSpeed keeps 16-bit master weights from zero1 on; make sharding zero1 or the recipe bf16"
    if layout.secondary_group and layout.sharding != "zero3":
        return "DeepSpeed keeps a second, nearer copy of parameters with zero3 alone; make sharding zero3"
    if layout.cp > 1 and layout.context_kind == "ring":
        return "DeepSpeed deals out heads (Ulysses) and has no ring; make context_kind all-to-all"
    if layout.cp > 1 and (layout.tp > 1 or layout.ep > 1):
        return "DeepSpeed's JSON states sequence parallelism without tp and ep; make them 1"
    if layout.recompute == "selective" and not job.framework.has_fused_attention:
        return "DeepSpeed recomputes what the script wraps, not parts of attention; make recompute full or none"
    if layout.recompute_modules:
        return "DeepSpeed's JSON names no modules of a layer to recompute; make recompute full or none"
    if layout.recompute_layers:
        return "DeepSpeed's JSON cannot say how many layers are recomputed; make recompute_layers 0"
    return ""


def _beyond_pipeline(layout: TrainingLayout) -> str:
    if layout.pp == 1:
        return ""
    if layout.first_stage_layers or layout.last_stage_layers:
        return "DeepSpeed's script cuts the stages; make first_stage_layers and last_stage_layers 0"
    if layout.sharding in ("zero2", "zero3"):
        return f"DeepSpeed's pipeline keeps gradients whole, {layout.sharding} cuts them; make sharding zero1 or pp 1"
    if layout.vp > 1 or layout.schedule != "1f1b":
        return "DeepSpeed's pipeline runs 1f1b with one chunk a rank; make schedule 1f1b and vp 1"
    if layout.tp > 1 or layout.cp > 1 or layout.ep > 1:
        return "DeepSpeed's JSON cannot combine pp with tp, cp or ep; make them 1 or use megatron-lm"
    return ""


def _beyond_offload(layout: TrainingLayout, offload: Offload) -> str:
    if offload.parameters and layout.sharding != "zero3":
        return "DeepSpeed moves parameters off the device with zero3 alone; make sharding zero3"
    if offload.optimizer and layout.sharding == "none":
        return "DeepSpeed moves the optimizer's state off the device from zero1 on; make sharding zero1"
    if "nvme" in (offload.optimizer, offload.parameters):
        if layout.sharding != "zero3":
            return "DeepSpeed uses a drive with zero3 alone; make sharding zero3"
        if not offload.nvme_path:
            return "a drive needs its folder; give Offload an nvme_path"
    return ""


def _config(job: TrainingJob, layout: TrainingLayout, precision: Precision, offload: Offload) -> dict[str, Any]:
    config: dict[str, Any] = {"train_batch_size": job.global_batch} if layout.tp == 1 else {}
    config |= {
        "train_micro_batch_size_per_gpu": layout.micro_batch,
        "gradient_accumulation_steps": job.num_micro_batches(layout),
        "bf16": {"enabled": precision.wide == "bf16"},
        "fp16": {"enabled": precision.wide == "fp16"},
        "zero_optimization": _zero(job, layout, offload),
    }
    if precision.is_pure:
        config["bf16"] |= {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}
    if precision.reduces_wide:
        config["communication_data_type"] = precision.wide
    if layout.recompute == "full":
        config["activation_checkpointing"] = {
            "partition_activations": layout.tp > 1 and layout.is_sequence_parallel,
            "number_checkpoints": job.model.num_layers,
        }
    return config | _parallel(job, layout)


def _parallel(job: TrainingJob, layout: TrainingLayout) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if layout.tp > 1:
        config["tensor_parallel"] = {"autotp_size": layout.tp}
    if layout.ep > 1 and experts_of(job) is not None:
        config["expert_parallel"] = {
            "enabled": True,
            "autoep_size": layout.ep,
            "expert_tensor_parallel_size": layout.etp,
        }
    if layout.cp > 1:
        config |= {"sequence_parallel_size": layout.cp, "data_parallel_size": layout.dp}
    if layout.pp > 1:
        interval = 1 if layout.recompute == "full" else 0
        config["pipeline"] = {"stages": layout.pp, "activation_checkpoint_interval": interval}
    return config


def _zero(job: TrainingJob, layout: TrainingLayout, offload: Offload) -> dict[str, Any]:
    stage = STAGES[layout.sharding]
    zero: dict[str, Any] = {"stage": stage}
    if stage:
        zero |= {"overlap_comm": gradient_technique(job).name != "gradient-serial", "contiguous_gradients": True}
        zero |= {"reduce_scatter": True}
    if layout.secondary_group:
        zero["zero_hpz_partition_size"] = layout.secondary_group
    for part, tier in (("offload_optimizer", offload.optimizer), ("offload_param", offload.parameters)):
        if tier:
            path = {"nvme_path": offload.nvme_path} if tier == "nvme" else {}
            zero[part] = {"device": tier, "pin_memory": True} | path
    return zero


def _dotted(config: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in config.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")  # pyright: ignore[reportUnknownArgumentType]
        else:
            yield prefix + key
