"""Input of the fit: measurements, constants that may move, and predictions with other constants."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orrery.base.cost import Interval
from orrery.evidence.tables import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Constants = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One constant that runs may correct.

    ``stiffness`` is how far its logarithm is expected from the shipped one (one standard deviation); ``needs`` names
    the kind of run that would tell it.
    """

    name: str
    stiffness: float
    low: float
    high: float
    needs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One measurement: of which run, in which mode, of what; ``noise`` is relative, one sigma."""

    run: int
    mode: str
    metric: str
    measured: float
    noise: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The common part of all runs, for which a correction is written."""

    kind: str  # "engine" or "framework"
    base: str
    version: str
    precision: str
    device: str
    models: tuple[str, ...]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reference:
    """A question that the runs do not ask: its answers with other constants, and the shipped ones with intervals."""

    answers: Callable[[Constants], Mapping[str, float]]
    shipped: Mapping[str, tuple[float, Interval]]


class Runs(Protocol):
    """Runs of one engine or framework on one device, ready to be predicted with any constants."""

    @property
    def subject(self) -> Subject:
        """The settings that all runs share."""
        ...

    @property
    def table(self) -> Table:
        """The rows that could be read, as they stand."""
        ...

    @property
    def constants(self) -> Sequence[Constant]:
        """The constants that may move."""
        ...

    @property
    def start(self) -> Constants:
        """Their shipped values."""
        ...

    @property
    def cells(self) -> Sequence[Cell]:
        """Every measurement that is predicted."""
        ...

    @property
    def declined(self) -> Mapping[int, str]:
        """Rows of the user's table that no prediction is made for, and why."""
        ...

    def predict(self, run: int, constants: Constants) -> Mapping[str, float]:
        """Every measured metric of one run."""
        ...

    def references(self) -> Sequence[Reference]:
        """Other questions of the same engine or framework on the same device."""
        ...

    def spread_key(self, cell: Cell) -> str:
        """Under which name the interval of such a prediction is kept."""
        ...


RATES = frozenset(
    {
        "output_tokens_per_s",
        "total_tokens_per_s",
        "requests_per_s",
        "decode_tokens_per_s",
        "tokens_per_s_per_device",
        "model_flops_per_s_per_device",
        "mfu_frac",
    }
)
"""Metrics that are larger where a run is faster."""
