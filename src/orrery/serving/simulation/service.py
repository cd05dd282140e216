"""Service: pools of replicas, their batching, and their exchanges. The simulator's side of a scenario."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from orrery.base.errors import ScenarioError
from orrery.execution.batch import Floats, Ints
from orrery.execution.compression import NOTHING, Compression
from orrery.execution.layout import Deployment
from orrery.execution.speculation import Speculation

Role = Literal["all", "prompts", "answers"]
Knobs = Mapping[str, float]


def _none() -> Knobs:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """Equal replicas. Those for prompts hand each request, with its cache, to one of those for answers. A pool with a
    ``host`` runs its own model on the replicas of that pool."""

    deployment: Deployment
    replicas: int = 1
    role: Role = "all"
    host: int = -1  # number of the pool on whose replicas it runs; -1: replicas of its own
    wake_s: float = 0.0  # until its weights are on the devices again, where only one model is awake


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One device for both phases at once: prompts and answers each own a part of its compute units, and share its
    memory. ``answers_fracs`` are the parts that answers may have; the first one is where a run starts. With a target,
    the part grows while steps of answers take longer, and shrinks while they are quick and prompts wait."""

    answers_fracs: tuple[float, ...] = (0.5,)
    target_s: float = 0.0

    def __post_init__(self) -> None:
        if not self.answers_fracs or not all(0.0 < f < 1.0 for f in self.answers_fracs):
            raise ScenarioError(
                f"answers_fracs = {self.answers_fracs}; write parts between 0 and 1, such as (0.4, 0.6)."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """Fine-tuning tokens beside requests: they fill a step up to ``step_tokens``, while it stays below ``until_s``.

    A token trained costs ``pass_ratio`` passes: one forward, one backward to the inputs (the base weights are
    frozen, so nothing is computed for them). With ``backward_layers`` tokens fill steps forward alone; when a sequence
    of ``sequence_tokens`` is through, as many layers of it as that go back beside each step, all its tokens at once."""

    step_tokens: int = 2048
    until_s: float = float("inf")
    pass_ratio: float = 2.0
    sequence_tokens: int = 2048
    backward_layers: int = 0  # 0: both ways in the same steps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Service:
    """Setup of a service, all but the traffic. Names are those of techniques; empty ones take the engine's way."""

    pools: tuple[Pool, ...]
    policy: str = ""
    policy_knobs: Knobs = field(default_factory=_none)
    queue: str = "fcfs"
    queue_knobs: Knobs = field(default_factory=_none)
    router: str = "least-loaded"
    router_knobs: Knobs = field(default_factory=_none)
    overlap: str = "sequential"
    overlap_knobs: Knobs = field(default_factory=_none)
    transfer: str = "plain-copy"  # between machines
    transfer_knobs: Knobs = field(default_factory=_none)
    swap: str = "plain-copy"  # between a device and its host
    swap_knobs: Knobs = field(default_factory=_none)
    preemption: Literal["recompute", "swap"] = "recompute"
    prefix_caching: bool | None = None  # None: as the engine does
    host_cache_bytes: float = 0.0  # of each replica: where evicted blocks go
    load_hides: bool = True  # blocks from the host arrive while a step computes
    speculation: Speculation | None = None
    compression: Compression = NOTHING
    split: Split | None = None
    filling: Filling | None = None
    lends_cache: bool = False  # replicas keep each other's blocks, and attend to them where they are
    is_same_node: bool = False  # pools are in one node: caches go over its links
    is_layerwise: bool = False  # caches go over layer by layer, while the prompt is computed
    max_prefill_queue: int = 0  # prompts that wait at machines of their own, at which each kind helps the other; 0: any
    overlaps_sends: bool = False  # pipeline stages compute on while they send
    max_queue: int = 0  # requests that may wait at one replica, beyond which new ones are refused; 0: any number
    prompts_stream_first: bool = False  # first tokens leave from the machines of the prompts (DistServe, Splitwise)
    sharing: Literal["", "time", "sleep"] = ""  # models on the same replicas: steps in turn, or one awake at a time
    turn_s: float = 0.0  # a model that is awake goes on so long while others wait; then it takes no more, and ends

    def __post_init__(self) -> None:
        roles = {p.role for p in self.pools}
        if not self.pools:
            raise ScenarioError("pools: none; give at least one pool of replicas.")
        if ("prompts" in roles) != ("answers" in roles):
            raise ScenarioError("pools: machines for prompts need machines for answers beside them, and the reverse.")
        if "all" in roles and len(roles) > 1:
            raise ScenarioError("pools: machines for both phases cannot stand beside machines for one phase.")
        if self.split and len(roles) > 1:
            raise ScenarioError("split: shares the devices of one pool between the phases; leave the other pools out.")
        for pool in self.pools:
            if pool.host >= 0:
                self._check_guest(pool)

    def _check_guest(self, pool: Pool) -> None:
        """A pool on the replicas of another one has as many of them, with as many devices, one stage and one rank."""
        host = self.pools[pool.host]
        layouts = [p.deployment.layout for p in (host, pool)]
        alike = host.replicas == pool.replicas and layouts[0].num_devices == layouts[1].num_devices
        if not (self.sharing and alike and all(x.pp == x.dp == 1 for x in layouts)) or self.split or self.lends_cache:
            raise ScenarioError(
                "share: models on the same replicas have as many devices each, no pipeline stages and no data-parallel "
                "ranks; write the same tp for all, pp = 1 and dp = 1, and leave split and lend_cache out."
            )
        if {p.deployment.engine.name for p in (host, pool)} != {host.deployment.engine.name}:
            raise ScenarioError("share: models on the same replicas run on one engine; write engine once, at the top.")

    def entry_s(self, input_tokens: Ints | int) -> Floats | float:
        """From a request's arrival to its place in the first queue: the front ends that it passes, by its prompt.

        With servers of their own for prompts and for outputs, a router hands each request to both, and the second one's
        front end, which registers the transfer and streams the output, stands before the first token too.
        """
        answers = [p.deployment.engine.handover_s for p in self.pools if p.role == "answers"]
        first = self.pools[0].deployment.engine
        return first.request_s + first.per_prompt_token_s * input_tokens + max(answers, default=0.0)

    @property
    def num_devices(self) -> int:
        """Devices of all pools."""
        return sum(p.replicas * p.deployment.layout.num_devices for p in self.own_pools)

    @property
    def own_pools(self) -> tuple[Pool, ...]:
        """Pools with replicas of their own."""
        return tuple(p for p in self.pools if p.host < 0)

    @property
    def host_power_w(self) -> float:
        """Power (W) of the machines around the devices of all pools."""
        return sum(
            p.replicas * p.deployment.layout.num_devices * p.deployment.cluster.device.host_power_w
            for p in self.own_pools
        )
