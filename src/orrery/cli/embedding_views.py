"""Embeddings and rerankers as a person reads them in a terminal."""

from orrery.base.units import figures, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.reports.words import BOUND_BY
from orrery.scenario.embeddings import EmbeddingAnswer


def print_embeddings(answer: EmbeddingAnswer) -> None:
    """Numbers with their intervals, and what limits them."""
    out, e, d = console(), answer.estimate, answer.text.question.deployment
    read = answer.text.question.workload.input_tokens
    out.print(
        f"[bold]{d.model.name}[/] on {e.num_devices} x {d.cluster.device.name} ({d.layout}), weights "
        f"{d.formats.weights}, inputs of {figures(read)} tokens",
        highlight=False,
    )
    table, intervals = Sheet("", "mean", "80 % interval"), answer.intervals()
    latency, rate, usd = (intervals.get(n) for n in ("latency_s", "embeddings_per_s", "usd_per_million_embeddings"))
    table.add_row(
        "latency",
        text(e.latency_s, "s"),
        f"{text(latency.low_80, 's')} to {text(latency.high_80, 's')}" if latency else "",
    )
    table.add_row(
        "thousand embeddings a second",
        figures(answer.embeddings_per_s / 1e3),
        f"{figures(rate.low_80 / 1e3)} to {figures(rate.high_80 / 1e3)}" if rate else "",
    )
    table.add_row("tokens a second", figures(answer.embeddings_per_s * read), "")
    table.add_row("power", text(e.power_w, "w"), "")
    table.add_row("energy of an embedding", text(answer.energy_j_per_embedding, "j"), "")
    if (price := answer.usd_per_million_embeddings) is not None:
        ends = f"${figures(usd.low_80)} to ${figures(usd.high_80)}" if usd else ""
        table.add_row("a million embeddings", f"${figures(price)}", ends)
    out.print(table)
    out.print(f"Limited by {BOUND_BY.get(e.bound_by, e.bound_by)}; {figures(e.concurrency)} inputs are read at once.")
