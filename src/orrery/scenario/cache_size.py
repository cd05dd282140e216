"""How much cache makes the turns of agents hit, tier by tier, and what a task computes and costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.catalog.agent_sessions import read_sessions, session_file
from orrery.catalog.cold_start import cold_start_facts
from orrery.catalog.traces import load_trace
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory, memory_of
from orrery.fleet.agents.blocks import BlockReuse, block_reuse_of
from orrery.fleet.agents.stack import Reuse, reuse_of
from orrery.fleet.agents.turns import Shape, Turns, shape_of, started
from orrery.planner.money import S_PER_HOUR, tariff_of
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer, deployment_json
from orrery.scenario.resolve import deploy, find, formats_of, layout_of, one_device
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.serving.estimate import estimate
from orrery.serving.workload import Workload

SESSIONS_PER_HOUR, CACHE_HIT, BLOCK_TOKENS = 60.0, 0.95, 64

WARMUP_FRAC = 0.25
"""Share of the time between the first and the last session's start that fills the cache and is not counted."""

CURVE_POINTS = 12
RETURN_S = (60.0, 300.0, 3600.0, 86400.0)
"""Times for which a cache could keep what is not used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One place for blocks, the nearest first; hits count what it and all before it hold."""

    name: str
    size_bytes: float
    bytes_per_s: float  # into the devices; 0 on the devices
    size_tokens: float
    turns_frac: float  # of the turns that share something: all of it is held
    tokens_frac: float  # of the shared tokens
    load_s: float  # mean time to bring what this tier alone holds, over all such turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A mean session: what is asked, what is computed, and what that takes of a replica."""

    turns_ratio: float  # a session
    input_tokens: float
    output_tokens: float
    computed_tokens: float  # of the input, with the tiers that there are
    prefill_s: float  # of one replica
    saved_s: float  # against no cache at all
    think_s: float
    prefill_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CacheSize:
    """The answer: sessions, the cache that the goal needs, tiers, and a task."""

    shape: Shape
    deployment: Deployment
    cache_hit_frac: float
    needed_tokens: float
    token_bytes: float  # of a replica
    tiers: tuple[Tier, ...]
    curve: tuple[tuple[float, float, float], ...]  # cache in tokens, turns that hit, tokens that hit
    returning: tuple[tuple[float, float], ...]  # seconds, turns that come within them
    task: Task
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def needed_bytes(self) -> float:
        """Return the bytes of cache that the goal needs."""
        return self.needed_tokens * self.token_bytes

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        names = ("cache_tokens", "turns_frac", "tokens_frac")
        return to_json(
            {
                "sessions": self.shape,
                "cache_hit_frac": self.cache_hit_frac,
                "needed_tokens": self.needed_tokens,
                "needed_bytes": self.needed_bytes,
                "token_bytes": self.token_bytes,
                "tiers": self.tiers,
                "curve": [dict(zip(names, point, strict=True)) for point in self.curve],
                "returning": [{"within_s": s, "turns_frac": f} for s, f in self.returning],
                "task": self.task,
                "deployment": deployment_json(self.deployment),
                "settings": self.settings,
                "notes": self.notes,
            }
        )


@typed
def cache_size(scenario: Scenario | None = None, /, **settings: Any) -> CacheSize | InfeasibleAnswer:
    """How much cache makes the turns of recorded sessions hit on one replica, and what its tiers hold.

    Settings are those of a scenario file; given beside a scenario they override it.
    """
    inputs = merged(scenario, settings)
    refuse_foreign("cache-size", settings)
    if (inputs.sessions is None) == (inputs.trace is None):
        raise ScenarioError(
            "sessions: is missing; write a CSV file of recorded sessions, or a trace whose prompts name their blocks; "
            "one of both (see docs/agents.md)."
        )
    parts = find(inputs, one_device(inputs))
    layout, layout_notes = layout_of(inputs, parts)
    formats, format_notes = formats_of(inputs, parts)
    deployment = deploy(inputs, parts, layout, formats)
    notes = (*parts.notes, *layout_notes, *format_notes)
    memory = memory_of(deployment)
    if isinstance(memory, Infeasible):
        return InfeasibleAnswer(infeasible=memory, notes=notes, settings=inputs.written())
    turns, found, more = _recorded(inputs)
    notes = (*notes, *more)
    if not found.turn.size:
        where = inputs.sessions or inputs.trace
        raise ScenarioError(f"sessions: {where}: no turn shares a beginning with one before it.")
    reuse, is_whole = settled(turns, found)
    goal = inputs.cache_hit or CACHE_HIT
    token_bytes = memory.cache.bytes_per_token * layout.tp * layout.pp
    tiers = tiers_of(inputs, deployment, memory, reuse, token_bytes)
    if not is_whole:
        notes = (*notes, "too few sessions to leave the filling of the cache out; all turns count")
    sizes = np.geomspace(max(1.0, float(reuse.shared_tokens.min())), reuse.size_for(1.0), CURVE_POINTS)
    return CacheSize(
        shape=shape_of(turns),
        deployment=deployment,
        cache_hit_frac=goal,
        needed_tokens=reuse.size_for(goal),
        token_bytes=token_bytes,
        tiers=tiers,
        curve=tuple((float(s), *hits(reuse, float(s))) for s in sizes),
        returning=tuple((s, float((reuse.since_s <= s).mean())) for s in RETURN_S),
        task=task_of(inputs, deployment, memory, turns, tiers[-1].tokens_frac),
        notes=notes,
        settings=inputs.written(),
    )


def _recorded(inputs: Scenario) -> tuple[Turns, Reuse | BlockReuse, tuple[str, ...]]:
    """Return what was recorded, what of it was there before, and what was assumed."""
    if inputs.trace is not None:
        return _trace(inputs, inputs.trace)
    recorded = read_sessions(session_file(inputs.sessions or ""), inputs.block_tokens or BLOCK_TOKENS)
    per_hour = inputs.sessions_per_hour or SESSIONS_PER_HOUR
    turns = started(recorded, per_hour / S_PER_HOUR, inputs.seed or 0)
    default = f"sessions_per_hour: {SESSIONS_PER_HOUR:g} (default), on one replica"
    return turns, reuse_of(turns), () if inputs.sessions_per_hour else (default,)


def _trace(inputs: Scenario, name: str) -> tuple[Turns, BlockReuse, tuple[str, ...]]:
    """Return the requests of a trace whose prompts name their blocks, each a session of its own."""
    trace = load_trace(name, inputs.seed or 0)
    if not trace.prefix_block_tokens:
        raise ScenarioError(
            f"trace {trace.name}: does not say what its prompts share; write one with hash_ids, as Mooncake's, or "
            "sessions."
        )
    for setting in ("sessions_per_hour", "block_tokens"):
        if getattr(inputs, setting) is not None:
            raise ScenarioError(f"{setting}: is about sessions; a trace has its own. Leave it out.")
    found = block_reuse_of(trace.arrival_s, trace.prefix_start, trace.prefix_ids, trace.prefix_block_tokens)
    number = np.arange(trace.arrival_s.size)
    shared = np.zeros(number.size, dtype=np.int64)
    shared[found.turn] = found.shared_tokens
    turns = Turns(
        at_s=trace.arrival_s,
        session=number,
        chain=number,
        input_tokens=trace.input_tokens,
        output_tokens=trace.output_tokens,
        shared_tokens=shared,
        think_s=np.zeros(number.size),
    )
    note = "trace: outputs take no cache here: what later prompts repeat of them is among those prompts' blocks"
    return turns, found, (*trace.notes, note)


def settled(turns: Turns, reuse: Reuse | BlockReuse) -> tuple[Reuse | BlockReuse, bool]:
    """Return the turns between the cache's warm-up and the last session's start, or all where these are too few."""
    begins = [float(turns.at_s[turns.session == s][0]) for s in np.unique(turns.session)]
    low, high = min(begins), max(begins)
    at = turns.at_s[reuse.turn]
    inside = (at >= low + WARMUP_FRAC * (high - low)) & (at <= high)
    if inside.sum() < max(20, 0.05 * reuse.turn.size):
        return reuse, False
    return reuse.only(inside), True


def hits(reuse: Reuse | BlockReuse, cache_tokens: float) -> tuple[float, float]:
    """Return the share of turns whose shared beginning is held whole, and the share of shared tokens that is."""
    held = reuse.hit_tokens(cache_tokens)
    return float((held >= reuse.shared_tokens).mean()), float(held.sum() / reuse.shared_tokens.sum())


def tiers_of(
    inputs: Scenario, deployment: Deployment, memory: Memory, reuse: Reuse | BlockReuse, token_bytes: float
) -> tuple[Tier, ...]:
    """Return the tiers of one replica from its devices outwards."""
    device, count = deployment.cluster.device, deployment.layout.num_devices
    nvme = float(cold_start_facts()["nvme_bytes_per_s"].value)
    remote = inputs.remote_bytes_per_s or device.scaleout.each_way_bytes_per_s
    on_device = memory.kv_capacity_tokens * deployment.layout.dp
    listed = (
        ("device", on_device * token_bytes, 0.0),
        ("host", inputs.host_cache_bytes or 0.0, device.host.each_way_bytes_per_s * count),
        ("nvme", inputs.nvme_cache_bytes or 0.0, min(nvme, device.host.each_way_bytes_per_s * count)),
        ("remote", inputs.remote_cache_bytes or 0.0, remote),
    )
    found: list[Tier] = []
    tokens = before = 0.0
    for name, size, rate in listed:
        if not size:
            continue
        tokens += size / token_bytes
        held = reuse.hit_tokens(tokens).sum()
        turns_frac, tokens_frac = hits(reuse, tokens)
        brought = (held - before) / max(1, reuse.turn.size) * token_bytes
        before = held
        found.append(
            Tier(
                name=name,
                size_bytes=size,
                bytes_per_s=rate,
                size_tokens=size / token_bytes,
                turns_frac=turns_frac,
                tokens_frac=tokens_frac,
                load_s=brought / rate if rate else 0.0,
            )
        )
    return tuple(found)


def task_of(inputs: Scenario, deployment: Deployment, memory: Memory, turns: Turns, held_frac: float) -> Task:
    """Return a mean session with that share of its shared tokens held."""
    num = int(np.unique(turns.session).size)
    prompt, output, shared = (
        float(x.sum()) / num for x in (turns.input_tokens, turns.output_tokens, turns.shared_tokens)
    )
    length = min(prompt * num / turns.count, 0.9 * memory.kv_capacity_tokens)
    one = Workload(mode="static", input_tokens=length, output_tokens=2.0, batch_size=1)
    timed = estimate(deployment, one)
    rate = 0.0 if isinstance(timed, Infeasible) else length / timed.ttft_s
    computed = prompt - held_frac * shared
    seconds = computed / rate if rate else float("inf")
    price = tariff_of(deployment.cluster.device, inputs.usd_per_hour, None).usd_per_hour
    return Task(
        turns_ratio=turns.count / num,
        input_tokens=prompt,
        output_tokens=output,
        computed_tokens=computed,
        prefill_s=seconds,
        saved_s=held_frac * shared / rate if rate else 0.0,
        think_s=float(turns.think_s.sum()) / num,
        prefill_usd=None if price is None else seconds * price * deployment.layout.num_devices / S_PER_HOUR,
    )
