"""The run of a fleet, drawn over its hours: load, replicas, queue, latency, power and money."""

from orrery.drawing import Axis, Series, lines
from orrery.scenario.fleet.answer import FleetAnswer

CHARTS = (
    ("Load", Axis("Requests/s", low=0.0), (("arrivals", "arrivals_per_s"),)),
    ("Replicas", Axis("Replicas", low=0.0), (("serving", "serving"), ("paid for", "paid"), ("starting", "starting"))),
    ("Queue", Axis("Requests", low=0.0), (("waiting", "waiting"), ("running", "running"))),
    ("99th percentile of TTFT", Axis("TTFT", "s", low=0.0), (("p99 TTFT", "p99_ttft_s"),)),
    ("Power of devices and hosts", Axis("Power", "w", low=0.0), (("power", "power_w"),)),
    ("Price of what runs", Axis("$/hour", low=0.0), (("price", "usd_per_hour"),)),
)
"""Title, axis, and name and curve of each line."""


def charts(answer: FleetAnswer) -> dict[str, str]:
    """Return drawings by title."""
    s = answer.series
    hours = (s["start_s"] / 3600.0).tolist()
    return {
        title: lines(
            [Series(name, hours, s[key].tolist()) for name, key in curves], Axis("Time (hours)"), axis, title=title
        )
        for title, axis, curves in CHARTS
    }
