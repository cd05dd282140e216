"""The training part of a scenario."""

from typing import get_args

from pydantic import ValidationInfo, field_validator

from orrery.base.errors import ScenarioError, nearest
from orrery.execution.train.framework import AdapterTargets
from orrery.execution.train.layout import Recompute
from orrery.execution.train.modules import read_modules
from orrery.scenario.fields import BY_NAME
from orrery.scenario.kinds import Count, Number, Settings, Switch, Word

WORDS = {
    "sharding": ("none", "zero1", "zero2", "zero3", "fsdp"),
    "context_kind": ("ring", "all-to-all"),
    "dispatcher": ("all-gather", "all-to-all", "einsum", "einsum-flat", "deepep", "hybridep"),
    "target_modules": get_args(AdapterTargets),
    "task": ("pretrain", "full_finetune", "lora", "qlora", "adapter", "forward_backward"),
}
"""Settings that are one of a few words."""


class TrainingScenario(Settings, table=BY_NAME):
    """Settings of a training job; a blank takes the documented default, with a note."""

    global_batch: Count = None
    micro_batch: Count = None
    seq_len: Count = None
    precision: Word = None
    framework: Word = None
    fused_attention: Switch = None
    native_attention: Switch = None
    cuda_graphs: Word = None
    loss_tokens: Count = None
    layout: Word = None
    against: Word = None
    vp: Count = None
    first_stage_layers: Count = None
    last_stage_layers: Count = None
    etp: Count = None
    sharding: Word = None
    sharding_group: Count = None
    secondary_group: Count = None
    recompute: Word = None
    recompute_layers: Count = None
    schedule: Word = None
    context_kind: Word = None
    sequence_parallel: Switch = None
    tensor_overlap: Word = None
    expert_overlap: Word = None
    overlap_micro_batches: Switch = None
    gradient_overlap: Word = None
    expert_replicas: Count = None
    placement_interval_steps: Count = None
    expert_capacity_factor: Number = None
    pad_experts: Switch = None
    dispatcher: Word = None
    task: Word = None
    adapter_rank: Count = None
    target_modules: Word = None
    prune_activations: Switch = None
    devices_per_node: Count = None
    island_devices: Count = None
    island_link_bytes_per_s: Number = None
    offload: Word = None
    activation_offloading: Switch = None
    host_memory_bytes: Number = None
    host_memory_bytes_per_s: Number = None
    nvme_bytes: Number = None
    devices_per_host_link: Count = None
    host_updates_per_s: Number = None
    nvme_read_bytes_per_s: Number = None
    nvme_write_bytes_per_s: Number = None
    train_tokens: Number = None
    device_mtbf_s: Number = None
    node_mtbf_s: Number = None
    detection_s: Number = None
    restart_s: Number = None
    checkpoint: Word = None
    checkpoint_interval_s: Number = None
    storage_bytes_per_s: Number = None
    eval_every_steps: Count = None
    eval_batches: Count = None
    data_tokens_per_s: Number = None
    startup_s: Number = None

    @field_validator("recompute")
    @classmethod
    def _a_kind_or_modules(cls, value: str | None) -> str | None:
        """none, selective, full, or names of modules."""
        if value is not None and value not in get_args(Recompute):
            try:
                read_modules(value)
            except ScenarioError as error:
                raise ValueError(str(error).partition("; ")[2].rstrip(".")) from None
        return value

    @field_validator(*WORDS)
    @classmethod
    def _one_of_a_few(cls, value: str | None, info: ValidationInfo) -> str | None:
        known = WORDS[str(info.field_name)]
        if value is not None and value not in known:
            near = nearest(value, known, 1)
            raise ValueError(f"write {near[0]!r}" if near else f"write one of {', '.join(known)}")
        return value
