"""Cost of a graph of calls on deployments: time, energy, work, and the cache that it reads and keeps.

Calls of one group are prefilled together and decode together, in as many waves as the cache and the engine's limit on
sequences ask for. Context that does not fit into the cache beside them has to be computed again. A group starts when
those before it are done, so the question takes the longest way through the graph.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np
from numpy.polynomial.legendre import leggauss

from orrery.execution.batch import Floats
from orrery.execution.explain import limit_of
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory, memory_of
from orrery.execution.power import steps_power_w
from orrery.reasoning.graph import Call, Graph
from orrery.serving.clock import Ticks, steps_of, tick

_NODES, _WEIGHTS = leggauss(3)
"""Three Gauss points over the steps of an answer, whose context grows from one to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """One group of calls on its deployment, all devices together."""

    name: str
    time_s: float
    energy_j: float
    flops: float
    bytes: float  # moved, of them the cache's ``cache_read_bytes``
    cache_read_bytes: float
    kept_bytes: float  # cache held at the end of the last wave's calls; more than there is where it does not fit
    prefilled_tokens: float
    num_waves: int
    bound_by: str  # what sets most of its time


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCost:
    """A whole question. ``time_s`` is what the asker waits; ``offline_s`` was spent before."""

    calls: tuple[CallCost, ...]
    time_s: float
    offline_s: float

    @property
    def energy_j(self) -> float:
        """Energy (J) of all calls."""
        return sum(call.energy_j for call in self.calls)

    @property
    def bound_by(self) -> str:
        """The limit of most of the time of all calls."""
        return _most((call.bound_by, call.time_s) for call in self.calls)

    @property
    def cache_read_bytes(self) -> float:
        """Bytes that all calls read from the cache."""
        return sum(call.cache_read_bytes for call in self.calls)

    @property
    def peak_kept_bytes(self) -> float:
        """The most cache that any group asks for."""
        return max((call.kept_bytes for call in self.calls), default=0.0)


def cost(
    graph: Graph, deployments: Mapping[str, Deployment], *, shares_prefix: bool = True, kv_limit_bytes: float = inf
) -> GraphCost | Infeasible:
    """The price of ``graph`` on one replica of each; a model without a deployment of its own runs on the solver's.

    The cache of a replica, over its devices, is no larger than ``kv_limit_bytes``.
    """
    costs, done, offline_s = list[CallCost](), dict[str, float](), 0.0
    for call in graph.calls:
        deployment = deployments.get(call.model, deployments["solver"])
        memory = memory_of(deployment)
        if isinstance(memory, Infeasible):
            return memory
        memory = _limited(memory, kv_limit_bytes / deployment.layout.num_devices * deployment.layout.dp)
        if call.context_tokens + call.output_tokens > memory.kv_capacity_tokens:
            return Infeasible(
                what=f"cache of one sequence ({call.name})",
                need=call.context_tokens + call.output_tokens,
                have=memory.kv_capacity_tokens,
                unit="tokens",
                smallest_change="Use more devices, a narrower cache format, or shorter answers.",
            )
        found = call_cost(call, deployment, memory, shares_prefix=shares_prefix)
        costs.append(found)
        if not call.is_online:
            offline_s += found.time_s
        own_s = found.time_s if call.is_online else 0.0
        done[call.name] = own_s + max((done[name] for name in call.after), default=0.0)
    return GraphCost(calls=tuple(costs), time_s=max(done.values(), default=0.0), offline_s=offline_s)


def _limited(memory: Memory, kv_bytes: float) -> Memory:
    """The memory with a cache of at most so many bytes on each device."""
    if kv_bytes >= memory.kv_capacity_bytes:
        return memory
    share = kv_bytes / memory.kv_capacity_bytes
    return replace(memory, kv_capacity_bytes=kv_bytes, kv_capacity_tokens=memory.kv_capacity_tokens * share)


def call_cost(call: Call, deployment: Deployment, memory: Memory, *, shares_prefix: bool) -> CallCost:
    """One group of calls, in waves."""
    kept_bytes = memory.cache.sequence_bytes(call.kept_tokens(shares_prefix) / call.count) * call.count
    room = memory.kv_capacity_bytes / kept_bytes if kept_bytes else float("inf")
    together = max(1, int(min(call.count, memory.max_num_seqs, call.count * room)))
    num_waves = ceil(call.count / together)
    prefilled = call.prefilled_tokens(shares_prefix)
    if shares_prefix and num_waves > 1:  # the share of the context that was pushed out comes back by computing
        prefilled += max(0.0, 1.0 - room) * (call.distinct_tokens - min(call.fresh_tokens, call.distinct_tokens))
    batch = call.count / num_waves
    steps, times = _steps(call, deployment, float(memory.max_num_batched_tokens), prefilled, batch, num_waves)
    flops, moved_bytes = (np.array([sum(p.work(i)[j] for p in steps.done.parts) for i in range(4)]) for j in (0, 1))
    power_w = np.array([steps_power_w(deployment, steps.done, (i,), float(steps.time_s[i])) for i in range(4)])
    devices = deployment.layout.num_devices
    read = sum(
        float(w) / 2 * memory.cache.sequence_bytes(float(c)) for w, c in zip(_WEIGHTS, _contexts(call), strict=True)
    )
    return CallCost(
        name=call.name,
        time_s=float(times @ steps.time_s),
        energy_j=float((times * steps.time_s) @ power_w) * devices,
        flops=float(flops @ times) * devices,
        bytes=float(moved_bytes @ times) * devices,
        cache_read_bytes=read * call.written_tokens * devices,
        kept_bytes=kept_bytes * devices,
        prefilled_tokens=prefilled,
        num_waves=num_waves,
        bound_by=_most((_limit(steps, i), float(times[i] * steps.time_s[i])) for i in range(4)),
    )


def _limit(steps: Ticks, entry: int) -> str:
    """The host where it is slower than the device, else a resource of the device."""
    return "host" if steps.host_s[entry] > steps.done.time_s[entry] else limit_of(steps.done, entry)


def _most(shares: Iterable[tuple[str, float]]) -> str:
    """The name with the most seconds."""
    by: dict[str, float] = {}
    for name, time_s in shares:
        by[name] = by.get(name, 0.0) + time_s
    return max(by, key=by.__getitem__, default="")


def _contexts(call: Call) -> Floats:
    """Tokens that a written one sees, at the Gauss points."""
    return call.context_tokens + 1 + (_NODES + 1) / 2 * max(call.output_tokens - 1, 0.0)


def _steps(
    call: Call, deployment: Deployment, budget_tokens: float, prefilled_tokens: float, batch: float, num_waves: int
) -> tuple[Ticks, Floats]:
    """Three decode steps and one of prefill, and how often each of them runs."""
    pp, zero = deployment.layout.pp, np.zeros(3)
    chunk = min(max(prefilled_tokens / num_waves, 1.0), budget_tokens)
    each = max(1.0, min(chunk, prefilled_tokens / call.count))
    is_read, is_written = prefilled_tokens > 0, call.output_tokens > 0
    decoding = max(1.0, batch / pp) if is_written else 0.0
    ticks = tick(
        deployment,
        steps_of(
            np.append(zero, np.rint(chunk / each) if is_read else 0.0),
            np.append(zero, each if is_read else 0.0),
            np.append(zero, max(call.context_tokens, each)),
            np.append(zero + decoding, 0.0),
            np.append(_contexts(call), 0.0),
        ),
    )
    decodes = num_waves * call.output_tokens * _WEIGHTS / 2
    return ticks, np.append(decodes, prefilled_tokens / chunk if is_read else 0.0)
