"""Published closed-loop runs of popular models (``tools/published_runs.py``), each with what is predicted for it."""

from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import OrreryError, ScenarioError
from orrery.evidence.row import Row
from orrery.evidence.serving_row import has_pools, read_row
from orrery.evidence.tables import Table, read_table
from orrery.execution.memory import Infeasible
from orrery.numerics.registry import get_format
from orrery.serving.estimate import estimate
from orrery.web.landing.choices import TRAFFIC

FILE = Path(__file__).parent / "landing_runs.csv"
NEAR = 0.25
"""Lengths this near to those of a kind of traffic, as a share, are taken as that kind."""

Run = dict[str, Any]


def traffic_of(row: Row) -> str:
    """The kind of traffic that a row's mean lengths are near to; blank where there is none."""
    lengths = row.number("input_tokens"), row.number("output_tokens")
    near = (k for k, v in TRAFFIC.items() if all(abs(a / b - 1) <= NEAR for a, b in zip(lengths, v, strict=True)))
    return next(near, "")


def runs_of(model: str) -> list[Run]:
    """Published runs of a popular model, as the chart draws them."""
    table = _table()
    found: list[Run] = []
    for number, key in enumerate(table.columns["model_key"]):
        row = Row({c: v[number] for c, v in table.columns.items()})
        if key == model and (run := _run(row)):
            found.append(run)
    return found


def _run(row: Row) -> Run | None:
    """One run: its speed per user and rate per device; None where the row cannot be read.

    A closed loop without waiting has ``concurrency`` requests under way all the time, each of which takes
    TTFT + (output tokens - 1) x TPOT: the output rate follows from the two.
    """
    try:
        devices, layout, bits, predicted = _pools(row) if has_pools(row) else _one_pool(row)
    except OrreryError:
        return None
    ttft_s, tpot_s, out = row.number("ttft_s"), row.number("tpot_s"), row.number("output_tokens")
    rate = row.number("concurrency") * out / (ttft_s + (out - 1) * tpot_s) / devices
    return {
        "traffic": traffic_of(row),
        **{name: row.word(name) for name in ("engine", "engine_version", "device", "source", "run", "measured_date")},
        "bits": bits,
        "layout": layout,
        "devices": devices,
        "concurrency": row.count("concurrency"),
        "input_tokens": round(row.number("input_tokens")),
        "output_tokens": round(out),
        "ttft_ms": _short(ttft_s * 1e3),
        "tpot_ms": _short(tpot_s * 1e3),
        "rate": _short(rate),
        **predicted,
    }


def _one_pool(row: Row) -> tuple[int, str, str, Run]:
    """Devices, layout, class of formats, and the prediction for the run."""
    deployment, workload = read_row(row)
    ours, devices = estimate(deployment, workload), deployment.layout.num_devices
    if isinstance(ours, Infeasible):
        raise ScenarioError(str(ours))
    held = deployment.model.experts_format or deployment.formats.weights
    interval = ours.intervals["tpot_s"]
    predicted = {
        "predicted_tpot_ms": _short(ours.tpot_s * 1e3),
        "predicted_rate": _short(ours.output_tokens_per_s / devices),
        "is_inside": interval.low_80 <= row.number("tpot_s") <= interval.high_80,
    }
    return devices, str(deployment.layout), _bits(held), predicted


def _pools(row: Row) -> tuple[int, str, str, Run]:
    """The same of separate prefill and decode workers, whose runs are not predicted here."""
    pools = [f"{kind} {row.count(kind + '_devices')}" for kind in ("prefill", "decode")]
    devices = row.count("num_devices")
    if not devices or not row.word("weights_format"):
        raise ScenarioError("num_devices or weights_format is blank")
    return devices, " + ".join(pools), _bits(row.word("weights_format")), {}


def _bits(weights: str) -> str:
    element_bits = get_format(weights).element_bits
    return "16" if element_bits >= 16 else "8" if element_bits > 4 else "4"


def _short(value: float) -> float:
    return float(f"{value:.3g}")


@cache
def _table() -> Table:
    return read_table(FILE)
