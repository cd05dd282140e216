"""How a model is cut over devices and in which formats it is held."""

from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from orrery.base.errors import ScenarioError
from orrery.execution.engine import Engine
from orrery.hardware.cluster import Cluster
from orrery.models.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Degrees of parallelism. ``tp * pp * dp`` devices in all; ``ep`` divides the experts over tp * dp of them.

    ``dp`` > 1 without ``ep`` is independent replicas; with ``ep`` > 1 it is data-parallel attention in front of
    shared experts. ``cp`` cuts sequences.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    cp: int = 1

    @property
    def num_devices(self) -> int:
        """Devices of the whole layout."""
        return self.tp * self.pp * self.dp * self.cp

    def __str__(self) -> str:
        return " ".join(f"{k}{v}" for k in ("tp", "pp", "dp", "ep", "cp") if (v := getattr(self, k)) > 1 or k == "tp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """Storage formats by name: linear weights, activations, and key/value cache."""

    weights: str
    activations: str
    kv: str


DRAFT_METHODS = ("mtp", "eagle", "eagle3")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftHead:
    """A head that guesses so many tokens a step, and the chances that each holds where those before it did."""

    method: str  # one of DRAFT_METHODS, as vLLM calls them
    acceptance_fracs: tuple[float, ...]  # by position; as many as tokens are guessed
    ahead_tokens: float = (
        0.0  # that contexts are longer on average than steps count, where answers are counted in steps
    )

    def __post_init__(self) -> None:
        if self.method not in DRAFT_METHODS:
            raise ScenarioError(f"draft: got {self.method!r}; write one of {', '.join(DRAFT_METHODS)}.")
        if not self.acceptance_fracs or not all(0.0 <= a <= 1.0 for a in self.acceptance_fracs):
            raise ScenarioError(
                f"acceptance_by_position: got {self.acceptance_fracs}; write a share of 0 to 1 for every guess, such as "
                "0.85,0.7."
            )

    @property
    def num_tokens(self) -> int:
        """Guesses a step."""
        return len(self.acceptance_fracs)

    @property
    def tokens_per_step(self) -> float:
        """Tokens of a sequence that a step yields on average: 1 + a_1 + a_1 a_2 + …"""
        return 1.0 + sum(accumulate(self.acceptance_fracs, mul))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deployment:
    """A model on a cluster under an engine: everything but the traffic. Limits of 0 take the engine's default."""

    model: Model
    cluster: Cluster
    layout: Layout
    formats: Formats
    engine: Engine
    max_num_seqs: int = 0
    max_num_batched_tokens: int = 0
    max_model_tokens: int = 0
    memory_utilization_frac: float = 0.0
    draft_head: DraftHead | None = None
