"""Which experts of a layer tokens go to, and which of the next follow them: what placements are made from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IN_ORDER, COPIED, EXFLOW, MOETUNER = "in-order", "copied-context", "exflow", "moetuner"
BY_ROUTES = (COPIED, EXFLOW, MOETUNER)
"""Placements of experts by their routes; see ``experts.placed``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Routes:
    """Shares of the tokens by expert; layers x experts, and layers - 1 x experts x experts."""

    loads_frac: NDArray[np.float64]
    moves_frac: NDArray[np.float64]  # of the tokens that placements are found on
    judged_frac: NDArray[np.float64]  # of those that they are judged on
    has_affinity: bool  # False: a law in which nothing follows anything
    num_tokens: int = 0  # of a trace; 0: a law

    @property
    def shares(self) -> tuple[tuple[float, ...], ...]:
        """Loads as a law of popularity holds them."""
        return tuple(tuple(row) for row in self.loads_frac.tolist())
