"""Multiplexed sequential coding (M-SGC): most data uncoded and repeated only when lost, the rest under a small code.

The data of a job is cut in two. D1: W - 1 chunks for every worker, which it alone computes, one a round. D2: B groups
of n chunks, each group under an (n, lambda) code. In slots W - 1 … W - 2 + B of the job a worker first repeats its
lost D1 chunks, one a slot; whoever owes none sends the coded task of that slot's group. A round holds one slot of each
of W - 1 + B jobs, so the delay is T = W - 2 + B. All slots are equally long: a D1 chunk is lambda + 1 D2 chunks.

    load = (lambda + 1) (W - 1 + B) / (n (B + (W - 1) (lambda + 1)))

With lambda = n there is no D2: load = (W - 1 + B) / (n (W - 1)). [krishnan-2023]
"""

from dataclasses import dataclass

import numpy as np

from orrery.training.coding.gradient_code import Bools, Floats, GradientCode, gradient_code
from orrery.training.coding.scheme import CodingKnobs, checked, undecodable
from orrery.training.coding.stragglers import follows_burst_model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Multiplexed:
    """The bursts it is built for, and the code of its D2 groups (none where everyone may straggle)."""

    num_workers: int
    knobs: CodingKnobs
    code: GradientCode | None

    @classmethod
    def of(cls, num_workers: int, knobs: CodingKnobs) -> "Multiplexed":
        """The scheme for bursts as ``knobs`` says."""
        everyone = knobs.num_stragglers >= num_workers
        code = None if everyone else gradient_code(num_workers, knobs.num_stragglers)
        return cls(num_workers=num_workers, knobs=knobs, code=code)

    @property
    def own_chunks(self) -> int:
        """D1 chunks of one worker: W - 1."""
        return self.knobs.window_rounds - 1

    @property
    def num_chunks(self) -> int:
        """n (W - 1) chunks of D1, then the n B chunks of D2's groups."""
        groups = self.knobs.burst_rounds if self.code is not None else 0
        return self.num_workers * (self.own_chunks + groups)

    @property
    def delay_rounds(self) -> int:
        """T = W - 2 + B."""
        return self.own_chunks + self.knobs.burst_rounds - 1

    @property
    def load_frac(self) -> float:
        """As in the formula above: W - 1 + B slots of equal size."""
        own, b, n = self.own_chunks, self.knobs.burst_rounds, self.num_workers
        if self.code is None:
            return (own + b) / (n * own)
        held = self.knobs.num_stragglers + 1
        return held * (own + b) / (n * (b + own * held))

    def tolerates(self, late: Bools) -> bool:
        """Whether the newest round keeps the pattern (B, W, lambda)-bursty."""
        return follows_burst_model(late, self.knobs)

    def decode(self, chunks: Floats, late: Bools) -> Floats:
        """Every job from its W - 1 + B slots."""
        jobs, width = checked(self, chunks, late)
        n, own, b = self.num_workers, self.own_chunks, self.knobs.burst_rounds
        has_own = np.zeros((jobs, n, own), dtype=np.bool_)
        has_coded = np.zeros((jobs, b, n), dtype=np.bool_)
        decoded = np.empty((jobs, width))
        for now, missing in enumerate(late):
            for slot in range(own + b):
                if 0 <= (job := now - slot) < jobs:
                    _answer(has_own[job], has_coded[job], slot, ~missing)
            if (done := now - self.delay_rounds) >= 0:
                decoded[done] = self._sum(done, chunks[done], has_own[done], has_coded[done])
        return decoded

    def _sum(self, job: int, chunks: Floats, has_own: Bools, has_coded: Bools) -> Floats:
        """D1 as it came, and every group of D2 decoded."""
        if not has_own.all():
            raise undecodable(job, has_own.size, int(np.count_nonzero(has_own)), "uncoded chunks")
        total = chunks[: has_own.size].sum(axis=0)
        if self.code is None:
            return total
        need = self.num_workers - self.code.num_stragglers
        groups = chunks[has_own.size :].reshape(len(has_coded), -1, chunks.shape[1])
        for group, has in zip(groups, has_coded, strict=True):
            if (have := int(np.count_nonzero(has))) < need:
                raise undecodable(job, need, have, "coded answers of a group")
            total = total + self.code.decode(self.code.encode(group), has)
        return total


def _answer(has_own: Bools, has_coded: Bools, slot: int, answers: Bools) -> None:
    """Note what the workers who answer send in this slot of a job."""
    own = has_own.shape[1]
    if slot < own:
        has_own[answers, slot] = True
        return
    owes = ~has_own.all(axis=1)
    repeats = np.flatnonzero(answers & owes)
    has_own[repeats, has_own[repeats].argmin(axis=1)] = True
    has_coded[slot - own, answers & ~owes] = True
