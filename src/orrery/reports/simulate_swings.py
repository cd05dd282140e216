"""Sensitivity of a simulated answer: small simulations with one setting at a time changed."""

from collections.abc import Mapping
from typing import Any

from orrery.base.errors import OrreryError
from orrery.planner.money import tariff_of
from orrery.reports.changes import Changes, Figures, between_ends, end, swung
from orrery.reports.plan_swings import MEMORY_STEP_FRAC
from orrery.reports.report import Input, Metric, Sensitivity
from orrery.reports.words import format_value
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.capacity import Capacity, find_capacity
from orrery.scenario.requests import DEFAULT_REQUESTS
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.service import service_for
from orrery.scenario.simulate import SimulatedAnswer, simulate

SMALL = 1000
"""Requests of one of the many runs; the answer itself may have more."""

METRICS = (
    Metric(name="usd_per_million_tokens", label="Dollars per million output tokens", unit="usd"),
    Metric(name="p99_ttft_s", label="Time to first token, P99", unit="s"),
    Metric(name="p99_tpot_s", label="Time per output token, P99", unit="s"),
    Metric(name="slo_attainment", label="Requests within the objectives", unit="frac"),
    Metric(name="output_throughput", label="Output tokens/s", unit="tokens_per_s"),
)
CAPACITY = (
    Metric(name="capacity_requests_per_s", label="Requests/s that it takes", unit="requests_per_s"),
    *METRICS[:1],
)

COUNTS = ("input_tokens", "output_tokens", "concurrency", "seed", "prefix_tokens", "prefix_groups")


def small(scenario: Scenario) -> Scenario:
    """The scenario with few enough requests to be simulated many times."""
    return merged(scenario, {"num_requests": min(scenario.num_requests or DEFAULT_REQUESTS, SMALL)})


def asker(scenario: Scenario) -> Figures:
    """The figures of a small run with some settings changed."""

    def figures(changes: Changes) -> Mapping[str, float] | str:
        found = simulate(merged(scenario, _plain(changes)))
        return figures_of(found.to_json()) if isinstance(found, SimulatedAnswer) else str(found.infeasible)

    return figures


def capacity_asker(scenario: Scenario) -> Figures:
    """The highest rate, searched again by small runs."""

    def figures(changes: Changes) -> Mapping[str, float] | str:
        found = find_capacity(merged(scenario, _plain(changes)))
        if isinstance(found, InfeasibleAnswer):
            return str(found.infeasible)
        return figures_of(found.to_json()) | {"capacity_requests_per_s": found.requests_per_s}

    return figures


def figures_of(plain: Mapping[str, Any]) -> dict[str, float]:
    """Figures that inputs move, latencies in seconds."""
    found = {m.name: plain.get(m.name) for m in METRICS}
    found |= {f"p99_{n}_s": None if (v := plain.get(f"p99_{n}_ms")) is None else v / 1e3 for n in ("ttft", "tpot")}
    return {name: value for name, value in found.items() if value is not None}


def _plain(changes: Changes) -> dict[str, Any]:
    return {k: round(v) if k in COUNTS else v for k, v in changes.items()}


def sensitivity(scenario: Scenario, plain: Mapping[str, Any]) -> Sensitivity | None:
    """Every input in turn; None where the base itself cannot be run small."""
    one = small(scenario)
    figures = asker(one)
    base = end("", figures, {})
    if base.infeasible or not base.values:
        return None
    metrics = tuple(m for m in METRICS if base.values.get(m.name))
    summary = (
        f"Each bar simulates {one.num_requests:,} requests again with one input changed and all others kept, the seed "
        "too; the base is such a small run as well, so that like is compared with like.",
        "The bar 'chance' is the same question with other random arrivals and lengths: what is smaller may be luck.",
    )
    return Sensitivity(
        summary=summary,
        metrics=metrics,
        base=base.values,
        inputs=tuple(_inputs(one, figures, plain)),
        flips=_flips(one),
    )


def capacity_sensitivity(scenario: Scenario) -> Sensitivity | None:
    """Sensitivity of the highest rate; every point is a search by small simulations."""
    one = _without_rate(small(scenario))
    figures = capacity_asker(one)
    base = end("", figures, {})
    if base.infeasible or not base.values:
        return None
    metrics = tuple(m for m in CAPACITY if base.values.get(m.name))
    summary = (
        f"Each bar searches the highest rate again with one input changed, by simulations of {one.num_requests:,} "
        "requests; the base is searched the same way.",
    )
    return Sensitivity(summary=summary, metrics=metrics, base=base.values, inputs=tuple(_inputs(one, figures, None)))


def _without_rate(scenario: Scenario) -> Scenario:
    return merged(None, {k: v for k, v in scenario.written().items() if k != "rate"})


def _inputs(one: Scenario, figures: Figures, plain: Mapping[str, Any] | None) -> list[Input]:
    """List the inputs that may vary; without a run there are no arrivals, as a search finds its own."""
    out: list[Input] = []
    rate = 0.0 if plain is None else one.rate if one.rate is not None else _trace_rate(one, plain)
    if one.concurrency is not None:
        out.append(swung("requests in flight", "concurrency", float(one.concurrency), "", figures))
    elif rate:
        out.append(swung("arrivals", "rate", rate, "requests_per_s", figures))
    for key, name in (("input_tokens", "input length"), ("output_tokens", "output length")):
        if one.trace is None and (value := getattr(one, key)) is not None:
            out.append(swung(name, key, float(value), "tokens", figures))
    out += _sharing(one, figures)
    frac = one.gpu_memory_utilization or _own_frac(one)
    ends = (frac - MEMORY_STEP_FRAC, min(frac + MEMORY_STEP_FRAC, 0.98))
    out.append(between_ends("memory that the engine may fill", "gpu_memory_utilization", ends, "frac", figures))
    if price := _price(one):
        out.append(swung("price of a device-hour", "usd_per_hour", price, "usd", figures))
    seed = one.seed or 0
    out.append(
        Input(
            name="chance",
            low=end("other draw", figures, {"seed": seed + 1}),
            high=end("another", figures, {"seed": seed + 2}),
        )
    )
    return out


def _trace_rate(one: Scenario, plain: Mapping[str, Any]) -> float:
    stated = plain.get("request_rate")
    return float(stated) if one.trace is not None and isinstance(stated, int | float) else 0.0


def _sharing(one: Scenario, figures: Figures) -> list[Input]:
    """Half of each prompt shared by all: what a common system prompt would do."""
    kinds = (one.trace, one.turns, one.calls, one.prefix_tokens)
    if any(k is not None for k in kinds) or (one.input_tokens or 0) < 2 or one.input_tokens is None:
        return []
    half = one.input_tokens // 2
    shared = {"prefix_tokens": float(half), "prefix_groups": 1.0, "input_tokens": float(one.input_tokens - half)}
    return [
        Input(
            name="shared prompt beginnings",
            low=end("none", figures, {}),
            high=end("half of each", figures, shared),
        )
    ]


def _own_frac(one: Scenario) -> float:
    return service_for(one)[0].pools[-1].deployment.engine.memory_utilization_frac


def _price(one: Scenario) -> float | None:
    devices = {p.deployment.cluster.device.name: p.deployment.cluster.device for p in service_for(one)[0].pools}
    if one.usd_per_hour is None and len(devices) > 1:
        return None  # several devices, several prices
    return tariff_of(next(iter(devices.values())), one.usd_per_hour, one.electricity).usd_per_hour


def _flips(one: Scenario) -> tuple[str, ...]:
    """The rate and the lengths at which the objectives no longer hold."""
    if not one.slo or one.concurrency is not None:
        return ()
    try:
        found = find_capacity(_without_rate(one))
    except OrreryError as error:
        return (f"How much more it takes was not found: {error}",)
    if not isinstance(found, Capacity):
        return (f"Even a trickle of requests misses the objectives: {found.infeasible}",)
    requested = f", {found.requests_per_s / one.rate:.3g} times what arrives" if one.rate else ""
    out = [
        f"The objectives hold up to {format_value(found.requests_per_s, 'requests_per_s')}{requested} (searched with "
        f"{one.num_requests:,} requests); beyond that, the limit is {found.limited_by}."
    ]
    for key, name in (("input_tokens", "prompts"), ("output_tokens", "answers")):
        value = getattr(one, key)
        if one.trace is None and value and one.rate and found.requests_per_s >= one.rate:
            out.append(_length(one, key, name, float(value)))
    return tuple(out)


MAX_DOUBLINGS, HALVINGS = 5, 4


def _length(one: Scenario, key: str, name: str, value: float) -> str:
    """How long requests may become at the same rate, by doubling and then halving the gap."""
    low, high = 1.0, 2.0
    for _ in range(MAX_DOUBLINGS):
        if not _met(one, {key: value * high}):
            break
        low, high = high, 2.0 * high
    else:
        return f"{name.capitalize()} may be {low:.0f} times as long and the objectives still hold."
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _met(one, {key: value * middle}) else (low, middle)
    return (
        f"At this rate the objectives hold with {name} of {format_value(round(value * low), 'tokens')} and "
        f"no longer with "
        f"{format_value(round(value * high), 'tokens')} (now {format_value(value, 'tokens')})."
    )


def _met(one: Scenario, changes: Changes) -> bool:
    found = simulate(merged(one, _plain(changes)))
    return isinstance(found, SimulatedAnswer) and found.attained.is_met
