"""Ranked samples as a person reads them in a terminal."""

from orrery.base.units import figures, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.recommendation import RecommendationAnswer


def print_recommendation(answer: RecommendationAnswer) -> None:
    """Latency of a batch by part, rate, power and money."""
    out = console()
    out.print(f"[bold]{answer.model.name}[/] on {answer.device.name}: {answer.batch} samples at once, {answer.format}")
    table = Sheet("", "mean")
    table.add_row("batch latency", text(answer.latency_s, "s"))
    table.add_row("  rows gathered", text(answer.gathered.time_s, "s"))
    table.add_row("  products", text(float(answer.products.time_s.sum()), "s"))
    table.add_row("samples a second", figures(answer.samples_per_s))
    table.add_row("power", text(answer.power_w, "w"))
    table.add_row("energy of a thousand samples", text(1e3 * answer.power_w / answer.samples_per_s, "j"))
    if (usd := answer.usd_per_million_samples) is not None:
        table.add_row("a million samples", f"${figures(usd)}")
    out.print(table)
    out.print(
        f"Limited by {answer.bound_by}. Tables and weights: {text(answer.weight_bytes, 'bytes')} of "
        f"{text(answer.device.memory_capacity_bytes, 'bytes')}."
    )
