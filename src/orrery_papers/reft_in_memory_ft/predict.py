"""REFT: snapshots in host memory, shared out among replicas, against one replica that saves for all."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.training.faults.saving import Saving
from orrery.training.faults.techniques.checkpoint_in_memory import InMemoryKnobs
from orrery.training.faults.techniques.checkpoint_in_memory import rule as in_memory
from orrery.training.faults.techniques.checkpoint_snapshot import SnapshotKnobs
from orrery.training.faults.techniques.checkpoint_snapshot import rule as snapshot

STATE_BYTES, FLOPS, PEAK_FRAC, FORWARD_FRAC = 14.0, 6.0, 0.3, 1.0 / 3.0  # see [unstated] step and state
SELDOM_STEPS = 10_000
"""So few saves that none waits for the one before it."""

KNOBS = InMemoryKnobs(group_nodes=6, num_parity=1)  # see [unstated] groups
TINY_STEP_S = 1e-9
"""Step too short to hide a copy under: what is compared is how long a save takes, not what of it shows."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """How much sooner a save is in host memory, and what it stops on the large machine."""
    testbed = paper.setups["testbed"]
    state = saving(testbed, TINY_STEP_S)
    one = snapshot(replace(state, devices_per_node=1), SELDOM_STEPS, SnapshotKnobs()).blocked_s
    shared = in_memory(state, SELDOM_STEPS, KNOBS).blocked_s
    yield Prediction(
        claim="saving-speedup",
        predicted=one / shared,
        because="every replica's own link copies its share, against one link for all",
        differs="as many times faster as there are replicas, each with a link of its own; shared links make it less",
    )
    frontier = paper.setups["frontier"]
    device = get_device(frontier.word("device"))
    tokens = frontier.number("sequence_tokens") * frontier.number("num_global_batch")
    peak = device.dense_flops_per_s["bf16"] / 2.0 * frontier.number("num_devices")  # two of its GPUs are one device
    state = saving(frontier, FLOPS * frontier.number("num_parameters") * tokens / (peak * PEAK_FRAC))
    cost = in_memory(state, 1, KNOBS)
    yield Prediction(
        claim="saving-overhead",
        predicted=cost.blocked_s / cost.memory_interval_s,
        because="the copy of a replica's share ends within forward and backward",
        differs="what the copies take of host memory from the step itself is not modelled",
    )


def saving(s: Setup, step_s: float) -> Saving:
    """Data saved by a device of a replica; storage is not asked, but for a rate."""
    devices, replicas = int(s.number("num_devices")), int(s.number("num_replicas"))
    return Saving(
        shard_bytes=STATE_BYTES * s.number("num_parameters") * replicas / devices,
        num_devices=devices,
        devices_per_node=int(s.number("num_devices_per_node")),
        num_replicas=replicas,
        forward_s=FORWARD_FRAC * step_s,
        backward_s=(1.0 - FORWARD_FRAC) * step_s,
        update_s=0.0,
        device_to_host_bytes_per_s=s.number("host_link_bytes_per_s"),
        storage_bytes_per_s=float("inf"),
        host_memory_bytes_per_s=s.number("host_memory_bytes_per_s", float("inf")),
        node_link_bytes_per_s=s.number("node_link_bytes_per_s", float("inf")),
    )
