"""Data of a save, its links and the steps beside it; and the cost under each way of saving.

Every way of saving (``training.checkpoint``) is a rule from a ``Saving`` and the steps between saves to a
``SaveCost``. The ways differ in what waits for what: a copy from the device runs at the rate of its link, shared host
memory permitting, and a write at the device's share of the storage. A copy into a host buffer that is being written
out at the same time ends after max(s / in, (s + left - buffer) / out): either link or space is the limit.
"""

import math
from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.training.faults.model import CheckpointPlan, check_not_negative, check_positive

SETTLED = 1e-9
"""Two saves in a row that differ by less than this part are taken as the steady state."""

MAX_SAVES = 10_000
"""After so many, what is reached counts as the steady state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """One device's part of the state, the links that it shares, and the parts of a step."""

    shard_bytes: float  # state of one device that must be saved
    num_devices: int
    devices_per_node: int
    forward_s: float  # of one step, all its micro-batches
    backward_s: float
    update_s: float
    device_to_host_bytes_per_s: float  # of one device's link
    storage_bytes_per_s: float  # of the file system, all nodes together
    node_storage_bytes_per_s: float = math.inf  # what one node can write
    host_memory_bytes_per_s: float = math.inf  # what one node's memory can take in
    host_buffer_bytes: float = math.inf  # of one node, for saves
    node_link_bytes_per_s: float = math.inf  # between nodes, one way, of one node
    num_replicas: int = 1  # data-parallel groups that hold the same state
    pack_bytes_per_s: float = math.inf  # what one device's process serialises, before it writes
    file_s: float = 0.0  # to create or open a device's file

    def __post_init__(self) -> None:
        check_positive(self, "shard_bytes", "num_devices", "devices_per_node", "device_to_host_bytes_per_s")
        check_positive(self, "storage_bytes_per_s", "node_storage_bytes_per_s", "host_memory_bytes_per_s")
        check_positive(self, "host_buffer_bytes", "node_link_bytes_per_s", "num_replicas", "pack_bytes_per_s")
        check_not_negative(self, "file_s")

    @property
    def step_s(self) -> float:
        """One step with nothing to save."""
        return self.forward_s + self.backward_s + self.update_s

    @property
    def immutable_s(self) -> float:
        """While no parameter and no optimizer state changes."""
        return self.forward_s + self.backward_s

    @property
    def copy_bytes_per_s(self) -> float:
        """Bandwidth (bytes/s) of one device into host memory, all devices of a node at once."""
        return min(self.device_to_host_bytes_per_s, self.host_memory_bytes_per_s / self.devices_per_node)

    @property
    def write_bytes_per_s(self) -> float:
        """Bandwidth (bytes/s) of one device's state into storage, all devices at once."""
        seconds = self.write_s(self.shard_bytes)
        return self.shard_bytes / seconds if seconds else math.inf

    def write_s(self, part_bytes: float) -> float:
        """Seconds in which every device packs so much, opens a file and writes it, one after the other."""
        rate = min(self.node_storage_bytes_per_s / self.devices_per_node, self.storage_bytes_per_s / self.num_devices)
        return part_bytes / self.pack_bytes_per_s + self.file_s + part_bytes / rate

    @property
    def buffer_bytes(self) -> float:
        """One device's part of the host buffer."""
        return self.host_buffer_bytes / self.devices_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveCost:
    """Cost of one save in the steady state, and the state that a failure finds."""

    blocked_s: float  # training stands still
    durable_lag_s: float  # from the end of the stop until storage has it
    load_s: float  # reading it back from storage
    copy_s: float = 0.0  # from the device to host memory, hidden or not
    memory_lag_s: float = math.inf  # from the end of the stop until memory has it; infinite: memory keeps nothing
    memory_load_s: float = math.inf  # putting it back from memory
    rebuild_s: float = math.inf  # a lost node's part from its group
    num_node_losses: int = 0  # of one group, that memory survives
    host_bytes: float = 0.0  # of one node
    node_link_bytes: float = 0.0  # one node sends for one save
    memory_interval_s: float = math.inf  # work between saves to memory


def storage_plan(saving: Saving, cost: SaveCost, interval_steps: int) -> CheckpointPlan:
    """The saves of ``interval_steps`` as a run sees them that restores them from storage."""
    return CheckpointPlan(
        interval_s=interval_steps * saving.step_s,
        blocked_s=cost.blocked_s,
        lag_s=cost.durable_lag_s,
        load_s=cost.load_s,
    )


def memory_plan(cost: SaveCost) -> CheckpointPlan:
    """The saves as a run sees them that restores them from host memory."""
    if math.isinf(cost.memory_interval_s):
        raise ScenarioError("memory_plan: this way of saving keeps nothing in memory; write storage_plan instead.")
    return CheckpointPlan(
        interval_s=cost.memory_interval_s,
        blocked_s=cost.blocked_s,
        lag_s=cost.memory_lag_s,
        load_s=cost.memory_load_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """Saves that pass a buffer: what each stops, and the steady state."""

    first_s: float  # the first save finds the buffer empty
    steady_s: float
    left_bytes: float  # still to be written when a save begins, in the steady state


def streamed(saving: Saving, interval_steps: int, hidden_s: float, *, waits_for_write: bool) -> Streamed:
    """Save after save through the host buffer, each copy hidden under ``hidden_s`` of the steps that follow.

    ``waits_for_write``: a save may begin only when the one before it is in storage; else it needs only space.
    """
    interval_s = interval_steps * saving.step_s
    first_s, left = _one_save(saving, interval_s, hidden_s, 0.0, waits_for_write)
    steady_s = first_s
    for _ in range(MAX_SAVES):
        blocked_s, after = _one_save(saving, interval_s, hidden_s, left, waits_for_write)
        is_settled = abs(blocked_s - steady_s) <= SETTLED * (blocked_s + interval_s)
        if is_settled and abs(after - left) <= SETTLED * saving.shard_bytes:
            break
        steady_s, left = blocked_s, after
    return Streamed(first_s=first_s, steady_s=steady_s, left_bytes=left)


def _one_save(
    saving: Saving, interval_s: float, hidden_s: float, left: float, waits_for_write: bool
) -> tuple[float, float]:
    """Blocked time, and the bytes that are not yet written when the next save begins."""
    bytes_in, bytes_out = saving.copy_bytes_per_s, saving.write_bytes_per_s
    queue_s, held = (left / bytes_out, 0.0) if waits_for_write else (0.0, left)
    room_s = (saving.shard_bytes + held - saving.buffer_bytes) / bytes_out
    blocked_s = queue_s + max(0.0, max(saving.shard_bytes / bytes_in, room_s) - hidden_s)
    return blocked_s, max(0.0, left + saving.shard_bytes - bytes_out * (interval_s + blocked_s))
