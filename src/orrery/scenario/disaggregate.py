"""Joint, split or separate: traffic served by replicas for both phases, by devices that share out their
compute units between the phases, and by pools of their own for prefill and decode, at equal devices.

The analytical estimate names the best layouts and ratios; each design is simulated to the highest rate at which the
SLOs hold (``find_capacity``), its KV transfers, queues and percentiles included.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf
from typing import Any, Literal

from orrery.base.arguments import typed
from orrery.base.errors import OrreryError, ScenarioError
from orrery.base.units import percent
from orrery.execution.layout import Layout
from orrery.execution.memory import Infeasible
from orrery.planner.budget import Budget, Weight, weight_of
from orrery.planner.goal import Goal, Objectives
from orrery.planner.plan import Operation
from orrery.planner.pools import Pairing, best_of_each_layout, decode_workers, pairings, prefill_workers, rank_at
from orrery.planner.search import search
from orrery.planner.space import Candidate, candidates, formats
from orrery.scenario.answer import to_json
from orrery.scenario.capacity import TOLERANCE, Capacity, find_capacity
from orrery.scenario.money import is_money_asked
from orrery.scenario.plan import NOT_PAID, goal_of, space_of, within_budget
from orrery.scenario.resolve import device_names, find, words
from orrery.scenario.schema import Scenario, merged, read_scenario, refuse_foreign
from orrery.scenario.service import PREFILL_DEGREES

Way = Literal["joint", "split", "separate"]

ROUNDS = 6
"""How often pools of dollars or watts are sized anew around the best so far."""

JOINT, SEPARATE, WORKERS = 2, 4, 8
"""Designs of a kind that are simulated, and layouts of a phase that are paired."""

MARGINS = (1.0, 0.5, 0.25)
"""Limits of the analytical estimate's means as shares of the SLOs, tried in turn until a design holds in simulation."""

SPLITS = ("0.5", "0.3,0.5,0.7")
"""Parts of the compute units for decode that are tried: fixed, and steered by the SLO on TPOT."""

FOUND = ("users", "concurrency", "prefill_replicas", "prefill_clock_frac", *PREFILL_DEGREES, "replicas", "split")
"""Settings that the search chooses, or whose traffic has no highest rate."""

PLANNED = (
    "max_devices",
    "objective",
    "device",
    "prefill_device",
    "decode_device",
    "devices",
    "clock_frac",
    "max_usd_per_hour",
    "power_budget_w",
    "rate",
    "tp",
    "pp",
    "dp",
    "ep",
    "same_node",
)
"""Settings of the plan that each design says for itself."""

OF_POOLS = ("layerwise_transfer", "max_prefill_queue")
"""Settings of separate pools alone."""

TRICKLE_FRAC = 0.01
"""Share of the analytical rate: where the SLOs hold below this alone, they hold for hardly any traffic."""

RESOLVED = 2 * TOLERANCE
"""Differences below this share are not told apart by the search for the highest rate."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """One way to serve the traffic, with the highest rate at which the SLOs hold; ``settings`` say it in full."""

    way: Way
    prefill: str  # replicas and layout: "2 x tp2"; empty where replicas serve both phases
    decode: str
    weight: Weight
    analytical_requests_per_s: float
    capacity: Capacity | None  # None where even a trickle of requests misses an SLO
    infeasible: Infeasible | None
    settings: Mapping[str, Any]
    pairing: Pairing | None = None  # of separate pools

    @property
    def key(self) -> tuple[Way, str, str]:
        """Identity among designs."""
        return self.way, self.prefill, self.decode

    @property
    def link(self) -> str:
        """Link of the KV cache from prefill to decode: node or network; empty where it stays."""
        return "" if self.way != "separate" else "node" if self.settings.get("same_node") else "network"

    @property
    def requests_per_s(self) -> float:
        """The highest rate that holds; 0 where none does."""
        return self.capacity.requests_per_s if self.capacity else 0.0

    @property
    def holds(self) -> bool:
        """Whether the SLOs hold at more than a trickle of requests."""
        return self.requests_per_s >= TRICKLE_FRAC * self.analytical_requests_per_s > 0.0

    @property
    def requests_per_s_per_device(self) -> float:
        """Rate per device."""
        return self.requests_per_s / self.weight.num_devices

    @property
    def limited_by(self) -> str:
        """The limit on the rate."""
        return self.capacity.limited_by if self.capacity else self.infeasible.what if self.infeasible else ""

    def to_json(self) -> dict[str, Any]:
        """One design; SI units."""
        found = self.capacity.answer.summary if self.capacity else None
        attained = self.capacity.answer.attained if self.capacity else None
        return {
            "way": self.way,
            "prefill": self.prefill,
            "decode": self.decode,
            "link": self.link,
            "num_devices": self.weight.num_devices,
            "usd_per_hour": self.weight.usd_per_hour,
            "rated_power_w": self.weight.power_w,
            "requests_per_s": self.requests_per_s,
            "requests_per_s_per_device": self.requests_per_s_per_device,
            "holds": self.holds,
            "limited_by": self.limited_by,
            "analytical_requests_per_s": self.analytical_requests_per_s,
            "attained_frac": attained.attained_frac if attained else None,
            "ttft_s": found.ttft.mean_s if found else None,
            "tpot_s": found.tpot.mean_s if found else None,
            "p99_ttft_s": found.ttft.percentile_s(99.0) if found else None,
            "p99_tpot_s": found.tpot.percentile_s(99.0) if found else None,
            "settings": self.settings,
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Disaggregated:
    """Every design that was simulated, best first, and whether pools of their own pay."""

    goal: Goal
    designs: tuple[Design, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]

    def best(self, way: Way) -> Design | None:
        """The best design of a kind under which the SLOs hold."""
        return next((d for d in self.designs if d.way == way and d.holds), None)

    @property
    def gain_ratio(self) -> float | None:
        """Requests/s per device, or for a budget of dollars or watts, of the best separate pools over the best joint
        design; None where one is missing."""
        joint, separate = self.best("joint"), self.best("separate")
        if joint is None or separate is None:
            return None
        if not self.goal.budget.is_by_devices:
            return separate.requests_per_s / joint.requests_per_s
        return separate.requests_per_s_per_device / joint.requests_per_s_per_device

    @property
    def conclusion(self) -> str:
        """Whether it pays, and what limits each side."""
        joint, separate, gain = self.best("joint"), self.best("separate"), self.gain_ratio
        if separate is None and joint is None:
            return f"No design holds the SLOs: {self.designs[0].limited_by}." if self.designs else "Nothing fits."
        if separate is None or joint is None or gain is None:
            only, other = ("joint", "separate") if joint else ("separate", "joint")
            return f"Only the {only} design holds the SLOs; no {other} one does."
        limits = f"joint replicas are limited by {joint.limited_by}, separate pools by {separate.limited_by}"
        per = "per device" if self.goal.budget.is_by_devices else "within the budget"
        if abs(gain - 1.0) < RESOLVED:
            return f"Disaggregation makes no difference that the search tells apart ({gain:.2f}x {per}); {limits}."
        if gain < 1.0:
            return f"Disaggregation does not pay: {gain:.2f}x the requests/s {per}; {limits}."
        return f"Disaggregation pays: {gain:.2f}x the requests/s {per}; {limits}."

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        return to_json(
            {
                "designs": [d.to_json() for d in self.designs],
                "gain_ratio": self.gain_ratio,
                "conclusion": self.conclusion,
                "goal": self.goal,
                "notes": self.notes,
                "settings": self.settings,
            }
        )


@typed
def plan_disaggregated(
    scenario: Scenario | None = None,
    /,
    *,
    on_design: Callable[[int, int], None] = lambda done, total: None,
    **settings: Any,
) -> Disaggregated:
    """Compare replicas for both phases, split devices, and pools of their own, at no more than ``max_devices``, or
    within ``max_usd_per_hour`` or ``power_budget_w`` of rated draws.

    Settings are those of a scenario file; given beside a scenario they override it. ``prefill_device`` and
    ``decode_device`` name devices of either pool where they are others, and of several clocks (``clock_frac``) each is
    tried in each. With a rate, designs that carry it come first, the cheapest before.
    ``on_design`` is called with (designs simulated, designs in total).
    """
    inputs = merged(scenario, settings)
    for name in FOUND:
        if getattr(inputs, name) is not None:
            raise ScenarioError(f"{name}: is what this search finds; leave it out.")
    if inputs.power_cap is not None:
        raise ScenarioError(
            "power_cap: is of replicas behind one breaker; pools are sized by rated draws, leave it out."
        )
    goal, notes = _goal(inputs)
    refuse_foreign("plan", settings)
    notes = (*notes, *([NOT_PAID] if is_money_asked(inputs) else []))
    if goal.max_devices < 2:
        raise ScenarioError(f"max_devices: got {goal.max_devices}; two pools take 2 devices or more.")
    measured = _Search(scenario=inputs, goal=goal, on_design=on_design).run()
    if not any(d.way == "separate" for d in measured):
        notes = (*notes, f"separate: no two pools within the SLOs fit into {goal.max_devices} devices")
    notes = (
        *notes,
        *(
            f"{name}: as the checkpoint has it, the same in every design; name another with --{name}"
            for name in ("weights", "kv")
            if getattr(inputs, name) is None
        ),
        f"requests/s: simulated, the highest rate at which the SLOs hold, to {percent(TOLERANCE, 1)}",
    )
    return Disaggregated(
        goal=goal,
        designs=tuple(sorted(measured, key=lambda d: _rank(d, goal))),
        notes=tuple(dict.fromkeys(notes)),
        settings=inputs.written(),
    )


@dataclass(slots=True, kw_only=True, eq=False)
class _Search:
    """Designs by the analytical estimate, simulated in turn; where none of a kind holds, layouts that are faster."""

    scenario: Scenario
    goal: Goal
    on_design: Callable[[int, int], None]
    measured: dict[tuple[Way, str, str], Design] = field(default_factory=dict[tuple[Way, str, str], Design])
    total: int = 0

    def run(self) -> list[Design]:
        """Every design that was simulated."""
        joint, prefill, decode = ([*_candidates(self.scenario, self.goal, names)] for names in _names(self.scenario))
        for margin in MARGINS:
            goal = replace(self.goal, objectives=_tighter(self.goal.objectives, margin))
            if self._best("joint") is None:
                self._measure(_joint_designs(goal, joint))
            if self._best("separate") is None:
                self._measure(_separate(pairing) for pairing in _pairings(goal, prefill, decode)[:SEPARATE])
        if (best := self._best("joint")) is not None:
            has_target = self.goal.objectives.tpot_s < inf
            self._measure(_split(best, frac) for frac in (SPLITS if has_target else SPLITS[:1]))
        for _ in range(1 if self.goal.budget.is_by_devices else ROUNDS):
            if (best := self._best("separate")) is None or best.pairing is None:
                break
            self._measure(_separate(pairing) for pairing in _nearby(best.pairing, self.goal.budget))
            if self._best("separate") is best:
                break
        return list(self.measured.values())

    def _best(self, way: Way) -> Design | None:
        holding = [d for d in self.measured.values() if d.way == way and d.holds]
        return min(holding, key=lambda design: _rank(design, self.goal), default=None)

    def _measure(self, designs: Iterable[Design]) -> None:
        fresh = {d.key: d for d in designs if d.key not in self.measured}
        self.total += len(fresh)
        for key, design in fresh.items():
            self.on_design(len(self.measured), self.total)
            self.measured[key] = _measured(self.scenario, design)
        self.on_design(len(self.measured), self.total)


def _tighter(objectives: Objectives, margin: float) -> Objectives:
    """Limits of means for limits that most requests must meet."""
    return Objectives(**{name: limit_s * margin for name, limit_s in objectives.limits()})


def _nearby(pairing: Pairing, budget: Budget) -> Iterator[Pairing]:
    """The same layouts with a replica more or fewer on one side or the other; of dollars or watts, an eighth of a side
    more or fewer, with what is left for the other."""
    if budget.is_by_devices:
        sizes = [
            (pairing.num_prefill + more, pairing.num_decode + beside)
            for more, beside in ((1, 0), (0, 1), (-1, 0), (0, -1), (1, -1), (-1, 1))
        ]
    else:
        each, other = pairing.prefill.weight, pairing.decode.weight
        fewer, more = (pairing.num_prefill + sign * max(1, pairing.num_prefill // 8) for sign in (-1, 1))
        sizes = [(n, budget.less(each.times(n)).most(other)) for n in (fewer, pairing.num_prefill, more)]
    for num_prefill, num_decode in sizes:
        near = replace(pairing, num_prefill=num_prefill, num_decode=num_decode)
        if min(num_prefill, num_decode) >= 1 and budget.most(near.weight):
            yield near


def _names(scenario: Scenario) -> tuple[tuple[str, ...], ...]:
    """Devices of joint designs, of the prefill pool, and of the decode pool."""
    own = device_names(scenario)
    return own, *(words(name) if name else own for name in (scenario.prefill_device, scenario.decode_device))


def _goal(scenario: Scenario) -> tuple[Goal, tuple[str, ...]]:
    """The goal with its budget of dollars and watts, and notes."""
    goal, notes = goal_of(scenario, is_simulated=True)
    goal = replace(goal, max_power_w=inf if scenario.power_budget_w is None else scenario.power_budget_w)
    parts = [find(scenario, name) for name in dict.fromkeys(chain(*_names(scenario)))]
    if goal.max_power_w < inf:
        notes += tuple(
            f"power: what the host of {p.device.name} draws is not known; devices alone are counted"
            for p in parts
            if not p.device.host_power_w
        )
    return within_budget(goal, scenario, space_of(scenario, parts, goal.max_devices).options), notes


def _joint_designs(goal: Goal, candidates: Sequence[Candidate]) -> list[Design]:
    """The best layouts; of dollars or watts, what carries most in all first, and the best of each device."""
    plans = search(goal, candidates).plans
    if goal.budget.is_by_devices:
        return [_joint(operation) for operation in _best_layouts(plans, JOINT)]
    plans = sorted(plans, key=lambda operation: -operation.highest_requests_per_s)
    best_of: dict[str, Operation] = {}
    for operation in plans:
        best_of.setdefault(operation.deployment.cluster.device.name, operation)
    return [_joint(operation) for operation in (*_best_layouts(plans, JOINT), *best_of.values())]


def _pairings(goal: Goal, prefill: Sequence[Candidate], decode: Sequence[Candidate]) -> list[Pairing]:
    return pairings(
        best_of_each_layout(prefill_workers(goal, prefill), WORKERS, goal.budget),
        best_of_each_layout(decode_workers(goal, decode), WORKERS, goal.budget),
        goal.budget,
        goal.traffic.request_rate_per_s,
    )


def _split(joint: Design, frac: str) -> Design:
    return replace(
        joint,
        way="split",
        settings={**joint.settings, "split": frac},
        capacity=None,
        decode=f"{joint.decode}, split {frac}",
    )


def _candidates(scenario: Scenario, goal: Goal, names: Sequence[str]) -> Iterator[Candidate]:
    """Layouts on some devices, in one choice of formats and with the engine's own token budget."""
    for name in names:
        parts = find(scenario, name)
        space = space_of(scenario, [parts], goal.max_devices)
        kind = next(formats(space.model, parts.device, space.fixed))
        budget = space.fixed.max_num_batched_tokens or int(parts.engine.max_num_batched_tokens)
        fixed = replace(
            space.fixed,
            weights=(kind.weights,),
            activations=kind.activations,
            kv=(kind.kv,),
            max_num_batched_tokens=budget,
        )
        yield from candidates(replace(space, fixed=fixed))


def _best_layouts(plans: Sequence[Operation], count: int) -> list[Operation]:
    best: dict[tuple[str, float, Layout], Operation] = {}
    for plan in plans:
        option = plan.candidate.option
        best.setdefault((option.device.name, option.clock_frac, plan.deployment.layout), plan)
    return list(best.values())[:count]


def _joint(operation: Operation) -> Design:
    return Design(
        way="joint",
        prefill="",
        decode=_describe(operation.replicas, operation.candidate),
        weight=weight_of(operation.candidate.option, operation.num_devices),
        analytical_requests_per_s=operation.highest_requests_per_s,
        capacity=None,
        infeasible=None,
        settings=_settings(operation.candidate, operation.replicas),
    )


def _separate(pairing: Pairing) -> Design:
    prefill, decode = pairing.prefill.candidate, pairing.decode.candidate
    own: dict[str, Any] = {f"prefill_{name}": n for name, n in _degrees(pairing.prefill.layout).items()}
    if prefill.option.device.name != decode.option.device.name:
        own["prefill_device"] = prefill.option.device.name
    elif pairing.weight.num_devices <= decode.option.device.devices_per_node:
        own["same_node"] = True
    if prefill.option.clock_frac != decode.option.clock_frac:
        own["prefill_clock_frac"] = prefill.option.clock_frac
    return Design(
        way="separate",
        prefill=_describe(pairing.num_prefill, prefill),
        decode=_describe(pairing.num_decode, decode),
        weight=pairing.weight,
        analytical_requests_per_s=pairing.requests_per_s,
        capacity=None,
        infeasible=None,
        settings={**_settings(decode, pairing.num_decode), "prefill_replicas": pairing.num_prefill, **own},
        pairing=pairing,
    )


def _settings(candidate: Candidate, replicas: int) -> dict[str, Any]:
    """A candidate as a scenario file has it."""
    d, clock = candidate.deployment, candidate.option.clock_frac
    return {
        "device": d.cluster.device.name,
        **({"clock_frac": f"{clock:g}"} if clock != 1.0 else {}),
        **_degrees(d.layout),
        "replicas": replicas,
        "weights": d.formats.weights,
        "kv": d.formats.kv,
    }


def _degrees(layout: Layout) -> dict[str, int]:
    found = {name: getattr(layout, name) for name in ("tp", "pp", "dp", "ep")}
    return {name: n for name, n in found.items() if n > 1 or name == "tp"}


def _describe(replicas: int, candidate: Candidate) -> str:
    option, degrees = candidate.option, _degrees(candidate.deployment.layout)
    clock = f" at {percent(option.clock_frac)}" if option.clock_frac != 1.0 else ""
    return f"{replicas} x {' '.join(f'{name}{n}' for name, n in degrees.items())} {option.device.name}{clock}"


def _measured(scenario: Scenario, design: Design) -> Design:
    """The design with the highest rate at which the SLOs hold."""
    others = PLANNED if design.way == "separate" else (*PLANNED, *OF_POOLS)
    retained = {name: value for name, value in scenario.written().items() if name not in others}
    settings = {**retained, **design.settings}
    try:
        found = find_capacity(read_scenario(settings))
    except OrreryError as error:
        infeasible = Infeasible(what=str(error), need=1.0, have=0.0, unit="ratio", smallest_change="")
        return replace(design, infeasible=infeasible, settings=settings)
    if isinstance(found, Capacity):
        return replace(design, capacity=found, settings=settings)
    return replace(design, infeasible=found.infeasible, settings=settings)


def _rank(design: Design, goal: Goal) -> tuple[float, ...]:
    return rank_at(design.requests_per_s, design.weight, goal.budget, goal.traffic.request_rate_per_s)
