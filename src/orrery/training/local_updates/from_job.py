"""A replica as the training floor costs it: one step of a job without its gradient exchange, and its collectives."""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.train.exchanges import collective_s
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.training.columns import columns_of
from orrery.training.replica import Exchange, Replica
from orrery.training.step import step_of
from orrery.training.sync import gradient_bytes

EXCHANGED = ("gradient reduction", "parameter gathering")
"""Parts of a step that data parallelism adds."""

WEIGHT_BYTES = 4.0
"""Parameters and outer momenta are averaged in 32 bits. [sun-2024], [douillard-2023]"""


def replica_of(
    job: TrainingJob, layout: TrainingLayout, weight_bytes: float = WEIGHT_BYTES, *, participants: int = 0
) -> Replica:
    """The replicas are ``layout.dp``; what one exchanges is what a device of its fullest stage holds.

    ``participants``: replicas that meet in one exchange of all; 0: every one.
    """
    if layout.sharding != "none" or layout.cp > 1 or layout.ep > 1:
        raise ScenarioError(f"local updates: {layout}; write a layout of tp, pp and dp without sharding.")
    steps = step_of(job, columns_of([layout]))
    parts = {name: float(seconds[0]) for name, seconds in steps.parts.items()}
    alone_s = sum(seconds for name, seconds in parts.items() if name not in EXCHANGED)
    micro_batches = job.num_micro_batches(layout)
    backward_s = (parts["backward"] + parts["weight gradients"] + parts["recomputation"]) / micro_batches
    held = max(float(h.parts["weights"][0]) for h in (steps.first, steps.last))
    num_parameters = held / (job.recipe.weights_bytes or job.framework.weights_bytes)
    wire = gradient_bytes(job)
    islands = job.islands.num_devices if job.islands else layout.num_devices
    inside = max(1, min(layout.dp, islands // layout.tp))
    f = job.framework
    return Replica(
        step_s=alone_s,
        backward_s=backward_s,
        num_parameters=num_parameters,
        gradient_bytes=wire,
        weight_bytes=weight_bytes,
        all_reduce_s=_exchange(job, "all_reduce", participants or layout.dp, layout.tp),
        inside_s=_exchange(job, "all_reduce", inside, layout.tp),
        neighbour_s=_exchange(job, "send_recv", min(2, layout.dp), _slowest_hop(job, layout)),
        contention_ratio=f.contention_ratio,
        last_frac=min(f.bucket_bytes / (wire * num_parameters), 1.0) if f.overlaps_gradients else 1.0,
    )


def _slowest_hop(job: TrainingJob, layout: TrainingLayout) -> int:
    """Slowest hop of a ring of all replicas, where it leaves an island, or else a node."""
    span = layout.tp * layout.dp
    if job.islands and span > job.islands.num_devices:
        return job.islands.num_devices
    return job.cluster.devices_per_node if span > job.cluster.devices_per_node else layout.tp


def _exchange(job: TrainingJob, kind: str, ranks: int, stride: int) -> Exchange:
    """Seconds of that collective among ``ranks`` that stand ``stride`` apart, as the framework's run slows it."""
    crosses = ranks * stride > job.cluster.devices_per_node
    ratio = job.framework.scaleout_ratio if crosses else job.framework.network_ratio
    group, apart = np.array([ranks]), np.array([stride])

    def seconds(message_bytes: float) -> float:
        return ratio * float(collective_s(job, kind, group, apart, np.array([message_bytes]))[0])

    return seconds
