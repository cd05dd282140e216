"""Work of the training devices on the rollouts: reward, log-probabilities, values, updates; seconds of each phase."""

from dataclasses import dataclass, replace

import numpy as np

from orrery.execution.train.job import TrainingJob
from orrery.models.model import Model
from orrery.rl.job import RlJob
from orrery.rl.lengths import Lengths
from orrery.rl.packing import Packed, packed, padded
from orrery.rl.sync import swap_s
from orrery.training.forward import forward_pass_s
from orrery.training.ranks import Rank, costed
from orrery.training.step import Steps

PHASES = (
    "generation",
    "reward",
    "log-probabilities",
    "reference log-probabilities",
    "values",
    "policy training",
    "critic training",
    "weight sync",
    "offload",
    "framework",
    "waiting for rollouts",
)
"""Phases of a step, in the order in which they are shown; those that a step has add up to it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Passes:
    """Seconds of a step's passes by phase, and the update that they were worked out from."""

    phases: dict[str, float]
    packing: Packed  # of the last batch
    steps: Steps  # of one update of it
    ranks: tuple[Rank, ...]  # memory by pipeline rank
    critic_ranks: tuple[Rank, ...]

    @property
    def time_s(self) -> float:
        """All phases together."""
        return sum(self.phases.values())


def passes(job: RlJob, batches: tuple[Lengths, ...]) -> Passes:
    """The mean over ``batches`` of what a step's passes take."""
    found = [_of_batch(job, lengths) for lengths in batches]
    names = found[0].phases
    mean = {name: float(np.mean([p.phases[name] for p in found])) for name in names}
    return replace(found[-1], phases=mean)


def packing_of(job: RlJob, lengths: Lengths) -> Packed:
    """Micro-batches of one update."""
    dp, room = job.layout.dp, job.training.seq_len * job.layout.micro_batch
    if job.is_packed:
        return packed(lengths.total, dp, job.num_updates, room)
    return padded(lengths.total, dp, job.num_updates, job.layout.micro_batch)


def update_job(job: RlJob, packing: Packed, model: Model) -> TrainingJob:
    """One optimizer step over packed sequences, as the training floor sees it."""
    return replace(
        job.training,
        model=model,
        seq_len=packing.seq_len,
        longest_seq_len=0,
        global_batch=packing.micro_batch * packing.num_micro_batches * job.layout.dp,
    )


def _of_batch(job: RlJob, lengths: Lengths) -> Passes:
    packing = packing_of(job, lengths)
    layout = replace(job.layout, micro_batch=packing.micro_batch)
    steps, ranks = costed(update_job(job, packing, job.training.model), layout)
    forward_s = job.num_updates * _forward_s(steps)
    times = job.num_updates * job.num_epochs
    phases = {"policy training": times * float(steps.time_s[0])}
    if job.has_old_logprobs:
        phases["log-probabilities"] = forward_s
    if job.has_reference:
        phases["reference log-probabilities"] = forward_s + swap_s(job, ranks)
    phases["reward"] = job.num_samples / job.kept_frac * job.reward.sample_s / job.reward.workers
    if job.reward.model is not None:
        scored, _ = costed(update_job(job, packing, job.reward.model), layout)
        phases["reward"] += job.num_updates * _forward_s(scored) / job.kept_frac
    critic_ranks: tuple[Rank, ...] = ()
    if job.critic is not None:
        valued, critic_ranks = costed(update_job(job, packing, job.critic), layout)
        phases["values"] = job.num_updates * _forward_s(valued)
        phases["critic training"] = times * float(valued.time_s[0])
    return Passes(phases=phases, packing=packing, steps=steps, ranks=ranks, critic_ranks=critic_ranks)


def _forward_s(steps: Steps) -> float:
    """A forward pass over the sequences of one update."""
    return forward_pass_s({name: float(value[0]) for name, value in steps.parts.items()})
