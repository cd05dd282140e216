"""Joint, split or separate: traffic served by replicas for both phases, by devices that share out their
compute units between the phases, and by pools of their own for prefill and decode, at equal devices.

The analytical estimate names the best layouts and ratios; each design is simulated to the highest rate at which the
SLOs hold (``find_capacity``), its KV transfers, queues and percentiles included.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal

from orrery.base.arguments import typed
from orrery.base.errors import OrreryError, ScenarioError
from orrery.execution.layout import Layout
from orrery.execution.memory import Infeasible
from orrery.planner.goal import Goal, Objectives
from orrery.planner.plan import Operation
from orrery.planner.pools import Pairing, best_of_each_layout, decode_workers, pairings, prefill_workers, rank_at
from orrery.planner.search import search
from orrery.planner.space import Candidate, candidates, formats
from orrery.scenario.answer import to_json
from orrery.scenario.capacity import TOLERANCE, Capacity, find_capacity
from orrery.scenario.money import is_money_asked
from orrery.scenario.plan import NOT_PAID, goal_of, space_of
from orrery.scenario.resolve import device_names, find, words
from orrery.scenario.schema import Scenario, merged, read_scenario
from orrery.scenario.service import PREFILL_DEGREES

Way = Literal["joint", "split", "separate"]

JOINT, SEPARATE, WORKERS = 2, 4, 8
"""Designs of a kind that are simulated, and layouts of a phase that are paired."""

MARGINS = (1.0, 0.5, 0.25)
"""Limits of the analytical estimate's means as shares of the SLOs, tried in turn until a design holds in simulation."""

SPLITS = ("0.5", "0.3,0.5,0.7")
"""Parts of the compute units for decode that are tried: fixed, and steered by the SLO on TPOT."""

FOUND = ("users", "concurrency", "prefill_replicas", *PREFILL_DEGREES, "replicas", "split")
"""Settings that the search chooses, or whose traffic has no highest rate."""

PLANNED = (
    "max_devices",
    "objective",
    "device",
    "prefill_device",
    "devices",
    "rate",
    "tp",
    "pp",
    "dp",
    "ep",
    "same_node",
)
"""Settings of the plan that each design says for itself."""

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
    num_devices: int
    usd_per_hour: float | None
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
        return self.requests_per_s / self.num_devices

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
            "num_devices": self.num_devices,
            "usd_per_hour": self.usd_per_hour,
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
        """Requests/s per device of the best separate pools over the best joint design; None where one is missing."""
        joint, separate = self.best("joint"), self.best("separate")
        if joint is None or separate is None:
            return None
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
        if abs(gain - 1.0) < RESOLVED:
            return f"Disaggregation makes no difference that the search tells apart ({gain:.2f}x per device); {limits}."
        if gain < 1.0:
            return f"Disaggregation does not pay: {gain:.2f}x the requests/s per device; {limits}."
        return f"Disaggregation pays: {gain:.2f}x the requests/s per device; {limits}."

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
    """Compare replicas for both phases, split devices, and pools of their own, at no more than ``max_devices``.

    Settings are those of a scenario file; given beside a scenario they override it. ``prefill_device`` names devices
    of the prefill pool where they are others. With a rate, designs that carry it come first, the cheapest before.
    ``on_design`` is called with (designs simulated, designs in total).
    """
    inputs = merged(scenario, settings)
    for name in FOUND:
        if getattr(inputs, name) is not None:
            raise ScenarioError(f"{name}: is what this search finds; leave it out.")
    goal, notes = goal_of(inputs, is_simulated=True)
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
        f"requests/s: simulated, the highest rate at which the SLOs hold, to {TOLERANCE:.1%}",
    )
    return Disaggregated(
        goal=goal,
        designs=tuple(sorted(measured, key=lambda d: _rank(d, goal.traffic.request_rate_per_s))),
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
        decode = [*_candidates(self.scenario, self.goal, device_names(self.scenario))]
        names = words(self.scenario.prefill_device) if self.scenario.prefill_device else ()
        prefill = [*_candidates(self.scenario, self.goal, names)] if names else decode
        for margin in MARGINS:
            goal = replace(self.goal, objectives=_tighter(self.goal.objectives, margin))
            if self._best("joint") is None:
                self._measure(_joint_designs(goal, decode))
            if self._best("separate") is None:
                self._measure(_separate(pairing) for pairing in _pairings(goal, prefill, decode)[:SEPARATE])
        if (joint := self._best("joint")) is not None:
            has_target = self.goal.objectives.tpot_s < inf
            self._measure(_split(joint, frac) for frac in (SPLITS if has_target else SPLITS[:1]))
        if (separate := self._best("separate")) is not None and separate.pairing is not None:
            self._measure(_separate(pairing) for pairing in _nearby(separate.pairing, self.goal.max_devices))
        return list(self.measured.values())

    def _best(self, way: Way) -> Design | None:
        rate = self.goal.traffic.request_rate_per_s
        holding = [d for d in self.measured.values() if d.way == way and d.holds]
        return min(holding, key=lambda design: _rank(design, rate), default=None)

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


def _nearby(pairing: Pairing, max_devices: int) -> Iterator[Pairing]:
    """The same layouts with a replica more or fewer on one side or the other."""
    for more, beside in ((1, 0), (0, 1), (-1, 0), (0, -1), (1, -1), (-1, 1)):
        num_prefill, num_decode = pairing.num_prefill + more, pairing.num_decode + beside
        near = replace(pairing, num_prefill=num_prefill, num_decode=num_decode)
        if min(num_prefill, num_decode) >= 1 and near.num_devices <= max_devices:
            yield near


def _joint_designs(goal: Goal, decode: Sequence[Candidate]) -> list[Design]:
    return [_joint(operation) for operation in _best_layouts(search(goal, decode).plans, JOINT)]


def _pairings(goal: Goal, prefill: Sequence[Candidate], decode: Sequence[Candidate]) -> list[Pairing]:
    return pairings(
        best_of_each_layout(prefill_workers(goal, prefill), WORKERS),
        best_of_each_layout(decode_workers(goal, decode), WORKERS),
        goal.max_devices,
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
    best: dict[tuple[str, Layout], Operation] = {}
    for plan in plans:
        best.setdefault((plan.deployment.cluster.device.name, plan.deployment.layout), plan)
    return list(best.values())[:count]


def _joint(operation: Operation) -> Design:
    deployment, tariff = operation.deployment, operation.candidate.option.tariff
    return Design(
        way="joint",
        prefill="",
        decode=_describe(operation.replicas, deployment.layout, deployment.cluster.device.name),
        num_devices=operation.num_devices,
        usd_per_hour=tariff.usd_per_hour * operation.num_devices if tariff.usd_per_hour is not None else None,
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
    elif pairing.num_devices <= decode.option.device.devices_per_node:
        own["same_node"] = True
    return Design(
        way="separate",
        prefill=_describe(pairing.num_prefill, pairing.prefill.layout, prefill.option.device.name),
        decode=_describe(pairing.num_decode, pairing.decode.layout, decode.option.device.name),
        num_devices=pairing.num_devices,
        usd_per_hour=pairing.usd_per_hour,
        analytical_requests_per_s=pairing.requests_per_s,
        capacity=None,
        infeasible=None,
        settings={**_settings(decode, pairing.num_decode), "prefill_replicas": pairing.num_prefill, **own},
        pairing=pairing,
    )


def _settings(candidate: Candidate, replicas: int) -> dict[str, Any]:
    """A candidate as a scenario file has it."""
    d = candidate.deployment
    return {
        "device": d.cluster.device.name,
        **_degrees(d.layout),
        "replicas": replicas,
        "weights": d.formats.weights,
        "kv": d.formats.kv,
    }


def _degrees(layout: Layout) -> dict[str, int]:
    found = {name: getattr(layout, name) for name in ("tp", "pp", "dp", "ep")}
    return {name: n for name, n in found.items() if n > 1 or name == "tp"}


def _describe(replicas: int, layout: Layout, device: str) -> str:
    return f"{replicas} x {' '.join(f'{name}{n}' for name, n in _degrees(layout).items())} {device}"


def _measured(scenario: Scenario, design: Design) -> Design:
    """The design with the highest rate at which the SLOs hold."""
    retained = {name: value for name, value in scenario.written().items() if name not in PLANNED}
    settings = {**retained, **design.settings}
    try:
        found = find_capacity(read_scenario(settings))
    except OrreryError as error:
        infeasible = Infeasible(what=str(error), need=1.0, have=0.0, unit="ratio", smallest_change="")
        return replace(design, infeasible=infeasible, settings=settings)
    if isinstance(found, Capacity):
        return replace(design, capacity=found, settings=settings)
    return replace(design, infeasible=found.infeasible, settings=settings)


def _rank(design: Design, rate_per_s: float) -> tuple[float, ...]:
    return rank_at(design.requests_per_s, design.num_devices, design.usd_per_hour, rate_per_s)
