"""Many expert models behind one router, of which a request runs one: where they lie, and what a switch costs.

A node keeps all experts in its large memory and those in use in its fast one; the least recently used one makes room.
A request for an expert that is not there waits for its copy. SambaNova SN40L, arXiv 2405.07518.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.engine.streams import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The fast memory of one machine, as far as experts may fill it, and the rate of copies from the large one."""

    fast_bytes: float
    switch_bytes_per_s: float
    switch_latency_s: float = 0.0

    def __post_init__(self) -> None:
        if not (self.fast_bytes > 0 and self.switch_bytes_per_s > 0):
            raise OutOfRange(f"{self}; write sizes and a rate above 0.")

    def switch_s(self, expert_bytes: float) -> float:
        """One expert from the large memory to the fast one."""
        return self.switch_latency_s + expert_bytes / self.switch_bytes_per_s

    def fast_experts(self, expert_bytes: float) -> int:
        """How many experts the fast memory holds."""
        return floor(self.fast_bytes / expert_bytes)


def nodes_to_hold(num_experts: int, expert_bytes: float, node: Node, *, beside: int = 0) -> int:
    """Nodes whose fast memories together hold all experts, so that nothing is ever switched.

    ``beside``: places of each that something else takes, such as a router as large as an expert.
    """
    each = node.fast_experts(expert_bytes) - beside
    if each < 1:
        raise OutOfRange(f"an expert of {expert_bytes:g} bytes does not fit into {node.fast_bytes:g}.")
    return ceil(num_experts / each)


def popularity(num_experts: int, skew: float) -> NDArray[np.float64]:
    """Shares of requests by a power law: 0 = all alike."""
    weights = np.arange(1, num_experts + 1, dtype=np.float64) ** -skew
    return weights / weights.sum()


def missed_frac(
    num_experts: int,
    held: int,
    skew: float = 0.0,
    *,
    num_requests: int = 20_000,
    seed: int = 0,
    shares: Sequence[float] = (),
) -> float:
    """Share of requests that find their expert outside the fast memory, once that is full."""
    if held >= num_experts:
        return 0.0
    law = popularity(num_experts, skew) if not len(shares) else np.asarray(shares)
    chosen = stream(seed, "experts/asked").choice(num_experts, size=num_requests, p=law)
    recent: OrderedDict[int, None] = OrderedDict()
    misses, counted = 0, 0
    for expert in chosen.tolist():
        is_full = len(recent) >= held
        if expert in recent:
            recent.move_to_end(expert)
        else:
            misses += is_full
            if is_full:
                recent.popitem(last=False)
            recent[expert] = None
        counted += is_full
    return misses / counted if counted else 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """Requests one after the other: when each came and was answered, and which had to wait for their expert."""

    arrival_s: NDArray[np.float64]
    start_s: NDArray[np.float64]
    finish_s: NDArray[np.float64]
    is_missed: NDArray[np.bool_]


def serve(
    experts: Sequence[int],
    held: int,
    *,
    run_s: float,
    switch_s: float,
    arrival_s: NDArray[np.float64] | None = None,
    clients: int = 1,
) -> Served:
    """Play requests for these experts in their order: a switch where the expert is not held, then the run.

    ``arrival_s``: when they come; without it ``clients`` each ask again as soon as they are answered.
    """
    recent: OrderedDict[int, None] = OrderedDict()
    count, free_s = len(experts), 0.0
    came, begun, done, missed = (np.zeros(count) for _ in range(4))
    for i, expert in enumerate(experts):
        came[i] = arrival_s[i] if arrival_s is not None else done[i - clients] if i >= clients else 0.0
        begun[i] = max(free_s, came[i])
        if expert in recent:
            recent.move_to_end(expert)
        else:
            missed[i] = 1.0
            if len(recent) >= held:
                recent.popitem(last=False)
            recent[expert] = None
        free_s = done[i] = begun[i] + missed[i] * switch_s + run_s
    return Served(arrival_s=came, start_s=begun, finish_s=done, is_missed=missed > 0.0)
