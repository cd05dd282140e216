"""The part of a scenario that holds techniques which change a training job as a whole."""

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from orrery.base.errors import nearest
from orrery.scenario.kinds import Count, Number, Switch, Word, bounds

WORDS = {
    "local_updates": ("synchronous", "co2", "diloco", "local-sgd", "gossip"),
    "sites_train": ("together", "experts"),
    "recovery": ("rollback", "redundant", "neighbour-average"),
    "detection": ("timeout", "collective"),
    "straggler_coding": ("gradient", "selective", "multiplexed"),
    "nic_placement": ("adapted", "grouped", "dealt", "one-transport"),
    "placement": ("searched", "two-rules"),
    "weight_sampling": ("gaussian",),
    "graph_parallel": ("vertices", "pipeline", "hybrid"),
    "graph_model": ("gcn", "graphsage", "gcnii", "resgcn"),
    "partition": ("zero3", "zero-plus-plus", "three-level", "levels"),
}
"""Settings that are one of a few words."""


class TechniqueScenario(BaseModel):
    """Techniques of training; blank means without it."""

    local_updates: Word = None
    local_steps: Count = Field(**bounds("local_steps"))
    local_neighbours: Count = Field(**bounds("local_neighbours"))
    exchange_bits: Count = Field(**bounds("exchange_bits"))
    participation_frac: Number = Field(**bounds("participation_frac"))
    sites: Count = Field(**bounds("sites"))
    site_link_bytes_per_s: Number = Field(**bounds("site_link_bytes_per_s"))
    sites_train: Word = None
    node_link_bytes_per_s: Number = Field(**bounds("node_link_bytes_per_s"))
    partition: Word = None
    partition_levels: Word = None
    link_levels: Word = None
    wire_weight_bits: Count = Field(**bounds("wire_weight_bits"))
    wire_gradient_bits: Count = Field(**bounds("wire_gradient_bits"))
    recovery: Word = None
    setback_steps: Number = Field(**bounds("setback_steps"))
    detection: Word = None
    diagnosis_s: Number = Field(**bounds("diagnosis_s"))
    report_s: Number = Field(**bounds("report_s"))
    repair_s: Number = Field(**bounds("repair_s"))
    spare_nodes: Count = Field(**bounds("spare_nodes"))
    parity_nodes: Count = Field(**bounds("parity_nodes"))
    parity_group_nodes: Count = Field(**bounds("parity_group_nodes"))
    reshape_to: Word = None
    pack_bytes_per_s: Number = Field(**bounds("pack_bytes_per_s"))
    checkpoint_file_s: Number = Field(**bounds("checkpoint_file_s"))
    worker_times: Word = None
    straggler_coding: Word = None
    max_stragglers: Count = Field(**bounds("max_stragglers"))
    burst_rounds: Count = Field(**bounds("burst_rounds"))
    window_rounds: Count = Field(**bounds("window_rounds"))
    wait_frac: Number = Field(**bounds("wait_frac"))
    seq_lengths: Word = None
    sequence_balancing: Switch = None
    nic_groups: Word = None
    nic_group_link_bytes_per_s: Number = Field(**bounds("nic_group_link_bytes_per_s"))
    nic_placement: Word = None
    graph: Word = None
    graph_parallel: Word = None
    graph_model: Word = None
    graph_layers: Count = Field(**bounds("graph_layers"))
    graph_hidden: Count = Field(**bounds("graph_hidden"))
    graph_parts: Count = Field(**bounds("graph_parts"))
    graph_chunks: Count = Field(**bounds("graph_chunks"))
    weight_sampling: Word = None
    placement: Word = None
    find_largest: Switch = None

    @field_validator(*WORDS)
    @classmethod
    def _one_of_the_known(cls, value: str | None, info: ValidationInfo) -> str | None:
        known = WORDS[str(info.field_name)]
        if value is not None and value not in known:
            near = nearest(value, known, 1)
            raise ValueError(f"write {near[0]!r}" if near else f"write one of {', '.join(known)}")
        return value
