"""APEX: every parallel plan of a model on a cluster, simulated on a trace, against the plan that a rule of thumb names.

The time of a plan is what its own simulator counts: how long a replica computes, without its waiting for requests.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.layout import Deployment, Layout
from orrery.execution.memory import Infeasible, memory_of
from orrery.fleet.power.phases import clocked
from orrery.planner.space import Fixed, layouts
from orrery.serving.metrics.latencies import latencies
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.setup import deployment, layout_of, length_of, requests

MIXED = {"mixes": 1.0}
"""Whole prompts beside the answers of the same step: iteration-level batching without chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One way to cut the model, repeated until the cluster is full, and what came of it."""

    layout: Layout
    replicas: int
    busy_s: float  # mean over replicas, whose requests are dealt out in turn
    energy_j: float  # of a request; nothing while a device waits
    ttft_s: float
    tpot_s: float

    def __str__(self) -> str:
        return f"{self.replicas} x {self.layout}" if self.replicas > 1 else str(self.layout)


def every_layout(setup: Setup) -> Iterator[Layout]:
    """Degrees of data, pipeline, tensor and expert parallelism that fill the cluster with equal replicas."""
    d, devices = deployment(setup, layout="tp1"), int(setup.number("num_devices"))
    for layout in layouts(d.model, d.cluster.device, devices, Fixed(cuts="any")):
        if devices % layout.num_devices == 0 and d.model.num_layers % layout.pp == 0:
            yield layout


def traffic(setup: Setup) -> Requests:
    """Poisson requests of the stated lengths."""
    input, output = (length_of(setup, side) for side in ("input", "output"))
    return requests(input, output, setup.number("num_requests_per_s"), int(setup.number("num_requests")))


def run(setup: Setup, layout: Layout, clock_ratio: float = 1.0) -> Plan | None:
    """One plan on the trace, at a part of the devices' clock; None where the model does not fit."""
    d = _cut(setup, layout, clock_ratio)
    replicas = int(setup.number("num_devices")) // layout.num_devices
    if isinstance(memory_of(d), Infeasible):
        return None
    served = Service(
        pools=(Pool(deployment=d, replicas=replicas),),
        router="round-robin",
        policy="prefill-first",
        policy_knobs=MIXED,
        prefix_caching=False,
    )
    found = simulate(served, traffic(setup))
    if isinstance(found, Infeasible):
        return None
    done, busy_s = latencies(found), (1.0 - found.idle_frac) * found.duration_s
    waiting_j = d.cluster.device.idle_power_w * found.num_devices * (found.duration_s - busy_s)
    return Plan(
        layout=layout,
        replicas=replicas,
        busy_s=busy_s,
        ttft_s=float(np.mean(done.ttft_s)),
        energy_j=(found.energy_j - waiting_j) / found.requests.count,
        tpot_s=float(np.mean(done.long_tpot_s)),
    )


def _cut(setup: Setup, layout: Layout, clock_ratio: float) -> Deployment:
    """The deployment of that layout, its device slowed down."""
    d = deployment(setup, layout=str(layout))
    return replace(d, cluster=replace(d.cluster, device=clocked(d.cluster.device, clock_ratio)))


class Bench:
    """Every plan of every set-up, each simulated once."""

    def __init__(self) -> None:
        """Start with no plan simulated."""
        self._run = cache(self._one)
        self._setups: dict[tuple[str, ...], Setup] = {}

    def plan(self, setup: Setup, layout: Layout, clock_ratio: float = 1.0) -> Plan | None:
        """One plan of a set-up."""
        key = tuple(f"{name}={fact.value}" for name, fact in sorted(setup.inputs.items()))
        self._setups[key] = setup
        return self._run(key, layout, clock_ratio)

    def _one(self, key: tuple[str, ...], layout: Layout, clock_ratio: float) -> Plan | None:
        return run(self._setups[key], layout, clock_ratio)

    def plans(self, setup: Setup, clock_ratio: float = 1.0) -> list[Plan]:
        """All that fit."""
        found = (self.plan(setup, layout, clock_ratio) for layout in every_layout(setup))
        return [plan for plan in found if plan]

    def heuristic(self, setup: Setup) -> Plan:
        """Tensor parallelism inside a node, pipeline stages across nodes."""
        found = self.plan(setup, layout_of(setup.word("baseline_layout")))
        assert found is not None, setup.name
        return found

    def fastest(self, setup: Setup, *, is_feasible: bool = False) -> Plan:
        """The plan of least time: of all, or of those that the engines of the paper could run."""
        tried = self.plans(setup)
        if is_feasible:
            named = {layout_of(words.strip()) for words in setup.word("layouts").split(",")}
            tried = [plan for plan in tried if plan.layout in named]
        return min(tried, key=lambda plan: plan.busy_s)

    def thriftiest(self, setup: Setup, clock_ratio: float = 1.0) -> Plan:
        """The plan of least energy."""
        return min(self.plans(setup, clock_ratio), key=lambda plan: plan.energy_j)


SPACE = (
    "the space and the kernels: here attention and feed-forward layers of a dense model are cut alike (experts are "
    "not), where APEX also copies the one and cuts the other; and a step carries the engine's host time, which its "
    "profiles leave out"
)

POWER = (
    "the power of kernels, profiled in the paper and counted from operations and bytes here; what its joules are per, "
    "and which model they are of, was not found"
)

READ: dict[str, Callable[[Plan], float]] = {
    "energy": lambda plan: plan.energy_j,
    "ttft_mean": lambda plan: plan.ttft_s,
    "tpot_mean": lambda plan: plan.tpot_s,
}


def predict(paper: Paper) -> Iterator[Prediction]:
    """Times of the rule of thumb, what the best plans gain over it, and what plans of least energy save."""
    bench = Bench()
    for claim in paper.claims:
        if not claim.missing:
            yield _one(bench, claim)


def _one(bench: Bench, claim: Claim) -> Prediction:
    setup, metric = claim.setup, claim.metric
    if metric in READ:
        return _of_plan(bench, claim)
    if metric == "energy_reduction":
        fast, thrifty = bench.fastest(setup), bench.thriftiest(setup, setup.number("clock_ratio", 1.0))
        words = f"{thrifty} for {thrifty.energy_j:.4g} J a request, {fast} for {fast.energy_j:.4g} J at full clock"
        saved = 1.0 - thrifty.energy_j / fast.energy_j
        return Prediction(claim=claim.id, predicted=saved, because=words, differs=POWER)
    plain = bench.heuristic(setup)
    if metric == "baseline_run_time":
        words = f"{plain} computes for so long"
        return Prediction(claim=claim.id, predicted=plain.busy_s, because=words, differs=SPACE)
    best = bench.fastest(setup, is_feasible=metric == "plan_speedup_feasible")
    words = f"{plain} computes {plain.busy_s:.4g} s, {best} {best.busy_s:.4g} s"
    return Prediction(claim=claim.id, predicted=plain.busy_s / best.busy_s, because=words, differs=SPACE)


def _of_plan(bench: Bench, claim: Claim) -> Prediction:
    """Energy and latencies of the fastest plan, or of the one of least energy."""
    setup = claim.setup
    clock = setup.number("clock_ratio", 1.0)
    is_fast = claim.id.startswith("latency-optimal")
    plan = bench.fastest(setup) if is_fast else bench.thriftiest(setup, clock)
    words = f"{plan} at {clock:.2g} of the clock"
    return Prediction(claim=claim.id, predicted=READ[claim.metric](plan), because=words, differs=POWER)
