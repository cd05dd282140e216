"""Layout of a model over devices, and the formats in which it is held."""

from dataclasses import dataclass, field
from typing import Literal

from orrery.base.errors import ScenarioError
from orrery.execution.engine import Engine
from orrery.execution.host_experts import HostExperts
from orrery.execution.kept_cache import NOTHING, Compression
from orrery.execution.routes import BY_ROUTES, Routes
from orrery.hardware.cluster import Cluster
from orrery.hardware.sparsity import Sparsity
from orrery.kernels.ops import Popularity
from orrery.models.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Degrees of parallelism. ``tp * pp * dp`` devices in all; ``ep`` divides the experts over tp * dp of them.

    ``dp`` > 1 without ``ep`` is independent replicas; with ``ep`` > 1 it is data-parallel attention in front of
    shared experts. ``etp`` is how many devices hold a part of the same expert; 0 is what ``ep`` leaves over. Where
    ep x etp exceeds tp, ranks share the experts even with ``ep`` = 1. ``cp`` cuts sequences.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    cp: int = 1
    etp: int = 0

    @property
    def shares_experts(self) -> bool:
        """Whether ranks that hold different tokens share one set of experts."""
        return self.dp > 1 and (self.ep * self.etp > self.tp if self.etp else self.ep > 1)

    @property
    def expert_tp(self) -> int:
        """Ways in which one expert is cut: as told, or the devices that expert parallelism leaves over."""
        return self.etp or max(1, self.tp * (self.dp if self.shares_experts else 1) // self.ep)

    @property
    def num_devices(self) -> int:
        """Devices of the whole layout."""
        return self.tp * self.pp * self.dp * self.cp

    def __str__(self) -> str:
        return " ".join(
            f"{k}{v}" for k in ("tp", "pp", "dp", "ep", "etp", "cp") if (v := getattr(self, k)) > 1 or k == "tp"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """Storage formats by name: linear weights, activations, and key/value cache."""

    weights: str
    activations: str
    kv: str
    expert_activations: str = ""  # blank = as the back end of the experts multiplies them, else ``activations``


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """Kernels that a user asks for by name, in place of what the engine chooses; blank = the engine's choice."""

    moe: str = ""
    attention: str = ""
    gemm: str = ""
    attention_in_turns_on: tuple[str, ...] = ()  # generations on which that attention cannot overlap its exponentials


DRAFT_METHODS = ("mtp", "eagle", "eagle3")
TREE_METHODS = ("tree", "prompt-tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftHead:
    """A head that guesses so many tokens a step, and the chances that each holds where those before it did.

    A tree has several draft tokens at each level: ``level_nodes`` of them, of which one is right with the level's
    chance. They are made by ``draft_model``, or, without one, cost nothing beside the tokens that a step verifies.
    """

    method: str  # one of DRAFT_METHODS, as vLLM calls them, or of TREE_METHODS
    acceptance_fracs: tuple[float, ...]  # by position; as many as tokens are guessed
    ahead_tokens: float = 0.0  # where answers are counted in steps: how much longer contexts are on average
    level_nodes: tuple[int, ...] = ()  # draft tokens at each level of a tree; empty: one at each position
    prompt_tokens: int = 0  # trained prompt tokens that a step takes beside its draft tokens
    draft_model: Model | None = None

    def __post_init__(self) -> None:
        if self.method not in (*DRAFT_METHODS, *TREE_METHODS):
            raise ScenarioError(
                f"draft: got {self.method!r}; write one of {', '.join((*DRAFT_METHODS, *TREE_METHODS))}."
            )
        if self.level_nodes and len(self.level_nodes) != len(self.acceptance_fracs):
            raise ScenarioError(
                f"draft: {len(self.level_nodes)} levels of draft tokens and {len(self.acceptance_fracs)} acceptance "
                "rates; give one of each a level."
            )
        if not self.acceptance_fracs or not all(0.0 <= a <= 1.0 for a in self.acceptance_fracs):
            raise ScenarioError(
                f"acceptance_by_position: got {self.acceptance_fracs}; write a share of 0 to 1 for every guess, such "
                "as 0.85,0.7."
            )

    @property
    def num_tokens(self) -> int:
        """Guesses a step, one after the other: the most that can be accepted."""
        return len(self.acceptance_fracs)

    @property
    def num_checked(self) -> int:
        """Tokens of a sequence that a step verifies beside its sure one: every draft token, and prompt tokens."""
        return sum(self.level_nodes or (1,) * self.num_tokens) + self.prompt_tokens

    @property
    def tokens_per_step(self) -> float:
        """Tokens of a sequence that a step yields on average: 1 + a_1 + a_1 a_2 + …"""
        total = reach = 1.0
        for chance in self.acceptance_fracs:
            reach *= chance
            total += reach
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Images in prompts: the tokens of a prompt for each of its images, and what the model's tower makes of one."""

    prompt_tokens: float  # text and images, over the number of images
    sequences: int  # that attend to themselves alone: tiles
    patches: int  # of all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Low-rank adapters (LoRA) of one rank, of which a device holds ``slots`` at once."""

    rank: int
    slots: int


Place = Literal["peer", "host"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightOffload:
    """Layers whose weights lie in the memory of a peer, or of the host, and are fetched in every pass."""

    where: Place
    layers_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineRotation:
    """Hadamard rotations of what enters products: of blocks of so many features, or of whole widths that cannot be
    folded into weights (0)."""

    block_features: int = 0
    width: int = 0  # of a whole rotation, where it is not that of a row


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deployment:
    """A model on a cluster under an engine: everything but the traffic. Limits of 0 take the engine's default.

    ``mode`` is the kind of traffic that it is set up for (offline, closed, …; blank = not said): guides and published
    scripts of engines choose kernels by it.
    """

    model: Model
    cluster: Cluster
    layout: Layout
    formats: Formats
    engine: Engine
    max_num_seqs: int = 0
    max_num_batched_tokens: int = 0
    max_model_tokens: int = 0
    scheduler_recv_interval: int = 0
    memory_utilization_frac: float = 0.0
    expert_loads: Popularity | None = None  # None: as published load generators' text routes
    backends: Backends = field(default_factory=Backends)
    mode: str = ""
    dispatcher: str = ""  # how tokens reach experts of other ranks; blank = as the engine does
    num_redundant_experts: int = 0  # copies, over all ranks, of the experts of each layer that tokens choose most
    draft_head: DraftHead | None = None
    images: Images | None = None  # None: prompts are text
    compression: Compression = NOTHING  # of the cache
    overlap: str = ""  # what runs at once in a step (``execution.overlap``); blank = nothing
    overlap_knobs: tuple[tuple[str, float], ...] = ()
    host_experts: HostExperts | None = None  # None: all experts on the devices
    expert_placement: str = ""  # where experts lie by their routes (``experts.placed``); blank = in order
    expert_routes: Routes | None = None  # which experts follow which; None: not known
    weight_offload: WeightOffload | None = None  # None: all weights on the devices
    online_rotation: OnlineRotation | None = None  # None: nothing turns as the model serves
    wide_frac: float = 0.0  # share of the features of every narrow product that run in a wider format
    wide_format: str = "bf16"  # of those features, weights and inputs
    sparsity: Sparsity | None = None  # of the layers' weights; None: all are there
    adapters: Adapters | None = None  # None: every request takes the model as it is

    @property
    def num_contexts(self) -> int:
        """Ranks whose contexts every device keeps: all, where tokens stay with their experts, else its own."""
        layout, routes = self.layout, self.expert_routes
        stays = self.expert_placement in BY_ROUTES and routes is not None and routes.has_affinity
        return layout.dp if stays and layout.shares_experts and layout.expert_tp == 1 and layout.pp == 1 else 1
