"""One configuration, one answer: speed, memory, power, what limits it, and how sure we are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from orrery.base.cost import Cost, Interval
from orrery.base.errors import ScenarioError
from orrery.execution.compression import compressed
from orrery.execution.explain import explain, limit_of
from orrery.execution.kept_cache import NOTHING, kept_tokens
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory, memory_of
from orrery.execution.power import steps_draws, steps_power_w
from orrery.execution.whole_prompts import in_one_pass
from orrery.serving import online, runs, saturation
from orrery.serving.clock import Ticks
from orrery.serving.decoding import decoding
from orrery.serving.drafted import drafted, in_steps
from orrery.serving.extrapolation import bounds_of, extrapolation_share, factors_of, kind_of_run, notes_of
from orrery.serving.host_turn import turn_notes
from orrery.serving.intervals import Figures, joint
from orrery.serving.steady import Steady
from orrery.serving.workload import Workload, loop_requests


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """The steps that stand for a run: one that decodes, one that carries prompts, and how the time is shared."""

    ticks: Ticks
    decode_entry: int
    prompt_entry: int
    prompt_share: float  # of the time spent in steps that carry prompts
    busy_frac: float = 1.0  # of the time that a device has a step under way
    prompts_run_alone: bool = False  # a step with prompts is two: the prompts', then the decodes'

    def unfold(self, deployment: Deployment, entry: int, name: str) -> Cost:
        """One of the steps as a tree of costs."""
        time_s = float(self.ticks.time_s[entry])
        energy_j = steps_power_w(deployment, self.ticks.done, self._entries(entry), time_s) * time_s
        return explain(deployment, self.ticks.done, entry, name, energy_j)

    def limit(self) -> str:
        """The largest part of the time: the host where it is slower than the device, else a resource of the device."""
        entry = self.prompt_entry if self.prompt_share > 0.5 else self.decode_entry
        is_host = self.ticks.host_s[entry] > self.ticks.done.time_s[entry]
        return "host" if is_host else limit_of(self.ticks.done, entry)

    def power_w(self, deployment: Deployment) -> float:
        """Mean power of one device over the run; without a step it idles."""
        return self.draw(deployment)[0]

    def draw(self, deployment: Deployment) -> tuple[float, bool]:
        """The same, and whether the steps that take most of the time ask for more than a device may draw."""
        idle_w, shares = deployment.cluster.device.idle_power_w, self._shares()
        draws = steps_draws(
            deployment, self.ticks.done, [(self._entries(e), float(self.ticks.time_s[e])) for e, _ in shares]
        )
        busy_w = sum(share * power_w for (_, share), (power_w, _) in zip(shares, draws, strict=True))
        _, demand_frac = draws[shares[1][1] > shares[0][1]]
        return idle_w + self.busy_frac * (busy_w - idle_w), demand_frac > 1.0

    def _entries(self, entry: int) -> tuple[int, ...]:
        """The steps whose work is done in the time of one."""
        return (entry, self.decode_entry) if self.prompts_run_alone and entry == self.prompt_entry else (entry,)

    def _shares(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """The two steps, and the share of the busy time that each takes."""
        return (self.decode_entry, 1.0 - self.prompt_share), (self.prompt_entry, self.prompt_share)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """Performance of a deployment under a workload. Rates are of the whole deployment, times are means."""

    ttft_s: float
    tpot_s: float
    latency_s: float  # of one request; of the whole batch in a static run; of the whole run offline
    requests_per_s: float
    output_tokens_per_s: float
    total_tokens_per_s: float
    concurrency: float
    num_devices: int
    memory: Memory
    peak_memory_bytes: float
    power_w: float  # all devices together
    host_power_w: float  # of the machines around them, fans and all: in no other number here
    energy_j_per_token: float  # of the devices, per output token (per token where nothing is put out)
    energy_j_per_token_with_host: float
    rate_used_frac: float  # of the rate that it sustains; 1 where the run is at it
    bound_by: str
    intervals: Mapping[str, Interval]
    own_notes: tuple[str, ...]  # what was known with the numbers; ``notes`` has all
    deployment: Deployment
    workload: Workload
    steps: Steps  # the steps behind the answer; ``cost`` and ``prefill_cost`` unfold them

    @property
    def notes(self) -> tuple[str, ...]:
        """Reservations beside the numbers; where a host decides the run, also in which steps, worked out when asked."""
        if self.bound_by != "host":
            return self.own_notes
        prompt, context = self.workload.input_tokens, self.workload.input_tokens + self.workload.output_tokens / 2.0
        return (*self.own_notes, *turn_notes(self.deployment, prompt, context))

    @property
    def cost(self) -> Cost:
        """One decode step on one device, down to the facts."""
        return self.steps.unfold(self.deployment, self.steps.decode_entry, "decode step")

    @property
    def decode_step_s(self) -> float:
        """A step that only decodes: the time per output token of a batch whose prompts are all computed."""
        return float(self.steps.ticks.time_s[self.steps.decode_entry])

    @property
    def prefill_cost(self) -> Cost:
        """One step that carries prompt tokens, down to the facts."""
        return self.steps.unfold(self.deployment, self.steps.prompt_entry, "prefill step")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Answer:
    """Answer of a mode, before power, intervals and reasons are added."""

    ttft_s: float
    tpot_s: float
    latency_s: float
    requests_per_s: float
    concurrency: float
    steps: Steps
    waiting_s: float = 0.0  # of the time to the first token: for a slot
    load_frac: float = 0.0  # of an open loop: arrivals over the highest rate that is served in time
    notes: tuple[str, ...] = ()


def estimate(deployment: Deployment, workload: Workload) -> Estimate | Infeasible:
    """Answer one workload; Infeasible where the model does not fit, or more arrives than can leave."""
    if workload.mode == "static" and deployment.engine.runs_modules:
        each = max(1.0, (workload.batch_size or 1) / deployment.layout.dp)
        deployment = in_one_pass(deployment, each, workload.input_tokens)
    memory = memory_of(deployment)
    if isinstance(memory, Infeasible):
        return memory
    if workload.pool == "prefill":
        workload = replace(workload, output_tokens=1.0, output_tokens_std=0.0)
    steps = drafted(deployment, memory, workload.input_tokens, workload.output_tokens)
    rule = _decoding if workload.pool == "decode" else _ANSWERS[workload.mode]
    answer = rule(steps.deployment, steps.memory, in_steps(steps, workload))
    if isinstance(answer, Infeasible):
        return answer
    return _finish(deployment, memory, workload, replace(answer, tpot_s=answer.tpot_s / steps.tokens_per_step))


def _static(deployment: Deployment, memory: Memory, workload: Workload) -> _Answer:
    batch = float(_positive(workload.batch_size, "batch", workload))
    run = runs.static_run(
        deployment, memory, max(1.0, batch / deployment.layout.dp), workload.input_tokens, workload.output_tokens
    )
    return _Answer(
        ttft_s=run.ttft_s,
        tpot_s=run.tpot_s,
        latency_s=run.latency_s,
        requests_per_s=batch / run.latency_s,
        concurrency=run.batch * deployment.layout.dp,
        steps=Steps(
            ticks=run.ticks,
            decode_entry=1,
            prompt_entry=3,
            prompt_share=run.prompt_share,
            busy_frac=busy_frac(deployment, run.batch * deployment.layout.dp, is_open=False),
        ),
    )


def _offline(deployment: Deployment, memory: Memory, workload: Workload) -> _Answer:
    limit = runs.batch_limit(deployment, memory, workload.input_tokens, workload.output_tokens)
    replicas = deployment.layout.dp
    num_requests = float(workload.num_requests or 10 * limit * replicas)
    run = runs.offline_run(
        deployment, memory, max(1.0, num_requests / replicas), workload.input_tokens, workload.output_tokens
    )
    return _Answer(
        ttft_s=run.ttft_s,
        tpot_s=run.tpot_s,
        latency_s=run.latency_s,
        requests_per_s=num_requests / run.latency_s,
        concurrency=run.batch * replicas,
        steps=steps_in(deployment, run.state, busy_frac(deployment, run.batch * replicas, is_open=False)),
    )


def _closed(deployment: Deployment, memory: Memory, workload: Workload) -> _Answer:
    concurrency = np.array([float(_positive(workload.concurrency, "concurrency", workload))])
    points = online.sweep(
        deployment,
        memory,
        workload.input_tokens,
        workload.output_tokens,
        concurrency,
        float(workload.num_requests or loop_requests(workload.concurrency)),
        workload.output_tokens_std,
    )
    return _online(deployment, workload, points, saturation.waiting_notes(memory, points.state, deployment.layout.dp))


def _open(deployment: Deployment, memory: Memory, workload: Workload) -> _Answer | Infeasible:
    rate = _positive(workload.request_rate_per_s, "rate", workload)
    points = online.at_rate(
        deployment, memory, workload.input_tokens, workload.output_tokens, rate, float(workload.num_requests)
    )
    if isinstance(points, Infeasible):
        return points
    highest = points.highest_requests_per_s
    return _online(deployment, workload, points, saturation.notes_near(rate, highest), rate / highest)


def _decoding(deployment: Deployment, memory: Memory, workload: Workload) -> _Answer | Infeasible:
    """A pool that only decodes."""
    found = decoding(deployment, memory, workload)
    if isinstance(found, Infeasible):
        return found
    replicas, is_open = deployment.layout.dp, workload.mode == "open"
    load_frac = found.requests_per_s / found.highest_requests_per_s if is_open else 0.0
    life_s = found.first_s + max(0.0, workload.output_tokens - 2.0) * found.step_s
    if workload.mode == "static":
        life_s = workload.batch_size / found.requests_per_s
    running = found.sequences * replicas
    return _Answer(
        ttft_s=found.first_s,
        tpot_s=found.step_s,
        latency_s=life_s,
        requests_per_s=found.requests_per_s,
        concurrency=found.requests_per_s * life_s if is_open else float(workload.batch_size or workload.concurrency),
        steps=Steps(
            ticks=found.ticks,
            decode_entry=0,
            prompt_entry=0,
            prompt_share=0.0,
            busy_frac=busy_frac(deployment, running, is_open=is_open),
        ),
        waiting_s=found.queue_s,
        load_frac=load_frac,
        notes=saturation.notes_near(found.requests_per_s, found.highest_requests_per_s) if is_open else (),
    )


def _online(
    deployment: Deployment, workload: Workload, points: online.Points, notes: tuple[str, ...], load_frac: float = 0.0
) -> _Answer:
    state = points.state
    ttft_s, tpot_s = float(points.ttft_s[0]), float(points.tpot_s[0])
    return _Answer(
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        latency_s=ttft_s + max(0.0, workload.output_tokens - 1) * tpot_s,
        requests_per_s=float(points.requests_per_s[0]),
        concurrency=float(points.concurrency[0]),
        steps=steps_in(
            deployment,
            state,
            busy_frac(deployment, float(points.concurrency[0]), is_open=workload.mode == "open"),
        ),
        load_frac=load_frac,
        notes=notes,
        waiting_s=float(state.queue_s[0]) if workload.mode == "closed" else 0.0,
    )


def steps_in(deployment: Deployment, state: Steady, busy: float) -> Steps:
    """The steps that stand for a steady state, at its highest concurrency; ``busy`` of the time one is under way."""
    return Steps(
        ticks=state.ticks,
        decode_entry=state.decode_entry,
        prompt_entry=state.prompt_entry,
        prompt_share=float(state.mixed_share[-1]),
        busy_frac=busy,
        prompts_run_alone=not deployment.engine.has_mixed_steps,
    )


def busy_frac(deployment: Deployment, concurrency: float, *, is_open: bool) -> float:
    """Share of the time that a device has a step under way, with so many requests in flight.

    Requests are dealt to replicas and, there, to pipeline stages. A fixed number keeps that many busy; of arrivals at
    random a stage holds a Poisson number, which is none for exp(-mean) of the time.
    """
    each = concurrency / (deployment.layout.dp * deployment.layout.pp)
    return 1.0 - exp(-each) if is_open else min(1.0, each)


_ANSWERS = {"static": _static, "offline": _offline, "closed": _closed, "open": _open}


def _positive(value: float, flag: str, workload: Workload) -> float:
    if value <= 0:
        raise ScenarioError(f"A {workload.mode} run needs --{flag} N with N > 0; got {value:g}.")
    return value


def _finish(deployment: Deployment, memory: Memory, workload: Workload, a: _Answer) -> Estimate:
    layout, done = deployment.layout, a.steps.ticks.done
    output_rate = a.requests_per_s * workload.made_tokens
    total_rate = a.requests_per_s * (workload.read_tokens + workload.made_tokens)
    device_w, is_throttled = a.steps.draw(deployment)
    power_w = layout.num_devices * device_w
    host_w = deployment.cluster.device.host_power_w * layout.num_devices
    values = {
        "ttft_s": a.ttft_s,
        "tpot_s": a.tpot_s,
        "latency_s": a.latency_s,
        "requests_per_s": a.requests_per_s,
        "output_tokens_per_s": output_rate,
        "total_tokens_per_s": total_rate,
        "power_w": power_w,
    }
    energy_j_per_token = power_w / (output_rate or total_rate)
    doubt = extrapolation_share(done)
    figures = Figures(
        ttft_s=a.ttft_s,
        tpot_s=a.tpot_s,
        latency_s=a.latency_s,
        requests_per_s=a.requests_per_s,
        power_w=power_w,
        steps=max(0.0, workload.output_tokens - 1.0),
        waiting_s=a.waiting_s,
        load_frac=a.load_frac,
        is_one_request=workload.mode != "offline",
    )
    factors = factors_of(deployment, kind_of_run(deployment, workload.mode), doubt)
    intervals = joint(
        values | {"energy_j_per_token": energy_j_per_token}, figures, factors, bounds_of(deployment, workload)
    )
    return Estimate(
        **values,
        concurrency=a.concurrency,
        num_devices=layout.num_devices,
        memory=memory,
        peak_memory_bytes=_peak_memory_bytes(deployment, memory, workload, a.concurrency / layout.dp),
        host_power_w=host_w,
        energy_j_per_token=energy_j_per_token,
        energy_j_per_token_with_host=(power_w + host_w) / (output_rate or total_rate),
        rate_used_frac=min(1.0, a.load_frac) if workload.mode == "open" else 1.0,
        bound_by=a.steps.limit(),
        intervals=intervals,
        own_notes=(
            *notes_of(deployment, doubt),
            *a.notes,
            *_throttled(deployment, is_throttled=is_throttled),
        ),
        deployment=deployment,
        workload=workload,
        steps=a.steps,
    )


def _throttled(deployment: Deployment, *, is_throttled: bool) -> tuple[str, ...]:
    """A word where the work would draw more than a device may."""
    if not is_throttled:
        return ()
    device = deployment.cluster.device
    return (
        f"Most steps ask for more power than the limit of a {device.name} ({device.power_limit_w:g} W): its clock "
        "drops. The times hold that, as far as kernels measured at the limit do.",
    )


def _peak_memory_bytes(deployment: Deployment, memory: Memory, workload: Workload, sequences: float) -> float:
    """Peak memory (bytes): all but the cache, plus the cache: whole where it is reserved, else what sequences fill."""
    if deployment.engine.reserves_cache:
        return memory.usable_bytes
    cut = deployment.compression
    tokens = kept_tokens(cut, round(workload.input_tokens)) + workload.output_tokens
    if cut == NOTHING:
        tokens = workload.input_tokens + workload.output_tokens
    each = compressed(memory.cache, cut).sequence_bytes(tokens)
    filled = min(sequences * each, memory.kv_capacity_bytes)
    return memory.usable_bytes - memory.kv_capacity_bytes + filled
