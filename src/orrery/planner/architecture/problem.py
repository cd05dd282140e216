"""A space of networks with what each of them comes to: choices, and metrics that are sums over them or exact functions.

Less is better of every metric but the score.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange

Floats = NDArray[np.float64]
Networks = NDArray[np.int64]
"""Networks, a line each: the alternative of every choice."""

SCORE = "score"
SLACK_FRAC = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One place of a network, and what may stand there."""

    name: str
    alternatives: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Metric:
    """A constant and an entry for each choice's alternative (nan where there is none), and a better answer if known.

    ``exact`` answers for whole networks where entries do not quite add up; searches that need sums use the table.
    """

    table: Floats | None = None
    constant: float = 0.0
    exact: Callable[[Networks], Floats] | None = None

    def of(self, networks: Networks) -> Floats:
        """The metric of every network, as exactly as is known."""
        return self.exact(networks) if self.exact else self.added(networks)

    def added(self, networks: Networks) -> Floats:
        """The sum over choices."""
        if self.table is None:
            raise OutOfRange("A metric without a table has no sum over choices.")
        return self.constant + self.table[np.arange(networks.shape[1]), networks].sum(axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """The choices, their metrics by name, and the network that others are compared with.

    ``reference``: the metrics of that network, which need not be of the space.
    """

    choices: tuple[Choice, ...]
    metrics: Mapping[str, Metric]
    reference_name: str
    reference: Mapping[str, float]

    @property
    def num_alternatives(self) -> tuple[int, ...]:
        """Number of alternatives of every choice."""
        return tuple(len(choice.alternatives) for choice in self.choices)

    @property
    def num_networks(self) -> int:
        """How many networks the space holds."""
        return prod(self.num_alternatives)

    def draw(self, count: int, rng: np.random.Generator) -> Networks:
        """Networks drawn evenly."""
        return rng.integers(np.array(self.num_alternatives), size=(count, len(self.choices)))

    def cost(self, name: str, networks: Networks) -> Floats:
        """A metric so that less is better."""
        return sign(name) * self.metrics[name].of(networks)

    def are_within(self, networks: Networks, limits: Mapping[str, float]) -> NDArray[np.bool_]:
        """Which networks keep every limit: at most so much of a metric, of the score at least."""
        found = np.full(len(networks), True)
        for name, limit in limits.items():
            slack = SLACK_FRAC * abs(limit) if limit not in (inf, -inf) else 0.0
            found &= self.cost(name, networks) <= sign(name) * limit + slack
        return found

    def words(self, network: NDArray[np.int64]) -> dict[str, str]:
        """Chosen alternative of every choice, by name."""
        return {c.name: c.alternatives[int(i)] for c, i in zip(self.choices, network, strict=True)}


def sign(name: str) -> float:
    """-1 where more is better."""
    return -1.0 if name == SCORE else 1.0
