"""The training part of a scenario."""

from typing import get_args

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from orrery.base.errors import ScenarioError, nearest
from orrery.execution.train.layout import Recompute
from orrery.execution.train.modules import read_modules
from orrery.scenario.kinds import Count, Number, Switch, Word, bounds

WORDS = {
    "sharding": ("none", "zero1", "zero2", "zero3", "fsdp"),
    "context_kind": ("ring", "all-to-all"),
    "dispatcher": ("all-gather", "all-to-all", "deepep", "hybridep"),
    "task": ("pretrain", "full_finetune", "lora", "qlora", "adapter", "forward_backward"),
}
"""Settings that are one of a few words."""


class TrainingScenario(BaseModel):
    """What a training job adds; blank means: take the documented default and say so."""

    global_batch: Count = Field(**bounds("global_batch"))
    micro_batch: Count = Field(**bounds("micro_batch"))
    seq_len: Count = Field(**bounds("seq_len"))
    precision: Word = None
    framework: Word = None
    fused_attention: Switch = None
    loss_tokens: Count = Field(**bounds("loss_tokens"))
    layout: Word = None
    against: Word = None
    vp: Count = Field(**bounds("vp"))
    first_stage_layers: Count = Field(**bounds("first_stage_layers"))
    last_stage_layers: Count = Field(**bounds("last_stage_layers"))
    etp: Count = Field(**bounds("etp"))
    sharding: Word = None
    sharding_group: Count = Field(**bounds("sharding_group"))
    secondary_group: Count = Field(**bounds("secondary_group"))
    recompute: Word = None
    recompute_layers: Count = Field(**bounds("recompute_layers"))
    schedule: Word = None
    context_kind: Word = None
    sequence_parallel: Switch = None
    tensor_overlap: Word = None
    expert_overlap: Word = None
    expert_replicas: Count = Field(**bounds("expert_replicas"))
    placement_interval_steps: Count = Field(**bounds("placement_interval_steps"))
    dispatcher: Word = None
    task: Word = None
    adapter_rank: Count = Field(**bounds("adapter_rank"))
    devices_per_node: Count = Field(**bounds("devices_per_node"))
    island_devices: Count = Field(**bounds("island_devices"))
    island_link_bytes_per_s: Number = Field(**bounds("island_link_bytes_per_s"))
    offload: Word = None
    host_memory_bytes: Number = Field(**bounds("host_memory_bytes"))
    host_memory_bytes_per_s: Number = Field(**bounds("host_memory_bytes_per_s"))
    nvme_bytes: Number = Field(**bounds("nvme_bytes"))
    devices_per_host_link: Count = Field(**bounds("devices_per_host_link"))
    host_updates_per_s: Number = Field(**bounds("host_updates_per_s"))
    nvme_read_bytes_per_s: Number = Field(**bounds("nvme_read_bytes_per_s"))
    nvme_write_bytes_per_s: Number = Field(**bounds("nvme_write_bytes_per_s"))
    train_tokens: Number = Field(**bounds("train_tokens"))
    device_mtbf_s: Number = Field(**bounds("device_mtbf_s"))
    node_mtbf_s: Number = Field(**bounds("node_mtbf_s"))
    detection_s: Number = Field(**bounds("detection_s"))
    restart_s: Number = Field(**bounds("restart_s"))
    checkpoint: Word = None
    checkpoint_interval_s: Number = Field(**bounds("checkpoint_interval_s"))
    storage_bytes_per_s: Number = Field(**bounds("storage_bytes_per_s"))
    eval_every_steps: Count = Field(**bounds("eval_every_steps"))
    eval_batches: Count = Field(**bounds("eval_batches"))
    data_tokens_per_s: Number = Field(**bounds("data_tokens_per_s"))
    startup_s: Number = Field(**bounds("startup_s"))

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
