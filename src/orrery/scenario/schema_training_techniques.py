"""The part of a scenario that holds techniques which change a training job as a whole."""

from pydantic import ValidationInfo, field_validator

from orrery.base.errors import nearest
from orrery.scenario.fields import BY_NAME
from orrery.scenario.kinds import Count, Number, Settings, Switch, Word

WORDS = {
    "local_updates": ("synchronous", "co2", "diloco", "local-sgd", "gossip"),
    "sites_train": ("together", "experts"),
    "recovery": ("rollback", "redundant", "neighbour-average"),
    "detection": ("timeout", "collective"),
    "straggler_coding": ("gradient", "selective", "multiplexed"),
    "fabric": ("leaf-spine", "fat-tree"),
    "routing": ("ecmp", "planned", "spray"),
    "nic_placement": ("adapted", "grouped", "dealt", "one-transport"),
    "placement": ("searched", "two-rules"),
    "weight_sampling": ("gaussian",),
    "graph_parallel": ("vertices", "pipeline", "hybrid"),
    "graph_model": ("gcn", "graphsage", "gcnii", "resgcn"),
    "partition": ("zero3", "zero-plus-plus", "three-level", "levels"),
}
"""Settings that are one of a few words."""


class TechniqueScenario(Settings, table=BY_NAME):
    """Techniques of training; blank means without it."""

    local_updates: Word = None
    local_steps: Count = None
    local_neighbours: Count = None
    exchange_bits: Count = None
    participation_frac: Number = None
    sites: Count = None
    site_link_bytes_per_s: Number = None
    sites_train: Word = None
    node_link_bytes_per_s: Number = None
    partition: Word = None
    partition_levels: Word = None
    link_levels: Word = None
    wire_weight_bits: Count = None
    wire_gradient_bits: Count = None
    recovery: Word = None
    setback_steps: Number = None
    detection: Word = None
    diagnosis_s: Number = None
    report_s: Number = None
    failure_shape: Number = None
    checkpoint_buffer_bytes: Number = None
    slow_mtbf_s: Number = None
    slow_ratio: Number = None
    slow_notice_s: Number = None
    repair_s: Number = None
    spare_nodes: Count = None
    parity_nodes: Count = None
    parity_group_nodes: Count = None
    reshape_to: Word = None
    pack_bytes_per_s: Number = None
    checkpoint_file_s: Number = None
    worker_times: Word = None
    straggler_coding: Word = None
    max_stragglers: Count = None
    burst_rounds: Count = None
    window_rounds: Count = None
    wait_frac: Number = None
    seq_lengths: Word = None
    sequence_balancing: Switch = None
    nic_groups: Word = None
    nic_group_link_bytes_per_s: Number = None
    nic_placement: Word = None
    fabric: Word = None
    leaves: Count = None
    hosts_per_leaf: Count = None
    spines: Count = None
    planes: Count = None
    routing: Word = None
    graph: Word = None
    graph_parallel: Word = None
    graph_model: Word = None
    graph_layers: Count = None
    graph_hidden: Count = None
    graph_parts: Count = None
    graph_chunks: Count = None
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
