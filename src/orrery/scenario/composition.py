"""Many expert models behind a router on one replica: which are held, what switches cost, and how long requests wait.

Every request passes the router, which is as large as an expert, then one expert; requests are served one after the
other. The least recently used expert makes room. SambaNova SN40L, arXiv 2405.07518.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import floor
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.user_file import is_user_file, user_path
from orrery.engine.streams import stream
from orrery.execution.composition import Node, Served, missed_frac, nodes_to_hold, popularity, serve
from orrery.execution.dataflow.decoder import pass_s
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory
from orrery.execution.shard import cache_of
from orrery.planner.money import Tariff
from orrery.scenario.answer import to_json
from orrery.scenario.ask import Answer, InfeasibleAnswer, deployment_json, estimate
from orrery.scenario.expert_loads import read_loads
from orrery.scenario.plan_answer import price_json
from orrery.scenario.schema import Scenario

READ = frozenset(
    (
        "model",
        "assume",
        "device",
        "tp",
        "weights",
        "activations",
        "kv",
        "engine",
        "engine_version",
        "input_tokens",
        "output_tokens",
        "rate",
        "concurrency",
        "num_requests",
        "seed",
        "max_model_len",
        "usd_per_hour",
        "composition",
        "switch_bytes_per_s",
    )
)
"""Settings that such a run has."""

CURVE = (1, 20, 100, 500, 2000)
"""Answer tokens of the curve."""

HOW = "write 150 (all asked for alike), 150:zipf:0.8, or the name of a file with one share for each expert."
MAX_EXPERTS = 100_000
REQUESTS = 1000
"""Where nobody says how many."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Expert:
    """Seconds of one request by part, and the room for experts."""

    router_s: float
    first_token_s: float
    per_token_s: float
    node: Node
    expert_bytes: float
    held: int  # beside the router

    @property
    def switch_s(self) -> float:
        """One expert brought up."""
        return self.node.switch_s(self.expert_bytes)

    def run_s(self, output_tokens: int) -> float:
        """A request whose expert is held."""
        return self.router_s + self.first_token_s + (output_tokens - 1) * self.per_token_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A lone request with so many answer tokens: its mean seconds, and the share that switches take."""

    output_tokens: int
    request_s: float
    switch_frac: float


@dataclass(frozen=True, kw_only=True, eq=False)
class CompositionAnswer:
    """One run, its parts, and curves over answer tokens and over the links that experts come up by."""

    deployment: Deployment
    expert: Expert
    shares: tuple[float, ...]  # of requests, by expert
    output_tokens: int
    served: Served
    seed: int
    tariff: Tariff
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def latency_s(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Seconds of each request, from its arrival."""
        return self.served.finish_s - self.served.arrival_s

    @property
    def duration_s(self) -> float:
        """Seconds of the run."""
        return float(self.served.finish_s[-1])

    @property
    def output_tokens_per_s(self) -> float:
        """Answer tokens a second of the run."""
        return self.output_tokens * len(self.latency_s) / self.duration_s

    @property
    def settled_missed_frac(self) -> float:
        """Share of requests that miss their expert once the memory is full."""
        return missed_frac(len(self.shares), self.expert.held, seed=self.seed, shares=self.shares)

    @property
    def replicas_to_hold_all(self) -> int:
        """Replicas that together hold every expert, each beside a router, so that nothing is switched."""
        return nodes_to_hold(len(self.shares), self.expert.expert_bytes, self.expert.node, beside=1)

    @property
    def curve(self) -> tuple[Point, ...]:
        """Lone requests over the length of answers, once the memory is full."""
        switch_s = self.settled_missed_frac * self.expert.switch_s
        found = sorted({*CURVE, self.output_tokens})
        runs = {n: self.expert.run_s(n) for n in found}
        return tuple(
            Point(output_tokens=n, request_s=s + switch_s, switch_frac=switch_s / (s + switch_s))
            for n, s in runs.items()
        )

    @property
    def links(self) -> tuple[tuple[float, float], ...]:
        """Bytes a second by which experts come up, halved and doubled, and a lone request's seconds."""
        rate, run_s = self.expert.node.switch_bytes_per_s, self.expert.run_s(self.output_tokens)
        latency_s, missed = self.expert.node.switch_latency_s, self.settled_missed_frac
        each = [rate * ratio for ratio in (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)]
        return tuple((r, run_s + missed * (latency_s + self.expert.expert_bytes / r)) for r in each)

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        waits, x = self.latency_s, self.expert
        usd = self.tariff.usd_per_million(self.deployment.layout.num_devices, 0.0, self.output_tokens_per_s)
        return to_json(
            {
                "num_requests": len(waits),
                "duration_s": self.duration_s,
                "requests_per_s": len(waits) / self.duration_s,
                "output_tokens_per_s": self.output_tokens_per_s,
                "mean_latency_s": float(waits.mean()),
                "p50_latency_s": float(np.percentile(waits, 50)),
                "p99_latency_s": float(np.percentile(waits, 99)),
                "missed_frac": float(self.served.is_missed.mean()),
                "settled_missed_frac": self.settled_missed_frac,
                "num_experts": len(self.shares),
                "held_experts": x.held,
                "replicas_to_hold_all": self.replicas_to_hold_all,
                "expert_bytes": x.expert_bytes,
                "router_s": x.router_s,
                "first_token_s": x.first_token_s,
                "per_token_s": x.per_token_s,
                "switch_s": x.switch_s,
                "usd_per_million_tokens": usd,
                "curve": [to_json(point) for point in self.curve],
                "links": [{"switch_bytes_per_s": rate, "request_s": s} for rate, s in self.links],
                "price": price_json(self.tariff),
                "deployment": deployment_json(self.deployment),
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def composed(scenario: Scenario) -> CompositionAnswer | InfeasibleAnswer:
    """The run of a scenario with ``composition``."""
    _check(scenario)
    plain = scenario.model_copy(
        update={"composition": None, "switch_bytes_per_s": None, "rate": None, "concurrency": None, "batch": 1}
    )
    alone = estimate(plain)
    if isinstance(alone, InfeasibleAnswer):
        return InfeasibleAnswer(infeasible=alone.infeasible, notes=alone.notes, settings=scenario.written())
    shares = shares_of(str(scenario.composition))
    expert, notes = _expert(scenario, alone)
    if expert.held < 1:
        return InfeasibleAnswer(infeasible=_lacking(alone), notes=alone.notes, settings=scenario.written())
    count, seed = scenario.num_requests or REQUESTS, scenario.seed or 0
    experts = stream(seed, "experts/asked").choice(len(shares), size=count, p=shares)
    output_tokens = scenario.output_tokens or 1
    served = serve(
        experts.tolist(),
        expert.held,
        run_s=expert.run_s(output_tokens),
        switch_s=expert.switch_s,
        arrival_s=_arrivals(scenario.rate, count, seed),
        clients=scenario.concurrency or 1,
    )
    return CompositionAnswer(
        deployment=alone.question.deployment,
        expert=expert,
        shares=shares,
        output_tokens=output_tokens,
        served=served,
        seed=seed,
        tariff=alone.tariff,
        notes=(*alone.question.notes, *alone.tariff.notes, *notes),
        settings=scenario.written(),
    )


def _check(scenario: Scenario) -> None:
    if other := [name for name in scenario.written() if name not in READ]:
        raise ScenarioError(
            f"{', '.join(other)}: not of a run with composition, in which one replica serves requests of equal lengths "
            "one after the other; leave out."
        )
    if scenario.rate and scenario.concurrency:
        raise ScenarioError("rate and concurrency exclude each other; keep one.")


def shares_of(word: str) -> tuple[float, ...]:
    """Share of requests for each expert: ``150`` alike, ``150:zipf:0.8``, or a file with a number for each.

    >>> shares_of("4")
    (0.25, 0.25, 0.25, 0.25)
    """
    count, _, law = word.strip().partition(":")
    try:
        given = read_loads(law if count.isdecimal() else word) if law or not count.isdecimal() else None
    except ScenarioError as error:
        why = str(error).partition(": ")[2] if is_user_file(user_path(word.strip())) else f"got {word!r}; {HOW}"
        raise ScenarioError(f"composition: {why}") from error
    if given and given.shares:
        found = np.array(given.shares, dtype=np.float64)
        return tuple((found / found.sum()).tolist())
    if not count.isdecimal():
        raise ScenarioError(f"composition: got {word!r}; {HOW}")
    skew = given.exponent if given else 0.0
    if not 1 <= int(count) <= MAX_EXPERTS:
        raise ScenarioError(f"composition: got {word!r}; write 1 to {MAX_EXPERTS:,} experts.")
    return tuple(popularity(int(count), skew).tolist())


def _expert(scenario: Scenario, alone: Answer) -> tuple[Expert, tuple[str, ...]]:
    """One request's parts. Layers stream on a dataflow device; elsewhere kernels run as the engine runs them."""
    deployment, memory = alone.question.deployment, alone.estimate.memory
    device, model, ranks = deployment.cluster.device, deployment.model, deployment.layout.num_devices
    prompt, output = scenario.input_tokens or 1, scenario.output_tokens or 1
    if device.kind == "dataflow":
        first_s = pass_s(model, device, prompt, prompt, ranks=ranks)
        token_s = pass_s(model, device, 1, prompt + output // 2, ranks=ranks)
    else:
        first_s, token_s = alone.estimate.ttft_s, alone.estimate.tpot_s
    rate = scenario.switch_bytes_per_s or device.host.each_way_bytes_per_s * ranks
    cache_bytes = cache_of(deployment).bytes_per_token * (prompt + output)
    room = memory.usable_bytes - _fixed(memory) - cache_bytes
    expert = Expert(
        router_s=first_s,
        first_token_s=first_s,
        per_token_s=token_s,
        node=Node(
            fast_bytes=max(room, 1.0) * ranks,
            switch_bytes_per_s=rate,
            switch_latency_s=device.host.latency_s,
        ),
        expert_bytes=memory.weights_bytes * ranks,
        held=floor(room / memory.weights_bytes) - 1,
    )
    notes = ["router: as large as an expert, one pass"]
    if device.kind == "dataflow":
        notes.append("layers stream through the device: three quarters of its roofs, 5 µs to start (assumed)")
    if not scenario.switch_bytes_per_s:
        notes.append(f"switch_bytes_per_s: {rate:.3g} (the host links of all {ranks} devices at once)")
    return expert, tuple(notes)


def _fixed(memory: Memory) -> float:
    return memory.activation_bytes + memory.communication_bytes + memory.context_bytes


def _lacking(alone: Answer) -> Infeasible:
    """The missing memory where a router and one expert do not lie side by side."""
    memory = alone.estimate.memory
    return Infeasible(
        what="memory of a device",
        need=2.0 * memory.weights_bytes + _fixed(memory),
        have=memory.usable_bytes,
        unit="bytes",
        smallest_change="More devices, or narrower weights: the router and an expert lie in memory side by side.",
    )


def _arrivals(rate: float | None, count: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    if rate is None:
        return None
    return np.cumsum(stream(seed, "experts/arrivals").exponential(1.0 / rate, count))
