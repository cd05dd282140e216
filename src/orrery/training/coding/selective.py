"""Selective repetition (SR-SGC): a plain code for few stragglers, and one repetition B rounds later for the rest.

Job t is coded with an (n, s) code. Where more than s answers of job t - B are missing at round t, as many workers as
are needed, of those who owe one, compute their old task again in place of the new one. With W = x B + 1 and
s = ceil(B lambda / (W - 1 + B)) every (B, W, lambda)-bursty pattern is tolerated. [krishnan-2023]
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.training.coding.gradient_code import Bools, Floats, gradient_code
from orrery.training.coding.scheme import CodingKnobs, OneCode, checked, undecodable
from orrery.training.coding.stragglers import follows_burst_model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SelectiveRepetition(OneCode):
    """The base code, and the bursts that repetition makes up for."""

    knobs: CodingKnobs

    @classmethod
    def of(cls, num_workers: int, knobs: CodingKnobs) -> "SelectiveRepetition":
        """The scheme for bursts as ``knobs`` says; B must divide W - 1."""
        b, w = knobs.burst_rounds, knobs.window_rounds
        if (w - 1) % b:
            raise ScenarioError(f"selective repetition: bursts of {b} in windows of {w}; write W = x B + 1.")
        s = -(-b * knobs.num_stragglers // (w - 1 + b))
        return cls(code=gradient_code(num_workers, s), knobs=knobs)

    @property
    def delay_rounds(self) -> int:
        """T = B."""
        return self.knobs.burst_rounds

    def tolerates(self, late: Bools) -> bool:
        """Whether the newest round keeps the pattern (B, W, lambda)-bursty."""
        return follows_burst_model(late, self.knobs)

    def decode(self, chunks: Floats, late: Bools) -> Floats:
        """Every job from its own round and the repetitions B rounds later."""
        jobs, width = checked(self, chunks, late)
        n, s, b = self.num_workers, self.code.num_stragglers, self.knobs.burst_rounds
        answered = np.zeros((jobs, n), dtype=np.bool_)
        decoded = np.empty((jobs, width))
        for now, missing in enumerate(late):
            task = np.full(n, now)
            old = now - b
            if old >= 0:
                owing = np.flatnonzero(~answered[old])
                task[owing[: max(0, owing.size - s)]] = old
            worked = ~missing & (task < jobs)
            answered[task[worked], np.flatnonzero(worked)] = True
            if old >= 0:
                if (have := int(np.count_nonzero(answered[old]))) < n - s:
                    raise undecodable(old, n - s, have, "answers")
                decoded[old] = self.code.decode(self.code.encode(chunks[old]), answered[old])
        return decoded
