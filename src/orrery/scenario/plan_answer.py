"""The planner's answer: plans best first, what was rejected and why, and the Pareto front."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from orrery.base.units import text
from orrery.execution.layout import DraftHead
from orrery.execution.memory import Infeasible, Memory
from orrery.planner.goal import Goal
from orrery.planner.money import Tariff
from orrery.planner.plan import FrontPoint, Plan, Rejected
from orrery.planner.space import Candidate
from orrery.scenario.answer import to_json
from orrery.scenario.money import Money
from orrery.scenario.power_row import PowerRow


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanAnswer:
    """Result of a search; ``infeasible`` where no plan works."""

    goal: Goal
    plans: tuple[Plan, ...]  # the best, and the best of each device, in full
    num_plans: int  # how many work
    rejected: tuple[Rejected, ...]
    front: tuple[FrontPoint, ...]
    infeasible: Infeasible | None
    evaluated: int
    num_candidates: int
    seconds: float
    tariffs: tuple[tuple[str, Tariff], ...]  # by device
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the question, as a scenario file has it
    power_row: PowerRow | None = None  # replicas under a power budget, where one is given
    money: Money | None = None  # ways to pay for the best plan, where they are asked for
    ranks: tuple[int, ...] = ()  # of ``plans`` among all that work, from 1; without them they are the first

    @property
    def ranked(self) -> tuple[tuple[int, Plan], ...]:
        """The plans with their ranks."""
        return tuple(zip(self.ranks or range(1, len(self.plans) + 1), self.plans, strict=True))

    @property
    def best_by_device(self) -> dict[str, tuple[int, Plan]]:
        """The first plan of each device that has one, with its rank, best first."""
        found: dict[str, tuple[int, Plan]] = {}
        for rank, plan in self.ranked:
            found.setdefault(plan.operation.deployment.cluster.device.name, (rank, plan))
        return found

    @property
    def rejected_by_device(self) -> dict[str, Rejected]:
        """The nearest miss of each device that has no plan."""
        missing = [name for name, _ in self.tariffs if name not in self.best_by_device]
        return {name: near for name in missing if (near := self._nearest(name))}

    def _nearest(self, device: str) -> Rejected | None:
        mine = [r for r in self.rejected if r.candidate.deployment.cluster.device.name == device]
        return closest(mine)

    def headroom_frac(self, plan: Plan) -> float | None:
        """How much more than the traffic's rate a plan sustains within the objectives; None where no rate is given."""
        rate = self.goal.traffic.request_rate_per_s
        return plan.operation.highest_requests_per_s / rate - 1.0 if rate else None

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        out: dict[str, Any] = {"infeasible": self.infeasible} if self.infeasible else {}
        return to_json(
            out
            | {
                "plans": [plan_json(p) | {"rank": n, "headroom_frac": self.headroom_frac(p)} for n, p in self.ranked],
                "num_plans": self.num_plans,
                "rejected": [rejected_json(r) for r in self.rejected],
                "front": [point_json(p) for p in self.front],
                "goal": self.goal,
                "evaluated": self.evaluated,
                "num_candidates": self.num_candidates,
                "prices": {device: price_json(tariff) for device, tariff in self.tariffs},
                "seconds": self.seconds,
                "settings": self.settings,
                "notes": self.notes,
            }
        ) | {name: found.to_json() for name, found in (("money", self.money), ("power_row", self.power_row)) if found}


def price_json(tariff: Tariff) -> dict[str, Any]:
    """Price of a device, and the choice of it."""
    return {
        "usd_per_hour": tariff.usd_per_hour,
        "electricity_usd_per_kwh": tariff.electricity_usd_per_kwh,
        "because": tariff.because,
        "is_stale": tariff.is_stale,
    }


def candidate_json(candidate: Candidate) -> dict[str, Any]:
    """A candidate by name."""
    d = candidate.deployment
    return {
        "device": d.cluster.device.name,
        "layout": d.layout,
        "formats": d.formats,
        "max_num_batched_tokens": d.max_num_batched_tokens,
        "engine": d.engine.name,
    }


def _draft_json(head: DraftHead | None) -> dict[str, Any]:
    """The tree that a plan verifies, where it was chosen for its layout."""
    if head is None or not head.level_nodes:
        return {}
    levels = [n for n in head.level_nodes if n]
    return {"draft": {"method": head.method, "level_nodes": levels, "tokens_per_step": head.tokens_per_step}}


def plan_json(plan: Plan) -> dict[str, Any]:
    """One plan."""
    o = plan.operation
    return {
        **candidate_json(o.candidate),
        **_draft_json(o.deployment.draft_head),
        **({"clock_frac": o.candidate.option.clock_frac} if o.candidate.option.clock_frac != 1.0 else {}),
        "replicas": o.replicas,
        "num_devices": o.num_devices,
        "concurrency": o.concurrency * o.replicas,
        "max_num_seqs": max(1, int(o.max_concurrency / o.deployment.layout.dp)),
        "ttft_s": o.ttft_s,
        "tpot_s": o.tpot_s,
        "requests_per_s": o.requests_per_s,
        "output_tokens_per_s": plan.output_tokens_per_s,
        "total_tokens_per_s": plan.total_tokens_per_s,
        "output_tokens_per_s_per_device": plan.output_tokens_per_s_per_device,
        "output_tokens_per_s_per_user": plan.output_tokens_per_s_per_user,
        "highest_requests_per_s": o.highest_requests_per_s,
        "highest_output_tokens_per_s": o.highest_output_tokens_per_s,
        "bound_by": plan.bound_by,
        "memory": memory_json(o.memory),
        "power_w": plan.power_w,
        "host_power_w": plan.host_power_w,
        "energy_j_per_token": plan.energy_j_per_token,
        "energy_j_per_token_with_host": plan.energy_j_per_token_with_host,
        "usd_per_hour": plan.usd_per_hour,
        "usd_per_million_tokens": plan.usd_per_million_tokens,
        "usd_per_million_total_tokens": plan.usd_per_million_total_tokens,
        "intervals": plan.intervals,
        "launch": plan.launch,
        "launch_notes": plan.launch_notes,
        "notes": plan.notes,
    }


def rejected_json(rejected: Rejected) -> dict[str, Any]:
    """One rejected candidate: what is missing, and the smallest change."""
    infeasible = rejected.infeasible
    return {
        **candidate_json(rejected.candidate),
        "reason": rejected.reason,
        "what": infeasible.what,
        "need": infeasible.need,
        "have": infeasible.have,
        "unit": infeasible.unit,
        "smallest_change": infeasible.smallest_change,
    }


def point_json(point: FrontPoint) -> dict[str, Any]:
    """One point of the front."""
    return {
        **candidate_json(point.candidate),
        "concurrency": point.concurrency,
        "ttft_s": point.ttft_s,
        "tpot_s": point.tpot_s,
        "output_tokens_per_s_per_user": point.output_tokens_per_s_per_user,
        "output_tokens_per_s_per_device": point.output_tokens_per_s_per_device,
        "meets_objectives": point.meets_objectives,
    }


def memory_json(memory: Memory) -> dict[str, Any]:
    """Peak memory per device by category, and the cache it leaves."""
    return {
        "weights_bytes": memory.weights_bytes,
        "kv_capacity_bytes": memory.kv_capacity_bytes,
        "activation_bytes": memory.activation_bytes,
        "communication_bytes": memory.communication_bytes,
        "context_bytes": memory.context_bytes,
        "usable_bytes": memory.usable_bytes,
        "capacity_bytes": memory.capacity_bytes,
        "kv_bytes_per_token": memory.cache.bytes_per_token,
        "state_bytes_per_sequence": memory.cache.bytes_per_sequence,
        "kv_capacity_tokens": memory.kv_capacity_tokens,
        "max_num_seqs": memory.max_num_seqs,
        "max_num_batched_tokens": memory.max_num_batched_tokens,
    }


def nothing_works(rejected: Sequence[Rejected]) -> Infeasible | None:
    """The candidate that comes closest, for an answer without plans: few devices before slow, slow before too small."""
    near = closest(rejected)
    return near.infeasible if near else None


def closest(rejected: Sequence[Rejected]) -> Rejected | None:
    """The nearest miss: few devices before slow, slow before too small."""
    order = ("devices", "objective", "length", "memory", "range")
    return min(rejected, key=lambda r: (order.index(r.reason), r.excess_ratio), default=None)


def nearest_misses(rejected: tuple[Rejected, ...], count: int) -> list[Rejected]:
    """The nearest miss of each kind in turn, each sentence once."""
    by_reason: dict[str, dict[str, Rejected]] = {}
    for item in rejected:
        by_reason.setdefault(item.reason, {}).setdefault(shortfall(item), item)
    rounds = zip_longest(*(found.values() for found in by_reason.values()))
    return [item for turn in rounds for item in turn if item is not None][:count]


def shortfall(item: Rejected) -> str:
    """A rejected plan's need, its supply, and a value that would work; with enough digits to see the difference."""
    infeasible = item.infeasible
    need = have = ""
    for digits in (3, 4, 5):
        need, have = (
            _quantity(infeasible.need, infeasible.unit, digits),
            _quantity(infeasible.have, infeasible.unit, digits),
        )
        if need != have:
            break
    return f"{infeasible.what}: needs {need}, has {have}. {infeasible.smallest_change}"


def _quantity(value: float, unit: str, digits: int) -> str:
    return f"{value:,.0f} {unit}" if unit in ("tokens", "devices") else text(value, unit, digits)
