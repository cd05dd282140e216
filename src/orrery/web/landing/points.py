"""Points of the landing page's chart: the fronts of one accelerator, as short rows of numbers."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from orrery.base.errors import OrreryError
from orrery.scenario.fronts import FrontEstimate, fronts_of
from orrery.scenario.schema import read_scenario
from orrery.serving.extrapolation import extrapolation_share
from orrery.web.landing.choices import MAX_DEVICES, TPOT_S, TTFT_S, formats_on

COLUMNS = (
    "tp",
    "pp",
    "dp",
    "ep",
    "concurrency",
    "ttft_ms",
    "ttft_low",
    "ttft_high",
    "tpot_ms",
    "tpot_low",
    "tpot_high",
    "rate",
    "rate_low",
    "rate_high",
    "watts",
    "bound_by",
    "borrowed",
)
"""Columns of each row. ``rate`` is output tokens/s per device; ends of 80 % intervals are percent of their value;
``watts`` is the power of one device; ``borrowed`` is the percent of the time that rests on constants of other devices.
"""

LIMITS = ("memory", "compute", "network", "overhead", "host", "bubble")
DIGITS = 3
"""Significant digits that are kept."""

Rows = list[list[float]]


def points_of(model: str, device: str, engine: str, lengths: tuple[int, int]) -> dict[str, Rows]:
    """The rows of one accelerator by class of formats; a class in which nothing fits or runs is empty."""
    found: dict[str, Rows] = {}
    for bits, (weights, cache) in formats_on(model, device).items():
        choice: dict[str, Any] = {
            "model": model,
            "device": device,
            "engine": engine,
            "input_tokens": lengths[0],
            "output_tokens": lengths[1],
            "max_devices": MAX_DEVICES,
            "slo": [f"ttft:{TTFT_S * 1e3:g}", f"tpot:{TPOT_S * 1e3:g}"],
            "kv": cache,
            **({"weights": weights} if weights else {}),
        }
        try:
            found[bits] = [_row(p) for p in fronts_of(read_scenario(choice))]
        except OrreryError:
            found[bits] = []
    return found


def _row(point: FrontEstimate) -> list[float]:
    e = point.answer.estimate
    layout = e.deployment.layout
    ends = [_ends(e.intervals, name, getattr(e, name)) for name in ("ttft_s", "tpot_s", "output_tokens_per_s")]
    return [
        layout.tp,
        layout.pp,
        layout.dp,
        layout.ep,
        point.settings["concurrency"],
        _short(e.ttft_s * 1e3),
        *ends[0],
        _short(e.tpot_s * 1e3),
        *ends[1],
        _short(e.output_tokens_per_s / e.num_devices),
        *ends[2],
        round(e.power_w / e.num_devices),
        LIMITS.index(e.bound_by),
        round(100 * extrapolation_share(e.steps.ticks.done).borrowed_frac),
    ]


def _ends(intervals: Mapping[str, Any], name: str, value: float) -> tuple[int, int]:
    """The ends of an 80 % interval in percent of the value."""
    found = intervals[name]
    return round(100 * found.low_80 / value), round(100 * found.high_80 / value)


def _short(value: float) -> float:
    """Rounded to ``DIGITS``; whole numbers as such."""
    if not isfinite(value):
        raise ValueError(value)
    found = float(f"{value:.{DIGITS}g}")
    return int(found) if found.is_integer() else found
