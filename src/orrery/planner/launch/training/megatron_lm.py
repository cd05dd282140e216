"""Megatron-LM: ``torchrun pretrain_gpt.py`` with the model's sizes and the layout as flags."""

from orrery.execution.train.job import FROZEN, TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training.megatron_settings import beyond_megatron, settings
from orrery.planner.launch.training.megatron_sizes import add_sizes
from orrery.planner.launch.training.precision import Precision, precision_of
from orrery.planner.launch.training.script import Draft, Script, Unsupported


def write(job: TrainingJob, layout: TrainingLayout) -> Script | Unsupported:
    """The arguments of every rank."""
    if job.task in FROZEN:
        return Unsupported(reason=f"pretrain_gpt.py trains all weights, {job.task} freezes them; use megatron-bridge")
    if reason := beyond_megatron(job, layout):
        return Unsupported(reason=f"Megatron-LM {reason}")
    precision = precision_of(job)
    if isinstance(precision, Unsupported):
        return precision
    if precision.is_pure:
        return Unsupported(
            reason="Megatron-LM keeps a 32-bit copy of the weights; make the recipe bf16 or use torchtitan"
        )
    draft = Draft()
    for setting in settings(job, layout):
        if setting.flag and setting.value is not None and setting.value != setting.default:
            value = "" if setting.value is True else setting.value
            draft.add(setting.flag, *(value if isinstance(value, tuple) else (value,)))
    if reason := add_sizes(job.model, draft):
        return Unsupported(reason=reason)
    _add_precision(precision, draft)
    _add_overlap(job, layout, draft)
    _add_run(job, draft)
    return Script(
        program=f"{draft.need('MEGATRON_PATH', 'a checkout of Megatron-LM')}/pretrain_gpt.py",
        arguments=tuple(draft.arguments),
        flags=tuple(draft.flags),
        environment=_environment(layout),
        needs=tuple(draft.needs),
    )


def _add_precision(precision: Precision, draft: Draft) -> None:
    if precision.wide != "fp32":
        draft.add(f"--{precision.wide}")
    if precision.is_fp8:
        draft.add("--fp8-format", "hybrid" if precision.is_hybrid else "e4m3")
        draft.add("--fp8-recipe", precision.scaling)
        if precision.gathers_narrow:
            draft.add("--fp8-param-gather")
    elif precision.scaling:
        draft.add("--fp4-format", "e2m1")
        draft.add("--fp4-recipe", precision.scaling)
    if precision.num_wide_layers_last:
        draft.add("--first-last-layers-bf16")
        draft.add("--num-layers-at-start-in-bf16", precision.num_wide_layers_first)
        draft.add("--num-layers-at-end-in-bf16", precision.num_wide_layers_last)
    if precision.reduces_wide:
        draft.add("--grad-reduce-in-bf16")


def _add_overlap(job: TrainingJob, layout: TrainingLayout, draft: Draft) -> None:
    if job.framework.overlaps_tensor and layout.tp > 1 and layout.is_sequence_parallel:
        draft.add("--tp-comm-overlap")
    if layout.vp > 1 and layout.pp > 2 and not job.framework.overlaps_pipeline:
        draft.add("--no-overlap-p2p-communication")


def _add_run(job: TrainingJob, draft: Draft) -> None:
    """Flags that no layout determines: data, length of the run, and the place of checkpoints."""
    draft.add("--max-position-embeddings", job.seq_len)
    if not job.framework.has_dropout:
        draft.add("--attention-dropout", 0)
        draft.add("--hidden-dropout", 0)
    draft.add("--tokenizer-type", "HuggingFaceTokenizer")
    draft.add("--tokenizer-model", job.model.name)
    draft.variable("--data-path", "DATA_PATH", "tokenized data: the path before .bin and .idx")
    draft.variable("--train-iters", "TRAIN_ITERS", "steps to train")
    draft.variable("--lr", "LEARNING_RATE", "the highest learning rate")
    draft.variable("--save", "CHECKPOINTS", "a folder for checkpoints, shared by all nodes")
    if job.task == "full_finetune":
        draft.variable("--load", "BASE_CHECKPOINT", "the weights to start from, in Megatron's format")
        draft.add("--finetune")
    else:
        draft.variable("--load", "CHECKPOINTS", "a folder for checkpoints, shared by all nodes")
    draft.variable("--save-interval", "SAVE_INTERVAL", "steps between checkpoints", default="1000")


def _environment(layout: TrainingLayout) -> tuple[tuple[str, str], ...]:
    """One queue to the device keeps products and collectives in order; Megatron-FSDP needs several."""
    if layout.sharding in ("zero2", "zero3") or (layout.tp == 1 and layout.cp == 1):
        return ()
    return (("CUDA_DEVICE_MAX_CONNECTIONS", "1"),)
