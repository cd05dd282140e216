"""A step of RL post-training: its phases, what limits it, how long each pool idles, and what each device holds.

in turn       generation + reward + log-probabilities + updates + handing weights over, and on the same devices the
              trainer's state off the device and back
side by side  the trainer's own work, its wait for rollouts, and handing weights over, which stops both pools
"""

from dataclasses import dataclass, field

from orrery.execution.memory import Infeasible, Memory, memory_of
from orrery.rl.engine import deployed
from orrery.rl.job import RlJob
from orrery.rl.pace import OverlappedSteps, side_by_side
from orrery.rl.passes import PHASES, Passes, passes
from orrery.rl.rollout import Rollouts, rollouts
from orrery.rl.sync import offload_s, offloaded_bytes, reference_bytes, weight_sync_s
from orrery.training.memory import room_bytes
from orrery.training.worth import power_w


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMemory:
    """The fullest device of a pool."""

    peak_bytes: float
    room_bytes: float
    parts: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def fits(self) -> bool:
        """Whether it runs at all."""
        return self.peak_bytes <= self.room_bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RlStep:
    """One step in its steady state."""

    job: RlJob
    phases: dict[str, float]  # seconds, in order; they add up to the step
    rollouts: Rollouts
    passes: Passes
    pace: OverlappedSteps | None  # where both pools work side by side
    trainer: PoolMemory
    generator: PoolMemory
    trainer_power_w: float  # of one device while it trains

    @property
    def time_s(self) -> float:
        """Seconds from one new policy to the next."""
        return sum(self.phases.values())

    @property
    def trained_tokens(self) -> float:
        """Tokens of the sequences that a step trains on."""
        return sum(float(r.lengths.total.sum()) for r in self.rollouts.rounds) / len(self.rollouts.rounds)

    @property
    def generation_idle_s(self) -> float:
        """Seconds of a step (shared devices: of generation) in which the mean replica has nothing to write."""
        if self.pace is not None:
            return self.time_s - self.pace.busy_frac * self.pace.period_s
        span_s = self.phases["generation"] if self.job.is_colocated else self.time_s
        return span_s - self.rollouts.busy_s

    @property
    def training_idle_s(self) -> float:
        """Seconds of a step in which training devices wait for rollouts; on shared devices they never do."""
        if self.job.is_colocated:
            return 0.0
        return self.phases.get("waiting for rollouts", 0.0) + self.phases.get("generation", 0.0)

    @property
    def energy_j(self) -> float:
        """Energy (J) of all devices in a step: engines as simulated and idle beside that, trainers at work and idle."""
        job, idle_w = self.job, self.job.training.cluster.device.idle_power_w
        trained = job.training.cluster.num_devices
        work_s = self.passes.time_s
        rest_s = max(0.0, self.time_s - work_s)
        if job.is_colocated:
            rest_s = max(0.0, rest_s - self.rollouts.time_s)
        generating = job.generation.cluster.device.idle_power_w * job.generation_devices
        after_s = 0.0 if job.is_colocated else max(0.0, self.time_s - self.rollouts.time_s)
        return (
            self.rollouts.energy_j + generating * after_s + trained * (self.trainer_power_w * work_s + idle_w * rest_s)
        )

    @property
    def limited_by(self) -> str:
        """The phase, or the pool, that a faster step has to begin with."""
        if self.pace is None:
            return max(self.phases, key=lambda name: self.phases[name])
        return "training" if self.phases["waiting for rollouts"] <= 0.01 * self.time_s else "generation"


def rl_step(job: RlJob) -> RlStep | Infeasible:
    """Cost one step, every sequence simulated; Infeasible where the engine cannot hold the model or a sequence."""
    found = rollouts(job)
    if isinstance(found, Infeasible):
        return found
    memory = memory_of(deployed(job))
    if isinstance(memory, Infeasible):
        return memory
    done = passes(job, tuple(r.lengths for r in found.rounds))
    sync_s, pace = weight_sync_s(job), None
    phases = dict(done.phases)
    if job.is_colocated or job.max_staleness == 0:
        phases["generation"] = found.time_s
        phases["offload"] = offload_s(job, done.ranks)
    else:
        pace = side_by_side(job, done.time_s + job.framework.step_s, found.simulated)
        if isinstance(pace, Infeasible):
            return pace
        phases["waiting for rollouts"] = max(0.0, pace.period_s - done.time_s - job.framework.step_s)
    phases |= {"weight sync": sync_s, "framework": job.framework.step_s}
    trainer = _trainer(job, done)
    return RlStep(
        job=job,
        phases={
            name: phases[name]
            for name in PHASES
            if phases.get(name) or (name == "waiting for rollouts" and pace is not None)
        },
        rollouts=found,
        passes=done,
        pace=pace,
        trainer=trainer,
        generator=_generator(job, done, memory),
        trainer_power_w=float(power_w(done.steps)[0]),
    )


def _trainer(job: RlJob, done: Passes) -> PoolMemory:
    """The fullest training device: the update's own peak, a reference policy beside it, a critic, a sleeping engine."""
    peaks = [r.peak_bytes for r in done.ranks]
    at = peaks.index(max(peaks))
    parts = dict(done.ranks[at].parts)
    if job.has_reference and not job.framework.keeps_reference_on_host:
        parts["reference"] = reference_bytes(job, done.ranks)
    if done.critic_ranks:
        parts["critic"] = sum(done.critic_ranks[at].parts[n] for n in ("weights", "gradients", "optimizer"))
    if job.is_colocated:
        parts["sleeping engine"] = job.generation.engine.context_bytes
    return PoolMemory(peak_bytes=sum(parts.values()), room_bytes=room_bytes(job.training), parts=parts)


def _generator(job: RlJob, done: Passes, memory: Memory) -> PoolMemory:
    """A device while it generates: what the engine takes, and on shared devices what the trainer leaves there."""
    parts = {
        "weights": memory.weights_bytes,
        "cache": memory.kv_capacity_bytes,
        "activations": memory.activation_bytes,
        "buffers": memory.communication_bytes,
        "context": memory.context_bytes,
    }
    if job.is_colocated:
        state = offloaded_bytes(done.ranks)
        parts["trainer"] = done.ranks[0].parts["fixed"] + (0.0 if job.offloads else state)
    return PoolMemory(peak_bytes=sum(parts.values()), room_bytes=room_bytes(job.training), parts=parts)
