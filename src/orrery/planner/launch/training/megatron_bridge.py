"""Megatron-Bridge: a recipe of the model's, with the layout as overrides (``model.tensor_model_parallel_size=4``)."""

from orrery.execution.train.job import FROZEN, TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training.manifest import training_manifests
from orrery.planner.launch.training.megatron_settings import beyond_megatron, settings
from orrery.planner.launch.training.precision import Precision, precision_of
from orrery.planner.launch.training.script import Draft, Script, Unsupported

ENDINGS = {"pretrain": "pretrain", "full_finetune": "sft", "lora": "peft"}
"""Task -> how the names of its recipes end."""

RECIPES = {
    "delayed": "fp8_delayed_scaling",
    "tensorwise": "fp8_current_scaling",
    "blockwise": "fp8_subchannel_scaling",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
}
"""Scaling -> the middle of the precision recipe's name."""


def write(job: TrainingJob, layout: TrainingLayout) -> Script | Unsupported:
    """The overrides of every rank."""
    if job.task not in ENDINGS:
        return Unsupported(reason=f"Megatron-Bridge has no recipes for {job.task}; make the task lora or full_finetune")
    if reason := beyond_megatron(job, layout):
        return Unsupported(reason=f"Megatron-Bridge {reason}")
    precision = precision_of(job)
    if isinstance(precision, Unsupported):
        return precision
    if precision.reduces_wide and not precision.is_pure:
        return Unsupported(reason="Megatron-Bridge's precision recipes reduce gradients in 32 bits; use megatron-lm")
    if precision.wide == "fp32" or precision.is_pure:
        return Unsupported(
            reason="Megatron-Bridge's precision recipes are 16-bit with 32-bit master weights; make it bf16"
        )
    draft = Draft()
    _add_recipe(job, draft)
    for setting in settings(job, layout):
        for key in setting.keys:
            draft.override(key, _word(setting.value))
    _add_precision(precision, draft)
    _add_overlap(job, layout, draft)
    if job.task in FROZEN:
        draft.override("peft.dim", str(job.adapter_rank))
    if job.task != "pretrain":
        base = draft.need("BASE_CHECKPOINT", "the weights to start from, in Megatron's format")
        draft.override("checkpoint.pretrained_checkpoint", base)
    draft.override("checkpoint.save", draft.need("CHECKPOINTS", "a folder for checkpoints, shared by all nodes"))
    return Script(
        program=f"{draft.need('MEGATRON_BRIDGE_PATH', 'a checkout of Megatron-Bridge')}/scripts/training/run_recipe.py",
        arguments=tuple(draft.arguments),
        flags=tuple(draft.flags),
        config_keys=tuple(draft.keys),
        needs=tuple(draft.needs),
    )


def _add_recipe(job: TrainingJob, draft: Draft) -> None:
    """The model's recipe by name where one is recorded; else the user names one."""
    stem, ending = training_manifests()["megatron-bridge"].recipes.get(job.model.name), ENDINGS[job.task]
    if stem:
        draft.add("--recipe", f"{stem}_{ending}_config")
    else:
        draft.variable("--recipe", "RECIPE", f"a recipe of megatron.bridge.recipes that ends in _{ending}_config")
    draft.add("--mode", "pretrain" if job.task == "pretrain" else "finetune")
    if job.task in FROZEN:
        draft.add("--peft_scheme", job.task)


def _add_precision(precision: Precision, draft: Draft) -> None:
    middle = f"_with_{RECIPES[precision.scaling]}" if precision.scaling else ""
    draft.override("mixed_precision", f"{precision.wide}{middle}_mixed")
    if precision.num_wide_layers_last:
        draft.override("model.first_last_layers_bf16", "true")
        draft.override("model.num_layers_at_start_in_bf16", str(precision.num_wide_layers_first))
        draft.override("model.num_layers_at_end_in_bf16", str(precision.num_wide_layers_last))


def _add_overlap(job: TrainingJob, layout: TrainingLayout, draft: Draft) -> None:
    """A recipe's own section would overrule what is said here, and was tuned for the recipe's layout: it goes."""
    draft.override("comm_overlap", "null")
    is_cut = layout.tp > 1 and layout.is_sequence_parallel
    draft.override("model.tp_comm_overlap", _word(job.framework.overlaps_tensor and is_cut))
    sends_beside = job.framework.overlaps_pipeline and layout.vp > 1
    draft.override("model.overlap_p2p_comm", _word(sends_beside))
    draft.override("model.batch_p2p_comm", _word(not sends_beside))


def _word(value: int | str | bool | tuple[str, ...] | None) -> str:
    """A value as Hydra's overrides write it; text with signs of theirs is quoted for them and for the shell."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f'"[{",".join(value)}]"'
    text = str(value)
    return text if text.replace("_", "").isalnum() else f"\"'{text}'\""
