"""Plain gradient coding: every round stands alone, and tolerates any s late workers. [tandon-2017]"""

from dataclasses import dataclass

import numpy as np

from orrery.training.coding.gradient_code import Bools, Floats
from orrery.training.coding.scheme import OneCode, checked


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plain(OneCode):
    """One code for every round; s = 0 is no coding at all."""

    @property
    def delay_rounds(self) -> int:
        """A job is done in its round."""
        return 0

    def tolerates(self, late: Bools) -> bool:
        """At most s late workers in the newest round."""
        return int(np.count_nonzero(late[-1])) <= self.code.num_stragglers

    def decode(self, chunks: Floats, late: Bools) -> Floats:
        """Every job from the answers of its own round."""
        checked(self, chunks, late)
        decoded = [self.code.decode(self.code.encode(job), ~missing) for job, missing in zip(chunks, late, strict=True)]
        return np.stack(decoded)
