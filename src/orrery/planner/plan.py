"""A plan: a layout, how often it is repeated, how many requests it holds, and what that gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from orrery.base.cost import Interval
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory
from orrery.planner.space import Candidate

Reason = Literal["memory", "length", "objective", "devices", "range"]
"""Shortfall of a rejected plan: memory for weights or for the longest request, speed, devices, or a rule that
applies.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation:
    """A candidate at work: replicas, the concurrency that the traffic makes, and the mean speed there."""

    candidate: Candidate
    memory: Memory
    replicas: int
    concurrency: float  # requests in flight in one replica
    max_concurrency: float  # the most that still meets the objectives
    ttft_s: float
    tpot_s: float
    requests_per_s: float  # of all replicas
    highest_requests_per_s: float  # of all replicas, within the objectives
    output_tokens_per_s: float  # of all replicas
    highest_output_tokens_per_s: float
    e2el_s: float = 0.0
    energy_j_per_token: float = 0.0  # with the machines around the devices; 0: not asked for

    @property
    def deployment(self) -> Deployment:
        """The deployment of one replica."""
        return self.candidate.deployment

    @property
    def num_devices(self) -> int:
        """Devices of all replicas."""
        return self.replicas * self.deployment.layout.num_devices


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """An operation with everything a reader wants to know; power and dollars are of all replicas."""

    operation: Operation
    output_tokens_per_s: float
    total_tokens_per_s: float
    power_w: float
    host_power_w: float  # of the machines around the devices: in no other number here
    energy_j_per_token: float
    energy_j_per_token_with_host: float
    usd_per_hour: float | None
    usd_per_million_tokens: float | None
    usd_per_million_total_tokens: float | None
    bound_by: str
    intervals: Mapping[str, Interval]
    notes: tuple[str, ...] = ()
    launch: Mapping[str, str] = field(default_factory=dict[str, str])
    launch_notes: tuple[str, ...] = ()

    @property
    def output_tokens_per_s_per_device(self) -> float:
        """Output per device."""
        return self.output_tokens_per_s / self.operation.num_devices

    @property
    def output_tokens_per_s_per_user(self) -> float:
        """Speed of an answer for its reader: 1 / tpot; 0 where answers are one token."""
        return 1.0 / self.operation.tpot_s if self.operation.tpot_s > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rejected:
    """A candidate that will not do: what is missing, in numbers, and the smallest change that would fix it."""

    candidate: Candidate
    reason: Reason
    infeasible: Infeasible
    excess_ratio: float  # how far off: need over have, or have over need, above 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrontPoint:
    """One point of the Pareto front: tokens/s/user against tokens/s/device."""

    candidate: Candidate
    concurrency: float
    ttft_s: float
    tpot_s: float
    output_tokens_per_s_per_user: float
    output_tokens_per_s_per_device: float
    meets_objectives: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """Result of a search: plans best first, the rejected, and the front of everything that fits."""

    plans: tuple[Operation, ...]
    rejected: tuple[Rejected, ...]
    front: tuple[FrontPoint, ...]
    evaluated: int  # operating points costed
    num_candidates: int
