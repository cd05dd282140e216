"""Classified pictures as a person reads them in a terminal."""

from orrery.base.units import figures, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.image_model import ImageModelAnswer


def print_image_model(answer: ImageModelAnswer) -> None:
    """Latency of a batch, rate, power and money."""
    out = console()
    out.print(
        f"[bold]{answer.network.name}[/] on {answer.device.name}: {answer.batch} pictures at once "
        f"by {answer.runtime.title}, {answer.numbers.format}{' throughout' * answer.numbers.is_integer_only}"
    )
    table, intervals = Sheet("", "mean", "80 % interval"), answer.intervals()
    latency, rate = intervals["latency_s"], intervals["images_per_s"]
    table.add_row(
        "batch latency", text(answer.latency_s, "s"), f"{text(latency.low_80, 's')} to {text(latency.high_80, 's')}"
    )
    table.add_row(
        "pictures a second", figures(answer.images_per_s), f"{figures(rate.low_80)} to {figures(rate.high_80)}"
    )
    table.add_row("power", text(answer.power_w, "w"), "")
    table.add_row("energy of a picture", text(answer.power_w / answer.images_per_s, "j"), "")
    if (usd := answer.usd_per_thousand_images) is not None:
        table.add_row("a thousand pictures", f"${figures(usd)}", "")
    out.print(table)
    used = answer.weight_bytes + answer.activation_bytes
    out.print(
        f"Limited by {answer.bound_by}. Memory: {text(used, 'bytes')} of "
        f"{text(answer.device.memory_capacity_bytes, 'bytes')}."
    )
