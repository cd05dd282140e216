"""Regions and origins of a fleet's answer in the terminal."""

from orrery.base.units import figures, percent, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.fleet.answer import FleetAnswer
from orrery.scenario.fleet.by_region import Latencies
from orrery.scenario.fleet.cache_moves import move_sentences
from orrery.scenario.fleet.moved_cache import sentences


def print_regions(answer: FleetAnswer) -> None:
    """Print requests by region and origin, how well they were served, and at what cost; nothing without regions."""
    found = answer.by_region
    if found is None:
        return
    out = console()
    regions = Sheet("region", "requests", "guests", "in time", "p99 TTFT", "replicas", "cost", "energy", "CO2", left=1)
    for r in found.regions:
        carbon = "-" if r.carbon_g is None else f"{figures(r.carbon_g / 1e3)} kg"
        regions.add_row(
            r.name,
            f"{r.num_requests:,}",
            percent(r.guests_frac, 1),
            _share(r.attained_frac),
            _slow(r.latencies),
            figures(r.num_replicas),
            f"${figures(r.cost_usd)}",
            text(r.energy_j, "j"),
            carbon,
        )
    origins = Sheet("origin", "requests", "in time", "p50 TTFT", "p99 TTFT", "elsewhere", "served in", left=1)
    for o in found.origins:
        served = sum(o.served_in.values())
        parts = ", ".join(f"{name} {percent(n / served)}" for name, n in o.served_in.items() if n)
        half = o.latencies.ttft_s["p50"]
        origins.add_row(
            o.name,
            f"{o.num_requests:,}",
            _share(o.attained_frac),
            "-" if half is None else text(half, "s"),
            _slow(o.latencies),
            percent(o.elsewhere_frac, 1),
            parts,
        )
    out.print(regions)
    out.print(origins)
    out.print(
        f"{percent(found.elsewhere_frac, 1)} of the requests were not served in their nearest region ({found.router}).",
        markup=False,
        highlight=False,
    )
    for sentence in (
        *sentences(found.moved),
        *move_sentences(found.cache_moves),
        *([answer.nearest.sentence] if answer.nearest else []),
    ):
        out.print(sentence, markup=False, highlight=False)


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value, 2)


def _slow(latencies: Latencies) -> str:
    value = latencies.ttft_s["p99"]
    return "-" if value is None else text(value, "s")
