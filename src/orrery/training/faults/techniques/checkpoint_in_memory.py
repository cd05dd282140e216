"""In-memory saves: replicas share out the snapshot, guard processes keep it, and parity outlives lost nodes."""

import math
from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.technique import Technique
from orrery.training.faults.model import check_not_negative, check_positive
from orrery.training.faults.saving import SaveCost, Saving


@dataclass(frozen=True, slots=True, kw_only=True)
class InMemoryKnobs:
    """Groups of ``group_nodes`` nodes keep ``num_parity`` parities; saves may take ``budget_frac`` of the time."""

    group_nodes: int = 6
    num_parity: int = 1
    budget_frac: float = 0.01

    def __post_init__(self) -> None:
        check_positive(self, "budget_frac", "group_nodes")
        check_not_negative(self, "num_parity")
        if self.num_parity >= self.group_nodes:
            raise ScenarioError(
                f"num_parity: got {self.num_parity} in groups of {self.group_nodes} nodes; write fewer than the group."
            )


def rule(saving: Saving, interval_steps: int, knobs: InMemoryKnobs) -> SaveCost:
    """Each replica copies 1 / replicas of the state, and stops for max(0, copy - forward - backward).

    Snapshots follow each other after as many steps as keep the stops within the budget and let parity end. A node
    sends its part once for each of m parities of its group; a lost node reads n - m pieces to have its own again.
    Storage gets its saves from the guard process, every ``interval_steps``, behind training.
    """
    part_bytes = saving.shard_bytes / saving.num_replicas
    copy_s = part_bytes / saving.copy_bytes_per_s
    blocked_s = max(0.0, copy_s - saving.immutable_s)
    node_bytes = part_bytes * saving.devices_per_node
    sent_bytes = node_bytes * knobs.num_parity
    parity_s = max(sent_bytes / saving.node_link_bytes_per_s, 2.0 * sent_bytes / saving.host_memory_bytes_per_s)
    behind_s = max(parity_s, blocked_s / knobs.budget_frac)
    steps = max(1, math.ceil(behind_s / saving.step_s * (1.0 - 1e-12)))
    write_s = saving.write_s(part_bytes)
    num_data = knobs.group_nodes - knobs.num_parity
    return SaveCost(
        blocked_s=blocked_s,
        durable_lag_s=max(parity_s, write_s),
        load_s=write_s + copy_s,
        copy_s=copy_s,
        memory_lag_s=parity_s,
        memory_load_s=saving.shard_bytes / saving.copy_bytes_per_s,
        rebuild_s=num_data * node_bytes / saving.node_link_bytes_per_s,
        num_node_losses=knobs.num_parity,
        host_bytes=2.0 * node_bytes * knobs.group_nodes / num_data,
        node_link_bytes=sent_bytes,
        memory_interval_s=steps * saving.step_s,
    )


TECHNIQUE = Technique(
    name="checkpoint-in-memory",
    word="in-memory",
    extension_point="training.checkpoint",
    rule=rule,
    knobs=InMemoryKnobs,
    gains="State is saved every few steps without storage, and comes back at the rate of the device's link.",
    costs="Host memory for two snapshots and parity, and the nodes' links; more losses than parities need storage.",
    claims=("reft-in-memory-ft",),
)
