"""An RL framework as this floor sees it: what its rollouts bring back, and what its steps cost beside the work."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orrery.base.sources import Fact


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RlFramework:
    """Defaults that a blank takes, and constants of handing weights over; the passes are the training framework's."""

    name: str  # "nemo-rl"
    training: str  # the training framework that it updates with, by name
    engine: str  # the engine that generates
    recompute: str  # what its recipes recompute; "" = as the training framework does
    sharding: str  # what its recipes share out over data ranks; "" = likewise
    returns_logprobs: bool  # rollouts bring the log-probability of every sampled token back
    has_reference: bool  # a frozen reference policy reads every sequence for the KL penalty
    keeps_reference_on_host: bool  # its weights change places with the policy's while it reads
    is_packed: bool  # sequences share micro-batches without padding
    runs_engines_by_ray: bool  # engines of several devices: Ray's executor, which does not schedule steps ahead
    caps_batches_in_flight: bool  # engines write K batches at once, not the K + 1 that staleness K leaves room for
    colocated_memory_frac: float  # of a device's memory that the engine may fill beside a trainer
    separate_memory_frac: float  # the same on devices of its own
    logprob_s: float  # host time of each sequence and decode step for its log-probability; nothing hides it
    colocated_tensor_s: float  # of each weight tensor that is gathered and handed over on the same devices
    separate_tensor_s: float  # the same where tensors are packed and broadcast
    broadcast_ratio: float  # rate of that broadcast between nodes over one device's own link
    offload_bytes_per_s: float  # of one device, to pageable host memory and back
    sleep_s: float  # of the engine: to give its memory up, and to take it again
    step_s: float  # once a step: data, advantages, sending arrays to workers
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
