"""Memory of a deployment on each device, by category, and the space left for cache.

weights + activations + communication buffers + context fill first; the cache takes what the engine's limit leaves::

    vLLM:           cache = utilization x capacity - weights - activations - buffers - context
    SGLang:         cache = utilization x capacity - weights - buffers - context; activations take what is left over
    TensorRT-LLM:   cache = utilization x (capacity - weights - activations - buffers - context)

Activations are the higher of two peaks that follow each other: the forward pass at the full token budget, and the
sampling of as many sequences as a step may hold.
"""

from dataclasses import dataclass, replace
from math import floor

from orrery.base.units import text
from orrery.execution.adapters import slots_bytes
from orrery.execution.draft_head import both, head_memory
from orrery.execution.engine import Engine
from orrery.execution.formats import wide_bytes
from orrery.execution.layout import Deployment
from orrery.execution.shard import Cache, cache_of, shard
from orrery.execution.weight_offload import elsewhere_bytes

USABLE_FRAC = 0.99
"""Share of the reported capacity that a process finds: page tables and the driver keep the rest. Logs of engines show
79.1 of 79.6 GiB on an H100 (0.993), 44.4 of 45.0 on an L40S (0.987), 23.6 of 24.0 on an RTX 3090 (0.983)."""

MIN_SEQS, MIN_BATCHED_TOKENS = 16, 512
"""Limits of a step below which a smaller one is no advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes on the fullest device, and the cache that they leave."""

    capacity_bytes: float
    usable_bytes: float  # what the engine lets itself fill
    weights_bytes: float
    activation_bytes: float
    communication_bytes: float
    context_bytes: float
    kv_capacity_bytes: float
    cache: Cache  # how it fills
    kv_capacity_tokens: float  # tokens of one sequence that fit; infinite where nothing grows with length
    max_num_seqs: int
    max_num_batched_tokens: int
    window_room_frac: float = 0.0  # room of layers with a window, over that of the others; 0 = as needed
    state_room_frac: float = 0.0  # room of recurrent states, over that of keys and values; 0 = as needed
    num_states_each: int = 1

    def taken_bytes(self, tokens: float) -> float:
        """Memory that one sequence of that many tokens takes: its cache, or its part of pools of fixed sizes.

        Of memory that is parted beforehand into 1 for keys and values and s for states, a sequence that keeps b bytes
        of the first and c of the second takes b (1 + s) or c (1 + s) / s of the whole, whichever is more.
        """
        states, tokens_bytes = self.cache.bytes_per_sequence, self._token_bytes(tokens)
        part = self.state_room_frac
        if not (part and states and self.cache.bytes_per_token):
            return tokens_bytes + states
        return (1.0 + part) * max(tokens_bytes, states * self.num_states_each / part)

    def _token_bytes(self, tokens: float) -> float:
        """Keys and values of one sequence, or its part of two pools: with room for F tokens of layers that keep all,
        and for r F of those with a window w, a sequence takes n of the first and min(n, w) of the second, and so
        max(n, min(n, w) / r) of F.
        """
        windows = self.cache.windows
        if not (self.window_room_frac and windows and self.cache.bytes_per_token):
            return self.cache.sequence_bytes(tokens) - self.cache.bytes_per_sequence
        least = max(min(tokens, window) for window, _ in windows) / self.window_room_frac
        each = self.cache.bytes_per_token + self.window_room_frac * sum(wide for _, wide in windows)
        return max(tokens, least) * each

    def sequences(self, tokens: float) -> float:
        """How many sequences of that many cached tokens fit at once."""
        each = self.taken_bytes(tokens)
        return self.kv_capacity_bytes / each if each > 0 else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasible:
    """Why something cannot be, with numbers: the need, what there is, and the smallest change that would do."""

    what: str
    need: float
    have: float
    unit: str
    smallest_change: str

    def __str__(self) -> str:
        return (
            f"{self.what}: needs {text(self.need, self.unit)}, has {text(self.have, self.unit)}. {self.smallest_change}"
        )


def max_num_seqs(deployment: Deployment) -> int:
    """The batch limit of each attention rank: the deployment's, or the engine's default. For some families, and where
    answers are drafted, an engine takes a limit of the whole server, which its ranks share."""
    engine = deployment.engine
    if deployment.max_num_seqs:
        return deployment.max_num_seqs
    limit = engine.max_num_server_seqs.get(deployment.model.family, 0)
    if not limit and deployment.draft_head:
        limit = engine.max_num_drafted_seqs
    return min(engine.max_num_seqs, max(1, limit // deployment.layout.dp)) if limit else engine.max_num_seqs


def max_num_batched_tokens(deployment: Deployment) -> int:
    """The token budget of a step: the deployment's, or the engine's default."""
    return deployment.max_num_batched_tokens or deployment.engine.max_num_batched_tokens


def recv_interval(deployment: Deployment) -> int:
    """Decode steps from one look for new requests to the next: the deployment's, or the engine's default."""
    return max(1, deployment.scheduler_recv_interval or deployment.engine.num_steps_per_recv)


def memory_of(deployment: Deployment) -> Memory | Infeasible:
    """The memory of the fullest device, or what is missing when the weights leave no room for a cache."""
    device, engine, cut = deployment.cluster.device, deployment.engine, shard(deployment)
    capacity = device.memory_capacity_bytes * USABLE_FRAC
    frac = deployment.memory_utilization_frac or engine.memory_utilization_frac
    cache, weights = cache_of(deployment), cut.weight_bytes
    if deployment.draft_head and (head := head_memory(deployment)):
        cache, weights = both(cache, head), weights + head.weight_bytes
    if deployment.adapters:
        weights += slots_bytes(deployment)
    if deployment.weight_offload:
        weights -= elsewhere_bytes(deployment)
    activations, buffers = activation_bytes(deployment), communication_bytes(deployment)
    fixed = weights + buffers + engine.context_bytes + (0.0 if engine.is_static_share else activations)
    left = frac * (capacity - fixed) if engine.is_utilization_of_free else frac * capacity - fixed
    if left <= cache.sequence_bytes(engine.block_tokens):
        limit = capacity if engine.is_utilization_of_free else frac * capacity
        return _does_not_fit(deployment, fixed, limit)
    room = engine.window_room_fracs.get(deployment.model.family, engine.window_room_frac)
    return Memory(
        capacity_bytes=device.memory_capacity_bytes,
        usable_bytes=left + fixed + (activations if engine.is_static_share else 0.0),
        weights_bytes=weights,
        activation_bytes=activations,
        communication_bytes=buffers,
        context_bytes=engine.context_bytes,
        kv_capacity_bytes=left,
        cache=cache,
        kv_capacity_tokens=_longest_tokens(cache, engine, room, left),
        max_num_seqs=max_num_seqs(deployment),
        max_num_batched_tokens=max_num_batched_tokens(deployment),
        window_room_frac=room,
        state_room_frac=engine.state_room_frac,
        num_states_each=engine.num_states_each,
    )


def _longest_tokens(cache: Cache, engine: Engine, window_room_frac: float, left: float) -> float:
    """Tokens of one sequence that fit, in whole blocks; infinite where nothing grows with length."""
    if cache.bytes_per_token == 0.0:
        return float("inf")
    parts = engine.state_room_frac if cache.bytes_per_sequence else 0.0
    room, each = left / (1.0 + parts) if parts else left - cache.bytes_per_sequence, cache.bytes_per_token
    if window_room_frac:
        each += window_room_frac * sum(wide for _, wide in cache.windows)
    else:
        room -= sum(window * wide for window, wide in cache.windows)
    return floor(max(0.0, room) / (each * engine.block_tokens)) * float(engine.block_tokens)


def activation_bytes(deployment: Deployment) -> float:
    """Peak working set of a step: of its forward pass at the full token budget, or of sampling after it."""
    return max(forward_bytes(deployment), sampling_bytes(deployment))


def forward_bytes(deployment: Deployment) -> float:
    """Peak activations of the widest layer: the residual stream and its normed copy, and the widest of its products.

    A product's input and output are alive together; so are a gated part's two halves and what they become.
    """
    cut, model = shard(deployment), deployment.model
    pairs = [(x.n + x.k) * x.groups for x in cut.linears if not x.is_head]
    gates = [x.n * x.groups + x.n * x.groups // 2 for x in cut.linears if x.name == "gate_up"]
    routed = [
        2 * e.experts.experts_per_token * (e.experts.ffn_size // e.tp + e.experts.hidden_size) // e.ep
        for e in cut.experts
    ]
    widest = max((*pairs, *gates, *routed), default=0)
    wide = wide_bytes(deployment.formats.activations)
    return wide * max_num_batched_tokens(deployment) * (2 * model.hidden_size + widest)


def sampling_bytes(deployment: Deployment) -> float:
    """Sampling's buffers for every vocabulary entry of every sequence of the fullest step."""
    return max_num_seqs(deployment) * deployment.model.vocab_size * deployment.engine.sampling_logit_bytes


def communication_bytes(deployment: Deployment) -> float:
    """Buffers of the collectives: one message of the largest step, kept twice, where there is more than one device."""
    layout = deployment.layout
    if layout.tp * layout.pp * layout.ep == 1 and not layout.shares_experts:
        return 0.0
    wide = wide_bytes(deployment.formats.activations)
    return 2.0 * wide * max_num_batched_tokens(deployment) * deployment.model.hidden_size


def _does_not_fit(deployment: Deployment, fixed: float, limit: float) -> Infeasible:
    """Say what is needed beside what there is, and the smallest change that would do: a flag, or the fewest devices."""
    layout = deployment.layout
    return Infeasible(
        what=f"{deployment.model.name} in {deployment.formats.weights} on {deployment.cluster.device.name} ({layout})",
        need=fixed,
        have=limit,
        unit="bytes",
        smallest_change=_smaller_steps(deployment, fixed, limit) or _more_devices(deployment, fixed, limit),
    )


def _smaller_steps(deployment: Deployment, fixed: float, limit: float) -> str:
    """The largest limits of a step, powers of two, that would leave room for one sequence; empty where none does."""
    seqs, tokens = max_num_seqs(deployment), max_num_batched_tokens(deployment)
    if deployment.engine.is_static_share:  # steps take what is left over
        return ""
    block = cache_of(deployment).sequence_bytes(deployment.engine.block_tokens)
    steps = activation_bytes(deployment)
    now, limits = deployment, dict[str, int]()
    while True:
        is_sampled = sampling_bytes(now) >= forward_bytes(now)
        if seqs < 2 * MIN_SEQS if is_sampled else tokens < 2 * MIN_BATCHED_TOKENS:
            return ""
        if is_sampled:
            seqs = limits["--max-num-seqs"] = 1 << ((seqs - 1).bit_length() - 1)
        else:
            tokens = limits["--max-num-batched-tokens"] = 1 << ((tokens - 1).bit_length() - 1)
        now = replace(deployment, max_num_seqs=seqs, max_num_batched_tokens=tokens)
        saved = steps - activation_bytes(now) + communication_bytes(deployment) - communication_bytes(now)
        if fixed - saved + block < limit:
            flags = " and ".join(f"{flag} {count}" for flag, count in limits.items())
            return f"With {flags} one sequence fits; beyond that, use more devices or store the weights in fewer bits."


def _more_devices(deployment: Deployment, fixed: float, limit: float) -> str:
    """The fewest devices, doubled from today's, that would hold the weights beside the rest."""
    weights = shard(deployment).weight_bytes
    rest = fixed - weights
    layout = deployment.layout
    now = layout.tp * layout.pp
    ways = now
    while ways < 1024 and weights * now / ways + rest > 0.9 * limit:
        ways *= 2
    if now < ways < 1024:
        return f"Cut it over {ways} devices (tensor or pipeline parallel), or store the weights in fewer bits."
    return "Store the weights in fewer bits, or use devices with more memory."
