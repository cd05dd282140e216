"""Sensitivity of a training answer: the layout kept, one input changed at a time."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from orrery.base.errors import OrreryError
from orrery.execution.train.layout import TrainingLayout
from orrery.reports.changes import Changes, Figures, end, swung
from orrery.reports.plan_swings import OWN_ERROR
from orrery.reports.report import Input, Metric, Sensitivity
from orrery.reports.words import format_value
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.train import TrainAnswer, train
from orrery.scenario.train_offload import OffloadAnswer

Trained = TrainAnswer | OffloadAnswer

TOLD = (
    "Each bar costs the same layout again, in closed form, with one input changed and all others kept. Halving and "
    "doubling keeps sizes that the layout can divide.",
)

METRICS = (
    Metric(name="usd", label="Dollars of the run", unit="usd"),
    Metric(name="days", label="Days of the run", unit="day"),
    Metric(name="usd_per_million_tokens", label="Cost ($/1M tokens)", unit="usd"),
    Metric(name="tokens_per_s", label="Tokens/s of all devices", unit="tokens_per_s"),
    Metric(name="step_time_s", label="Time of a step", unit="s"),
    Metric(name="peak_memory_bytes", label="Peak memory per device", unit="bytes"),
)

HALVED = (
    ("global_batch", "sequences in a step"),
    ("seq_len", "length of a sequence"),
    ("micro_batch", "size of a micro-batch"),
    ("storage_bytes_per_s", "what a node writes to storage"),
    ("node_mtbf_s", "time between failures of a node"),
    ("device_mtbf_s", "time between failures of a device"),
)
"""Settings that are halved and doubled."""

MAX_DOUBLINGS = 6


def kept_layout(scenario: Scenario, layout: TrainingLayout) -> Scenario:
    """The scenario with its layout written out, so that nothing is searched or taken by default."""
    fields: dict[str, Any] = {k: v for k, v in asdict(layout).items() if v or k == "is_sequence_parallel"}
    fields["sequence_parallel"] = fields.pop("is_sequence_parallel")
    if modules := fields.pop("recompute_modules", ()):
        fields["recompute"] = ",".join(modules)
    for name, unused in (
        ("schedule", layout.pp == 1),
        ("context_kind", layout.cp == 1),
        ("vp", layout.vp == 1),
        ("etp", layout.etp == 1),
    ):
        if unused:
            fields.pop(name, None)
    return merged(scenario, fields)


def figures_of(answer: Trained) -> dict[str, float]:
    """Figures that inputs move."""
    run = answer.run
    found = {
        "usd": run.usd if run else None,
        "days": run.days if run else None,
        "usd_per_million_tokens": answer.usd_per_million_tokens,
        "tokens_per_s": answer.tokens_per_s,
        "step_time_s": answer.step_time_s,
        "peak_memory_bytes": answer.peak_memory_bytes,
    }
    return {name: value for name, value in found.items() if value is not None}


def asker(scenario: Scenario) -> Figures:
    """The figures of the scenario with some settings changed."""

    def figures(changes: Changes) -> Mapping[str, float] | str:
        found = train(merged(scenario, changes))
        return str(found.infeasible) if isinstance(found, InfeasibleAnswer) else figures_of(found)

    return figures


def sensitivity(scenario: Scenario, answer: Trained) -> Sensitivity:
    """Every input in turn; ``scenario`` says the layout."""
    base, figures = figures_of(answer), asker(scenario)
    metrics = tuple(m for m in METRICS if base.get(m.name))
    inputs = [*_sizes(scenario, answer, figures), *_money(answer, figures), *_own_error(answer, base)]
    return Sensitivity(
        summary=TOLD, metrics=metrics, base=base, inputs=tuple(inputs), flips=tuple(_flips(scenario, answer))
    )


def _sizes(scenario: Scenario, answer: Trained, figures: Figures) -> list[Input]:
    out: list[Input] = []
    for key, name in HALVED:
        value = answer.layout.micro_batch if key == "micro_batch" else getattr(scenario, key)
        if value is None:
            continue
        is_count = isinstance(value, int)
        low, high = (value // 2 if is_count else value / 2), value * 2
        if is_count and value < 2:
            low = value
        unit = "s" if key.endswith("mtbf_s") else "bytes" if "bytes" in key else ""
        out.append(
            Input(
                name=name,
                low=end(format_value(low, unit), figures, {key: low}),
                high=end(format_value(high, unit), figures, {key: high}),
            )
        )
    return [*out, *_devices(answer, figures), *_recomputation(answer, figures)]


def _devices(answer: Trained, figures: Figures) -> list[Input]:
    """Half and twice the data-parallel copies, at the same global batch."""
    devices, dp = answer.job.cluster.num_devices, answer.layout.dp
    if answer.layout.sharding_group or answer.layout.ep > 1:
        return []
    more = {"devices": 2 * devices, "dp": 2 * dp}
    fewer = {"devices": devices // 2, "dp": dp // 2} if dp % 2 == 0 else {}
    low = fewer.get("devices", devices)
    return [Input(name="devices", low=end(f"{low:,}", figures, fewer), high=end(f"{2 * devices:,}", figures, more))]


def _recomputation(answer: Trained, figures: Figures) -> list[Input]:
    if isinstance(answer, OffloadAnswer):
        return []
    return [
        Input(
            name="recomputation",
            low=end("none", figures, {"recompute": "none", "recompute_layers": None}),
            high=end("full", figures, {"recompute": "full", "recompute_layers": None}),
        )
    ]


def _money(answer: Trained, figures: Figures) -> list[Input]:
    tariff, out = answer.tariff, list[Input]()
    if tariff.usd_per_hour:
        out.append(swung("price of a device-hour", "usd_per_hour", tariff.usd_per_hour, "usd", figures))
    if tariff.electricity_usd_per_kwh:
        out.append(swung("electricity, per kWh", "electricity", tariff.electricity_usd_per_kwh, "usd", figures))
    return out


def _own_error(answer: Trained, base: Mapping[str, float]) -> list[Input]:
    """The 80 % interval of the step time as one bar; dollars and days go with it."""
    around = answer.intervals() if isinstance(answer, TrainAnswer) else {}
    step = around.get("step_time_s")
    if step is None:
        return []
    ends: list[dict[str, float]] = []
    for time_s in (step.high_80, step.low_80):
        ratio = time_s / answer.step_time_s
        found = {n: base[n] * ratio for n in ("usd", "days", "usd_per_million_tokens", "step_time_s") if n in base}
        ends.append(found | {"tokens_per_s": base["tokens_per_s"] / ratio})
    if memory := around.get("peak_memory_bytes"):
        ends[0]["peak_memory_bytes"], ends[1]["peak_memory_bytes"] = memory.high_80, memory.low_80
    slow, fast = ends
    return [Input(name=OWN_ERROR, low=end("slow end", lambda _: slow, {}), high=end("fast end", lambda _: fast, {}))]


def _flips(scenario: Scenario, answer: Trained) -> list[str]:
    """By doubling: how long sequences and how large micro-batches may become until memory ends it."""
    out: list[str] = []
    for key, name, value in (
        ("seq_len", "Sequences", scenario.seq_len or 0),
        ("micro_batch", "Micro-batches", answer.layout.micro_batch),
    ):
        last, why = value, ""
        for _ in range(MAX_DOUBLINGS):
            if why := _refusal(scenario, {key: 2 * last}):
                break
            last *= 2
        if not why:
            out.append(f"{name} may be {2**MAX_DOUBLINGS} times as large ({last:,}) and it still fits.")
        elif last == value:
            out.append(f"{name} of twice the size ({2 * value:,}) end it: {why}")
        else:
            out.append(f"{name} may be up to {last:,} (now {value:,}), by doubling; {2 * last:,} end it: {why}")
    return out


def _refusal(scenario: Scenario, changes: Changes) -> str:
    """Why a changed job cannot be; empty where it can."""
    try:
        found = train(merged(scenario, changes))
    except OrreryError as error:
        return str(error)
    return str(found.infeasible) if isinstance(found, InfeasibleAnswer) else ""
