"""A run with traffic, simulated: the requests that a row describes, served, and read off as a client would."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, sqrt

import numpy as np

from orrery.base.cost import Interval, Spread
from orrery.engine.streams import stream
from orrery.evidence.metrics import base_metric
from orrery.execution.memory import Infeasible, Memory, memory_of
from orrery.serving.arrivals import arrivals
from orrery.serving.clock import steps_of, tick
from orrery.serving.extrapolation import ExtrapolationShare, bounds_of, extrapolation_share, factors_of, kind_of_run
from orrery.serving.intervals import Bounds, Figures, ratios_of
from orrery.serving.metrics.distribution import from_gaps
from orrery.serving.metrics.latencies import Latencies, latencies
from orrery.serving.online import highest_rate
from orrery.serving.requests import NONE, Floats, Ints, Requests
from orrery.serving.simulation.assemble import memories_of
from orrery.serving.simulation.result import TIMELINE, Simulated
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.simulate import simulate
from orrery.serving.steady import batch_limit
from orrery.serving.synthesis.lengths import Length, draw
from orrery.serving.synthesis.prefixes import repeated
from orrery.serving.workload import REQUESTS_PER_SLOT, Workload

SEED = 0
"""Every row draws from the same streams, so a row has one answer."""

CLIENT_PAUSE_S = 3e-3
"""Mean time from an answer's end to the same client's next request, in a closed loop (exponential): load generators
write records and open a stream in between. Equal requests that end in one step come back a little apart."""

ENDLESS = 2000
"""Requests of an open run that does not say how many it served."""

MOST = 4000
"""Requests that stand for a longer open run: enough for its means, and for its 99th percentile."""

STEADY_ROUNDS, FEWEST = 5, 200
"""Full batches, and requests, that stand for a longer offline run; the rest goes on at their pace. Five are within
1 % of ten for nine runs in ten, and within 6 % for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The requests that are simulated, and how many the run itself had."""

    requests: Requests
    num_requests: int  # of the run itself


def traffic_of(service: Service, workload: Workload) -> Traffic | Infeasible:
    """The requests of a run: all at once, from clients that ask again once they are answered, or by a Poisson law."""
    requested = _num_requests(service, workload)
    if isinstance(requested, Infeasible):
        return requested
    count, stated = requested
    clients = min(workload.concurrency, count) if workload.mode == "closed" else 0
    requests = Requests(
        arrive_s=_arrivals(workload, count, clients),
        input_tokens=_lengths(workload.input_tokens, workload.input_tokens_std, count, "lengths/input"),
        output_tokens=_lengths(workload.output_tokens, workload.output_tokens_std, count, "lengths/output"),
        after=np.maximum(np.arange(count) - clients, -1) if clients else NONE,
    )
    if workload.num_distinct_prompts:
        block_tokens = service.pools[0].deployment.engine.block_tokens
        requests = repeated(requests, workload.num_distinct_prompts, block_tokens)
    return Traffic(requests=requests, num_requests=stated)


def _num_requests(service: Service, workload: Workload) -> tuple[int, int] | Infeasible:
    """How many requests are simulated, and how many the run had."""
    if workload.mode == "closed":
        count = workload.num_requests or REQUESTS_PER_SLOT * workload.concurrency
        return count, count
    if workload.mode == "open":
        stated = workload.num_requests or ENDLESS
        return min(stated, MOST), stated
    pool = service.pools[0]
    memory = memory_of(pool.deployment)
    if isinstance(memory, Infeasible):
        return memory
    limit = batch_limit(pool.deployment, memory, workload.input_tokens, workload.output_tokens)
    together = round(limit * pool.deployment.layout.dp * pool.replicas)
    stated = workload.num_requests or REQUESTS_PER_SLOT * together
    return min(stated, max(STEADY_ROUNDS * together, FEWEST)), stated


def _arrivals(workload: Workload, count: int, clients: int) -> Floats:
    """Poisson arrivals; all at once; or, for each client, the time until its next request is on its way."""
    if workload.mode == "open":
        return arrivals("poisson", count, workload.request_rate_per_s, SEED)
    if not clients:
        return np.zeros(count)
    pause_s = stream(SEED, "clients").exponential(CLIENT_PAUSE_S, count)
    pause_s[:clients].sort()
    return pause_s


def _lengths(mean: float, std: float, count: int, name: str) -> Ints:
    """Lengths around their mean: all between two bounds where the deviation allows it, else with a long tail."""
    mean = max(mean, 1.0)
    ratio = sqrt(3.0) * std / mean
    length = Length(mean_tokens=mean, std_tokens=std)
    if ratio < 1.0:
        length = Length(mean_tokens=mean, law="uniform" if ratio else "constant", range_ratio=ratio)
    return draw(length, count, stream(SEED, name))


@dataclass(frozen=True, kw_only=True, eq=False)
class Ran:
    """A simulated run and what was asked of it; every metric of the schema is read off here."""

    service: Service
    workload: Workload
    traffic: Traffic
    simulated: Simulated
    memories: tuple[Memory, ...]

    @cached_property
    def times(self) -> Latencies:
        """The times of each request."""
        return latencies(self.simulated)

    @cached_property
    def doubt(self) -> ExtrapolationShare:
        """Evidence behind a usual step of the run."""
        deployment, memory = self.service.pools[-1].deployment, self.memories[-1]
        sequences = max(1.0, self._running / max(1, self.simulated.num_machines))
        prompt = min(max(1.0, self.workload.input_tokens), float(memory.max_num_batched_tokens))
        both = steps_of(
            np.array([0.0, 1.0]),
            np.array([0.0, prompt]),
            np.array([0.0, self.workload.input_tokens]),
            np.array([sequences, 0.0]),
            np.array([self.workload.input_tokens + self.workload.output_tokens / 2, 0.0]),
        )
        return extrapolation_share(tick(deployment, both).done)

    @property
    def _running(self) -> float:
        """Sequences in a batch on average, of all machines."""
        return float(self.simulated.timeline[:, TIMELINE.index("running")].sum()) / self.simulated.duration_s

    @cached_property
    def duration_s(self) -> float:
        """Duration (s) of the whole run. One that was cut short goes on at the pace at which its middle half ended."""
        run, missing = self.simulated, self.traffic.num_requests - self.traffic.requests.count
        if missing <= 0 or self.workload.mode == "open":
            return run.duration_s
        ends = np.sort(self.times.finish_s)
        quarter = ends.size // 4
        return run.duration_s + missing * float(ends[3 * quarter] - ends[quarter]) / max(1, 2 * quarter)

    def value(self, metric: str) -> float:
        """A metric of the schema, plain (the mean over requests) or with a percentile."""
        base = base_metric(metric)
        if base in _OF_REQUESTS and not (base == "latency_s" and self.workload.mode == "offline"):
            return self._of_requests(base, _percent(metric))
        if base == "itl_s":
            return self._gap_s(_percent(metric))
        return self._of_run(base)

    def interval(self, metric: str, value: float) -> Interval | None:
        """Around a metric, by the factors of such runs; None where it is given, or nothing is known of its error."""
        base = base_metric(metric)
        if base == "decode_tokens_per_s":
            return self.ratios["tpot_s"].inverse().around(value)
        ratio = self.ratios.get("tpot_s" if base == "itl_s" else base)
        return None if ratio is None else ratio.around(value)

    @cached_property
    def ratios(self) -> Mapping[str, Spread]:
        """By metric, the ends of its interval over its value."""
        deployment = self.service.pools[-1].deployment
        kind = kind_of_run(deployment, self.workload.mode, len(self.service.pools))
        factors = factors_of(deployment, kind, self.doubt)
        return ratios_of(self.figures, factors, self.bounds)

    @cached_property
    def figures(self) -> Figures:
        """Identities between the run's metrics."""
        mode, outputs = self.workload.mode, float(self.times.output_tokens.mean())
        return Figures(
            ttft_s=self.value("ttft_s"),
            tpot_s=_number(self.value("tpot_s")),
            latency_s=self.value("latency_s"),
            requests_per_s=self.value("requests_per_s"),
            power_w=self.value("power_w"),
            steps=max(0.0, outputs - 1.0),
            waiting_s=self._waiting_s,
            load_frac=self._load_frac,
            is_one_request=mode != "offline",
        )

    @property
    def bounds(self) -> Bounds:
        """Bounds of the deployment that decodes; power (W) counts the boards of all pools."""
        pools = self.service.pools
        bounds = bounds_of(pools[-1].deployment, self.workload)
        count = [p.replicas * p.deployment.layout.num_devices for p in pools]
        devices = [p.deployment.cluster.device for p in pools]
        return replace(
            bounds,
            least_ttft_s=0.0 if len(pools) > 1 else bounds.least_ttft_s,
            least_power_w=sum(n * d.idle_power_w for n, d in zip(count, devices, strict=True)),
            most_power_w=sum(n * d.power_limit_w for n, d in zip(count, devices, strict=True)),
        )

    @property
    def _waiting_s(self) -> float:
        """Mean time that a request of a closed loop waits for a slot: those beyond all slots, by Little's law."""
        pool, requested = self.service.pools[-1], self.workload
        if requested.mode != "closed" or len(self.service.pools) > 1:
            return 0.0
        slots = batch_limit(pool.deployment, self.memories[-1], requested.input_tokens, requested.output_tokens)
        beyond = requested.concurrency - slots * pool.deployment.layout.dp * pool.replicas
        return max(0.0, beyond) / self.value("requests_per_s")

    @property
    def _load_frac(self) -> float:
        """Load of an open loop: arrivals over the highest rate that the closed forms say is served in time."""
        requested, pool = self.workload, self.service.pools[-1]
        if requested.mode != "open" or len(self.service.pools) > 1:
            return 0.0
        highest = highest_rate(pool.deployment, self.memories[-1], requested.input_tokens, requested.output_tokens)
        return requested.request_rate_per_s / pool.replicas / highest

    def _of_requests(self, metric: str, percent: float | None) -> float:
        values = self.times.ttft_s if metric == "ttft_s" else self.times.long_tpot_s
        if metric == "latency_s":
            values = self.times.e2el_s
        if not values.size:
            return float("nan")
        return float(values.mean() if percent is None else np.percentile(values, percent))

    def _gap_s(self, percent: float | None) -> float:
        run = self.simulated
        found = from_gaps(run.gap_counts, run.gap_sum_s, run.gap_squares_s2, () if percent is None else (percent,))
        return found.mean_s if percent is None else float(found.percentiles_s[0])

    def _per_s(self, each: float) -> float:
        done = self.times.finish_s.size + self.traffic.num_requests - self.traffic.requests.count
        if self.workload.mode == "open":
            done = self.times.finish_s.size
        return done * each / self.duration_s

    def _of_run(self, metric: str) -> float:
        run, inputs = self.simulated, float(self.traffic.requests.input_tokens.mean())
        outputs = float(self.times.output_tokens.mean())
        match metric:
            case "latency_s":
                return self.duration_s
            case "requests_per_s":
                return self._per_s(1.0)
            case "output_tokens_per_s":
                return self._per_s(outputs)
            case "total_tokens_per_s":
                return self._per_s(inputs + outputs)
            case "decode_tokens_per_s":
                return self._running / self.value("tpot_s")
            case "power_w":
                return run.energy_j / run.duration_s
            case "kv_cache_tokens":
                return self._cache_tokens
            case _:
                return self._peak_memory_bytes

    @property
    def _cache_tokens(self) -> float:
        pools = zip(self.memories, self.service.pools, strict=True)
        return sum(m.kv_capacity_tokens * p.deployment.layout.dp * p.replicas for m, p in pools)

    @property
    def _peak_memory_bytes(self) -> float:
        """Bytes on the fullest device: all that the engine reserves, or what was filled at the fullest moment."""
        memory, engine = self.memories[-1], self.service.pools[-1].deployment.engine
        if engine.reserves_cache:
            return memory.usable_bytes
        run = self.simulated
        widths_s = np.diff(run.timeline_s)
        filled = float((run.timeline[:, TIMELINE.index("kv_bytes")] / widths_s).max()) / run.num_machines
        return memory.usable_bytes - memory.kv_capacity_bytes + min(filled, memory.kv_capacity_bytes)


_OF_REQUESTS = ("ttft_s", "tpot_s", "latency_s")


def _number(value: float) -> float:
    """A mean over no requests is nothing."""
    return value if isfinite(value) else 0.0


def _percent(metric: str) -> float | None:
    """99.0 for ``ttft_s_p99``; None for a mean."""
    base = base_metric(metric)
    return float(metric[len(base) + 2 :]) if metric != base else None


def run(service: Service, workload: Workload) -> Ran | Infeasible:
    """Serve the traffic of ``workload``; Infeasible where a pool has no room for the model or for one request."""
    memories = memories_of(service)
    if isinstance(memories, Infeasible):
        return memories
    traffic = traffic_of(service, workload)
    if isinstance(traffic, Infeasible):
        return traffic
    found = simulate(service, traffic.requests, seed=SEED)
    if isinstance(found, Infeasible):
        return found
    return Ran(service=service, workload=workload, traffic=traffic, simulated=found, memories=memories)
