"""Many expert models behind a router, as a person reads their run in a terminal."""

from orrery.base.units import figures, percent, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.composition import CompositionAnswer


def print_composition(answer: CompositionAnswer) -> None:
    """The run and a request's parts, then curves over answer tokens and over links."""
    out, d, x, found = console(), answer.deployment, answer.expert, answer.to_json()
    out.print(
        f"[bold]{len(answer.shares)} experts of {d.model.name}[/] on {d.layout.num_devices} x {d.cluster.device.name}: "
        f"{x.held} held beside the router; {found['num_requests']} requests, one after the other",
        highlight=False,
    )
    table = Sheet("a request", "")
    for words, key in (("mean latency", "mean_latency_s"), ("median", "p50_latency_s"), ("99th", "p99_latency_s")):
        table.add_row(words, text(found[key], "s"))
    table.add_row("router", text(x.router_s, "s"))
    table.add_row("expert, first token", text(x.first_token_s, "s"))
    table.add_row("expert, each later token", text(x.per_token_s, "s"))
    table.add_row("a switch", text(x.switch_s, "s"))
    table.add_row("requests that switch", percent(found["missed_frac"], 1))
    out.print(table)
    curve = Sheet("answer tokens", "a lone request", "of it switching")
    for point in answer.curve:
        curve.add_row(str(point.output_tokens), text(point.request_s, "s"), percent(point.switch_frac, 1))
    out.print(curve)
    links = Sheet("experts come up at", "a lone request")
    for rate, seconds in answer.links:
        links.add_row(f"{figures(rate)} bytes/s", text(seconds, "s"))
    out.print(links)
    usd = found["usd_per_million_tokens"]
    price = f" A million answer tokens cost ${figures(usd)}." if usd is not None else ""
    out.print(
        f"{figures(found['requests_per_s'])} requests/s, {figures(answer.output_tokens_per_s)} answer tokens/s; "
        f"{percent(answer.settled_missed_frac, 1)} of requests switch once the memory is full; "
        f"{answer.replicas_to_hold_all} such replicas hold all experts.{price}"
    )
