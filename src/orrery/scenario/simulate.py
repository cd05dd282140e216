"""Simulating a scenario: its traffic served step by step, and the answer in the words of ``vllm bench serve``."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.execution.memory import Infeasible, memory_of
from orrery.planner.money import BUSY_FRAC, tariff_of
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer, deployment_json
from orrery.scenario.attainment import Attained, attained
from orrery.scenario.draft_batching import check_ragged, ragged_way
from orrery.scenario.images import prompt_tokens
from orrery.scenario.levers.found import of_run
from orrery.scenario.levers.idle import NOTED_OF_RUNS, idle_notes
from orrery.scenario.objectives import percentile_limits, request_limits_s
from orrery.scenario.own_price import own_usd_per_hour
from orrery.scenario.requests import is_spread, requests_for
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.service import service_for
from orrery.serving.filling import Finetuned, finetuned
from orrery.serving.metrics import PERCENTILES, About, Summary, result_json, summary
from orrery.serving.mix import SPREAD_FRAC
from orrery.serving.online import highest_rate
from orrery.serving.ragged_run import serve_ragged
from orrery.serving.requests import Ints, Requests
from orrery.serving.saturation import notes_near
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.simulate import simulate as run
from orrery.serving.simulation.tables._kernel import SERVED as SERVED
from orrery.serving.simulation.world import NUM_COUNTS as NUM_COUNTS
from orrery.serving.simulation.world import Window

MAX_TOKENS = 100_000_000_000
"""Maximum tokens of all answers of one run: some twenty million are made in a second, so these take an hour or two."""

MAX_LOGGED_STEPS = 200_000
"""Rows of the log of single steps: enough for some minutes of a few replicas."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunObserver:
    """Observer of a run while it goes on: told of each phase, and free to read the loop's own counts meanwhile."""

    counts: Ints  # NUM_COUNTS of them, in memory that the reader sees too
    on_phase: Callable[[str, int, int], None]  # its name; requests and output tokens where it serves them


def served(counts: Ints) -> int:
    """How many requests have left, finished or refused."""
    return int(counts[SERVED])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedAnswer:
    """One simulated run: what was served, when, and the figures of it."""

    scenario: Scenario
    service: Service
    simulated: Simulated
    summary: Summary
    attained: Attained
    about: About
    seconds: float  # generation, simulation and metrics; imports and compilation are not in it
    notes: tuple[str, ...]

    @property
    def energy_j_per_output_token_with_host(self) -> float | None:
        """Energy (J) per output token of the devices and the machines around them."""
        each = self.summary.energy_j_per_output_token
        if each is None or not self.summary.power_w:
            return None
        return each * (1.0 + self.service.host_power_w / self.summary.power_w)

    @property
    def finetuned(self) -> Finetuned | None:
        """Rates of fine-tuning tokens that filled the steps."""
        return finetuned(self.service, self.simulated)

    def to_json(self, *, detailed: bool = False) -> dict[str, Any]:
        """The keys of ``vllm bench serve`` (milliseconds), then ours (SI); ``detailed`` adds a value a request."""
        found = result_json(self.simulated, self.summary, self.about, detailed)
        return (
            found
            | self.attained.to_json()
            | {
                "requests_simulated_per_s": self.simulated.requests.count / self.seconds,
                "num_steps": self.simulated.num_steps,
                "num_devices": self.service.num_devices,
                "host_power_w": self.service.host_power_w,
                "energy_j_per_output_token_with_host": self.energy_j_per_output_token_with_host,
                "deployment": to_json(deployment_json(self.service.pools[-1].deployment)),
                "settings": self.scenario.written(),
                "counters": self.simulated.counters,
                "finetuning": to_json(self.finetuned.to_json()) if self.finetuned else None,
                "notes": list(self.notes),
            }
        )


@typed
def simulate(
    scenario: Scenario | None = None,
    /,
    *,
    window: tuple[float, float] | None = None,
    patience: AbstractContextManager[object] | None = None,
    watch: RunObserver | None = None,
    **settings: Any,
) -> SimulatedAnswer | InfeasibleAnswer:
    """Serve a scenario's requests step by step, as its engine would.

    Settings are those of a scenario file; given beside a scenario they override it. Steps inside ``window`` (start and
    end in seconds) are kept one by one. ``patience`` is entered while the simulator is loaded. A ``watch`` changes
    nothing.
    """
    inputs = merged(scenario, settings)
    check_traffic(inputs)
    check_ragged(inputs)
    service, notes = service_for(inputs)
    if infeasible := lacking_memory(service):
        return InfeasibleAnswer(infeasible=infeasible, notes=notes, settings=inputs.written())
    tell = watch.on_phase if watch else _untold
    started = time.perf_counter()
    tell("generating", 0, 0)
    requests = requests_for(inputs)
    _check_length(requests)
    generated_s = time.perf_counter() - started
    with patience or nullcontext():
        warm_up(service)
    started = time.perf_counter() - generated_s
    tell("simulating", requests.count, int(requests.output_tokens.sum()))
    found = _served(inputs, service, requests, window, watch.counts if watch else None)
    if isinstance(found, Infeasible):
        return InfeasibleAnswer(infeasible=found, notes=notes, settings=inputs.written())
    tell("computing", 0, 0)
    answer = answer_of(
        inputs, service, found, (*notes, *requests.notes, *_spread_notes(inputs), *_load_notes(inputs, service))
    )
    given = inputs.written()
    answer = replace(answer, notes=(*answer.notes, *_swap_notes(answer), *_align_notes(answer)))
    idle = idle_notes(given, of_run(service, found, answer.summary, given), NOTED_OF_RUNS)
    return replace(answer, notes=(*answer.notes, *idle), seconds=time.perf_counter() - started)


def _spread_notes(scenario: Scenario) -> tuple[str, ...]:
    """Notes on randomness that nobody asked for."""
    if not any(is_spread(scenario, side) for side in ("input", "output")):
        return ()
    return (
        f"lengths: within {percent(SPREAD_FRAC)} of their mean, so that a closed loop's requests do not march in step; "
        "--lengths constant makes them equal",
    )


def _load_notes(scenario: Scenario, service: Service) -> tuple[str, ...]:
    """Load of the replicas as a share of their capacity, where arrivals have a steady rate."""
    pool, rate = service.pools[0], scenario.rate
    memory = memory_of(pool.deployment)
    if rate is None or scenario.concurrency is not None or scenario.trace is not None or pool.role != "all":
        return ()
    length = prompt_tokens(scenario)
    if isinstance(memory, Infeasible) or length is None or scenario.output_tokens is None:
        return ()
    highest = highest_rate(pool.deployment, memory, length, scenario.output_tokens) * pool.replicas
    return notes_near(rate, highest)


def _swap_notes(answer: SimulatedAnswer) -> tuple[str, ...]:
    """How often the next return from the host was guessed, where a predictor encrypts ahead."""
    counters = answer.simulated.counters
    if "swap_hit_frac" not in counters:
        return ()
    return (
        f"swap: {percent(counters['swap_hit_frac'])} of {counters['guessed_swaps']:.0f} returns from the host were "
        "guessed (the newest or the oldest there, whichever came first more often)",
    )


def _align_notes(answer: SimulatedAnswer) -> tuple[str, ...]:
    """Cost of bringing the sequences of one padded tensor to one length again."""
    counters = answer.simulated.counters
    if "align_overhead_frac" not in counters:
        return ()
    return (
        f"draft_batching: {percent(counters['align_overhead_frac'])} of the time beyond checking goes into aligning "
        f"sequences, in {counters['shifted_rounds']:.0f} of {counters['rounds']:.0f} rounds",
    )


def _untold(phase: str, num_requests: int, num_tokens: int) -> None:
    """Nobody looks."""


def read_window(text: str) -> tuple[float, float]:
    """A part of a run as people write it: START:END in seconds."""
    start, colon, end = text.partition(":")
    try:
        found = float(start or 0), float(end)
    except ValueError:
        found = (1.0, 0.0)
    if not colon or not 0 <= found[0] < found[1] < math.inf:
        raise ScenarioError(f"window: got {text!r}; write START:END in seconds, such as 10:20.")
    return found


def answer_of(
    scenario: Scenario, service: Service, simulated: Simulated, notes: tuple[str, ...], warmup_frac: float = 0.0
) -> SimulatedAnswer:
    """The figures of a run that has been simulated; the warm-up is left out of what is about single requests."""
    inputs = {p.percent for p in percentile_limits(scenario.slo)}
    figures = summary(simulated, request_limits_s(scenario.slo), sorted({*PERCENTILES, *inputs}), warmup_frac)
    tariffs = [
        (
            tariff_of(
                p.deployment.cluster.device,
                own_usd_per_hour(scenario, p.deployment.cluster.device.name),
                scenario.electricity,
            ),
            p.replicas * p.deployment.layout.num_devices,
        )
        for p in service.pools
    ]
    each = [t.usd_per_s(n, figures.power_w * n / service.num_devices) for t, n in tariffs]
    usd_per_s = None if any(x is None for x in each) else sum(x for x in each if x is not None)
    text = tuple(
        dict.fromkeys(
            (*notes, *simulated.notes, *(n for t, _ in tariffs for n in t.notes), *_idle_notes(simulated, usd_per_s))
        )
    )
    about = About(
        model_id=service.pools[0].deployment.model.name,
        request_rate_per_s=_rate(scenario, simulated),
        max_concurrency=scenario.concurrency,
        usd_per_s=usd_per_s,
    )
    return SimulatedAnswer(
        scenario=scenario,
        service=service,
        simulated=simulated,
        summary=figures,
        attained=attained(scenario, simulated, figures, warmup_frac),
        about=about,
        seconds=math.nan,
        notes=text,
    )


def _idle_notes(simulated: Simulated, usd_per_s: float | None) -> tuple[str, ...]:
    """A word beside dollars a token where most of the time nothing was computed."""
    if usd_per_s is None or simulated.idle_frac <= 1.0 - BUSY_FRAC:
        return ()
    return (f"price: $/M tokens counts idle time: no step ran for {percent(simulated.idle_frac)} of it",)


def _rate(scenario: Scenario, simulated: Simulated) -> float:
    """The rate that was asked for; a trace's own mean where none was."""
    if scenario.concurrency is not None:
        return math.inf
    if scenario.rate is not None or scenario.trace is None:
        return scenario.rate if scenario.rate is not None else math.inf
    last_s = float(simulated.requests.arrive_s.max())
    return (simulated.requests.count - 1) / last_s if last_s > 0 else math.inf


def _check_length(requests: Requests) -> None:
    """Refuse, before anything is prepared, what would take hours."""
    if (num_tokens := int(requests.output_tokens.sum())) > MAX_TOKENS:
        raise ScenarioError(
            f"{requests.count:,} requests with {num_tokens:.3g} output tokens would take hours; at most "
            f"{MAX_TOKENS:.3g} are simulated: write fewer (--num-requests) or shorter ones."
        )


def check_traffic(scenario: Scenario) -> None:
    """Refuse what a simulation has no use for."""
    if scenario.batch is not None:
        raise ScenarioError("batch: a simulation takes concurrency, rate or trace (none: all requests at once).")


def lacking_memory(service: Service) -> Infeasible | None:
    """The missing memory of the first pool that does not fit: known before anything is prepared."""
    found = (memory_of(pool.deployment) for pool in service.pools)
    return next((memory for memory in found if isinstance(memory, Infeasible)), None)


def warm_up(service: Service) -> None:
    """Load or compile the loop, so that a run's time is the run's."""
    one = Requests(arrive_s=np.zeros(1), input_tokens=np.ones(1, np.int64), output_tokens=np.ones(1, np.int64))
    found = run(service, one)
    if not isinstance(found, Infeasible):
        summary(found, {})


def _served(
    scenario: Scenario, service: Service, requests: Requests, window: tuple[float, float] | None, counts: Ints | None
) -> Simulated | Infeasible:
    if scenario.draft_batching is not None:
        return serve_ragged(
            service,
            requests,
            way=ragged_way(scenario, service),
            batch=scenario.concurrency or requests.count,
            pool=scenario.draft_pool or 0,
            seed=scenario.seed or 0,
        )
    rows = MAX_LOGGED_STEPS if window else 0
    start_s, end_s = window or (0.0, 0.0)
    return run(
        service,
        requests,
        concurrency=scenario.concurrency or 0,
        seed=scenario.seed or 0,
        window=Window(start_s=start_s, end_s=end_s, rows=rows),
        counts=counts,
    )
