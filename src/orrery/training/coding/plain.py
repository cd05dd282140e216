"""Plain gradient coding: every round stands alone, and tolerates any s late workers. [tandon-2017]"""

from dataclasses import dataclass

import numpy as np

from orrery.training.coding.gradient_code import Bools, Floats, GradientCode
from orrery.training.coding.scheme import checked


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plain:
    """One code for every round; s = 0 is no coding at all."""

    code: GradientCode

    @property
    def num_workers(self) -> int:
        """Workers of the code."""
        return self.code.num_workers

    @property
    def num_chunks(self) -> int:
        """As many chunks as workers."""
        return self.code.num_workers

    @property
    def delay_rounds(self) -> int:
        """A job is done in its round."""
        return 0

    @property
    def load_frac(self) -> float:
        """(s + 1) / n."""
        return self.code.load_frac

    def tolerates(self, late: Bools) -> bool:
        """At most s late workers in the newest round."""
        return int(np.count_nonzero(late[-1])) <= self.code.num_stragglers

    def decode(self, chunks: Floats, late: Bools) -> Floats:
        """Every job from the answers of its own round."""
        checked(self, chunks, late)
        decoded = [self.code.decode(self.code.encode(job), ~missing) for job, missing in zip(chunks, late, strict=True)]
        return np.stack(decoded)
