"""Sensitivity of an estimate: the same question with one setting at a time changed."""

from collections.abc import Mapping
from typing import Any

from orrery.reports.changes import Changes, Figures, between_ends, end, farthest, swung
from orrery.reports.plan_swings import MEMORY_STEP_FRAC, OWN_ERROR
from orrery.reports.report import Input, Metric, Sensitivity
from orrery.reports.words import format_value
from orrery.scenario.ask import Answer, estimate
from orrery.scenario.schema import Scenario, merged

TOLD = (
    "Each bar answers the same question with one input changed and all others kept; every point is the closed form "
    "again (means in a steady state).",
)

METRICS = (
    Metric(name="usd_per_million_tokens", label="Dollars per million output tokens", unit="usd"),
    Metric(name="output_tokens_per_s", label="Output tokens/s", unit="tokens_per_s"),
    Metric(name="ttft_s", label="Time to first token", unit="s"),
    Metric(name="tpot_s", label="Time per output token", unit="s"),
)

EXAMPLE_USD_PER_KWH = 0.1
"""An example for who pays electricity apart; rented devices' prices have it inside."""

LOADS = ("batch", "concurrency", "rate")


def figures_of(answer: Answer) -> dict[str, float]:
    """Figures that inputs move."""
    e = answer.estimate
    found = {
        "usd_per_million_tokens": answer.usd_per_million_tokens,
        "output_tokens_per_s": e.output_tokens_per_s,
        "ttft_s": e.ttft_s,
        "tpot_s": e.tpot_s,
    }
    return {name: value for name, value in found.items() if value is not None}


def asker(scenario: Scenario) -> Figures:
    """The figures of the scenario with some settings changed; whole numbers where the setting counts."""

    def figures(changes: Changes) -> Mapping[str, float] | str:
        found = estimate(merged(scenario, whole(changes)))
        return figures_of(found) if isinstance(found, Answer) else str(found.infeasible)

    return figures


def whole(changes: Changes) -> dict[str, Any]:
    """Counts as counts."""
    return {
        k: round(v) if k in ("input_tokens", "output_tokens", "batch", "concurrency") else v for k, v in changes.items()
    }


def sensitivity(scenario: Scenario, answer: Answer) -> Sensitivity:
    """Every input in turn, the model's own error, and how far it holds."""
    base, figures = figures_of(answer), asker(scenario)
    inputs = [*_load(scenario, answer, figures), *_money(scenario, answer, figures), *_own_error(answer, base)]
    metrics = tuple(m for m in METRICS if base.get(m.name))
    return Sensitivity(summary=TOLD, metrics=metrics, base=base, inputs=tuple(inputs), flips=_flips(scenario, answer))


def _load(scenario: Scenario, answer: Answer, figures: Figures) -> list[Input]:
    w, d = answer.question.workload, answer.question.deployment
    out = [swung("input length", "input_tokens", w.input_tokens, "tokens", figures)]
    if w.output_tokens > 1:
        out.append(swung("output length", "output_tokens", w.output_tokens, "tokens", figures))
    if w.mode == "open":
        out.append(swung("arrivals", "rate", w.request_rate_per_s, "requests_per_s", figures))
    for name, words in (("batch", "size of the batch"), ("concurrency", "requests in flight")):
        if (value := getattr(scenario, name)) is not None and value > 1:
            out.append(swung(words, name, float(value), "", figures))
    frac = d.memory_utilization_frac or d.engine.memory_utilization_frac
    ends = (frac - MEMORY_STEP_FRAC, min(frac + MEMORY_STEP_FRAC, 0.98))
    return [*out, between_ends("memory that the engine may fill", "gpu_memory_utilization", ends, "frac", figures)]


def _money(scenario: Scenario, answer: Answer, figures: Figures) -> list[Input]:
    tariff = answer.tariff
    if not tariff.usd_per_hour:
        return []
    out = [swung("price of a device-hour", "usd_per_hour", tariff.usd_per_hour, "usd", figures)]
    if tariff.electricity_usd_per_kwh:
        out.append(swung("electricity, per kWh", "electricity", tariff.electricity_usd_per_kwh, "usd", figures))
    elif scenario.usd_per_hour is not None:
        ends = (0.0, EXAMPLE_USD_PER_KWH)
        out.append(between_ends("electricity on top, per kWh", "electricity", ends, "usd", figures))
    return out


def _own_error(answer: Answer, base: Mapping[str, float]) -> list[Input]:
    """The 80 % interval of each figure as one bar."""
    around: dict[str, tuple[float, float]] = {}
    for name, interval in answer.estimate.intervals.items():
        if name in ("ttft_s", "tpot_s"):
            around[name] = (interval.high_80, interval.low_80)
        elif name == "output_tokens_per_s":
            around[name] = (interval.low_80, interval.high_80)
            if usd := base.get("usd_per_million_tokens"):
                rate = answer.estimate.output_tokens_per_s
                around["usd_per_million_tokens"] = (usd * rate / interval.low_80, usd * rate / interval.high_80)
    if not around:
        return []
    slow, fast = ({name: ends[i] for name, ends in around.items() if name in base} for i in (0, 1))
    return [Input(name=OWN_ERROR, low=end("slow end", lambda _: slow, {}), high=end("fast end", lambda _: fast, {}))]


def _flips(scenario: Scenario, answer: Answer) -> tuple[str, ...]:
    """Tipping points: arrivals that leave as fast, requests whose caches fit, and lengths."""
    w, e, out = answer.question.workload, answer.estimate, list[str]()
    dp = answer.question.deployment.layout.dp
    each = w.input_tokens + w.output_tokens
    fit = e.memory.sequences(each) * dp
    if fit < float("inf"):
        out.append(
            f"The cache holds {fit:,.0f} such requests at once ({each:,.0f} tokens each); "
            f"{e.concurrency:,.3g} are in flight. Beyond that, requests wait."
        )

    def holds(key: str, value: float) -> bool:
        return not end("", asker(scenario), {key: value}).infeasible

    if w.mode == "open":
        top = farthest(lambda ratio: holds("rate", w.request_rate_per_s * ratio))
        if top is not None:
            out.append(
                f"It keeps up with {format_value(w.request_rate_per_s * top, 'requests_per_s')}, {top:.3g} times what "
                "arrives; beyond that the queue grows without end."
            )
    most = farthest(lambda ratio: holds("input_tokens", w.input_tokens * ratio))
    if most is not None:
        out.append(
            f"Prompts may be {format_value(round(w.input_tokens * most), 'tokens')} long; beyond that there is no "
            "answer: they do not fit, or arrive faster than they leave."
        )
    return tuple(out)
