"""A run whose cache and attention are the host's, as a person reads it in a terminal."""

from orrery.base.units import figures, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.host_attention import HostAttentionAnswer


def print_host_attention(answer: HostAttentionAnswer) -> None:
    """The run beside the bound and beside phases, then the curve over requests."""
    out, d, x = console(), answer.deployment, answer.work
    out.print(
        f"[bold]{d.model.name}[/] on {d.cluster.device.name} and its host: {answer.num_requests} requests of "
        f"{x.input_tokens} and {x.output_tokens} tokens, cache of {figures(x.cache_tokens)} tokens on the host",
        highlight=False,
    )
    table = Sheet("", "seconds", "answer tokens a second")
    tokens = answer.num_output_tokens
    table.add_row("endless run (bound)", "", figures(answer.limit_tokens_per_s))
    if answer.played_s is not None:
        table.add_row("pass by pass", text(answer.played_s, "s"), figures(tokens / answer.played_s))
    table.add_row("closed form", text(answer.closed_s, "s"), figures(tokens / answer.closed_s))
    table.add_row("in phases, padded", text(answer.phased_s, "s"), figures(tokens / answer.phased_s))
    out.print(table)
    curve = Sheet("requests", "answer tokens a second", "in phases", "gain")
    for point in answer.curve:
        curve.add_row(
            str(point.num_requests),
            figures(point.output_tokens_per_s),
            figures(point.phased_tokens_per_s),
            f"{point.gain:.2f}",
        )
    out.print(curve)
    ratio = answer.closed_ratio
    agrees = f" The closed form takes {ratio:.2f} times the passes' seconds." if ratio else ""
    usd = answer.usd_per_million_tokens
    price = f" A million answer tokens cost ${figures(usd)} of the device." if usd is not None else ""
    out.print(f"{answer.gain:.2f} times faster than in phases; limited by {answer.bound_by}.{agrees}{price}")
