"""One step of RL post-training: a policy, its two pools of devices, and the flow of rollouts into updates.

GRPO draws a group of responses to each prompt and needs no critic; PPO trains one beside the policy; DAPO draws prompts
until enough groups are neither all right nor all wrong, and has no reference policy.
"""

from dataclasses import dataclass
from typing import Literal

from orrery.execution.layout import Deployment
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.models.model import Model
from orrery.rl.framework import RlFramework
from orrery.serving.synthesis.lengths import Length

Algorithm = Literal["grpo", "ppo", "dapo"]

ALGORITHMS: tuple[Algorithm, ...] = ("grpo", "ppo", "dapo")

Tail = Literal["wait", "partial", "batching"]
"""The slowest sequences: all wait for them; they go on in the next step; or they get rounds of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """Scoring of responses: a function on CPUs, or a model that reads every sequence once."""

    sample_s: float = 0.0  # of one response on one worker
    workers: int = 1
    model: Model | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RlJob:
    """One step: ``num_prompts`` x ``group`` responses, one reward each, and ``num_updates`` optimizer steps over them.

    ``training.seq_len`` is the longest sequence, prompt and response; ``training.cluster`` are the devices that train
    and ``replicas`` of ``generation`` those that generate, which are the same ones where ``is_colocated``.
    """

    framework: RlFramework
    training: TrainingJob
    layout: TrainingLayout
    generation: Deployment
    replicas: int
    num_prompts: int
    group: int
    prompt: Length
    response: Length
    num_updates: int = 1
    num_epochs: int = 1  # passes over the same rollouts
    algorithm: Algorithm = "grpo"
    has_reference: bool = True
    has_old_logprobs: bool = True
    critic: Model | None = None
    reward: Reward = Reward()
    is_packed: bool = True
    is_colocated: bool = True
    offloads: bool = True  # a colocated trainer leaves the device while the engine generates
    max_staleness: int = 0  # updates of the weights between a rollout's first token and its use; 0 = on policy
    updates_in_flight: bool = True  # engines take new weights without finishing what they have begun
    tail: Tail = "wait"
    oversampling_ratio: float = 1.0  # prompts that are begun over those that are needed
    kept_frac: float = 1.0  # of groups that are worth training on (dynamic sampling)
    seed: int = 0

    @property
    def num_samples(self) -> int:
        """Responses that one step trains on."""
        return self.num_prompts * self.group

    @property
    def num_devices(self) -> int:
        """Number of devices of both pools; shared ones count once."""
        trained = self.training.cluster.num_devices
        return trained if self.is_colocated else trained + self.generation_devices

    @property
    def generation_devices(self) -> int:
        """That generate."""
        return self.replicas * self.generation.layout.num_devices
