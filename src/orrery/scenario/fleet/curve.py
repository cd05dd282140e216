"""The law of a fleet's rate over days, as the settings at the top of its file say it."""

from orrery.base.errors import ScenarioError
from orrery.fleet.service.rate_curve import RateCurve
from orrery.scenario.fleet.blocks import FleetTop

CURVE_ALONE = ("peak_to_trough", "peak_hour")
"""Settings of a diurnal curve."""

BURST_ALONE = ("burst_ratio", "burst_length_s")

TRAFFIC_ALONE = ("rate_curve", *CURVE_ALONE, "weekend", "bursts_per_day", *BURST_ALONE, "start_hour")
"""Settings that say nothing but when requests come."""


def curve_of(top: FleetTop) -> RateCurve | None:
    """The law of the rate; None where it is steady."""
    name = (top.rate_curve or "flat").strip()
    hourly = _hourly(name) if name not in ("flat", "diurnal") else ()
    if name != "diurnal" and (given := [n for n in CURVE_ALONE if getattr(top, n) is not None]):
        raise ScenarioError(f'{given[0]}: is about a diurnal day; write rate_curve = "diurnal" beside it.')
    if not top.bursts_per_day and (given := [n for n in BURST_ALONE if getattr(top, n) is not None]):
        raise ScenarioError(f"{given[0]}: there are no bursts; write bursts_per_day = 4 beside it.")
    if name == "flat" and top.weekend is None and not top.bursts_per_day:
        return None
    return RateCurve(
        peak_to_trough_ratio=(top.peak_to_trough or 3.0) if name == "diurnal" else 1.0,
        peak_s=3600.0 * (14.0 if top.peak_hour is None else top.peak_hour),
        hourly_ratio=hourly,
        weekend_frac=1.0 if top.weekend is None else top.weekend,
        bursts_per_day=top.bursts_per_day or 0.0,
        burst_ratio=top.burst_ratio or 3.0,
        burst_length_s=top.burst_length_s or 300.0,
        start_s=3600.0 * (top.start_hour or 0.0),
    )


def _hourly(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise ScenarioError(
            f"rate_curve: got {text!r}; write flat, diurnal, or 24 or 168 comma-separated parts of the mean rate."
        ) from None
