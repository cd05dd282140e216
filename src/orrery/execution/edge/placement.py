"""Places where one network can be handed over from a device to a server, as cuts with their times and bytes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from orrery.execution.edge.cuts import Cut
from orrery.execution.edge.exits import Exit, expected_s, reach
from orrery.execution.edge.times import layer_times_s, unit_times_s
from orrery.hardware.device import Device
from orrery.models.networks import Convolution, Network

SERVER, DEVICE, CONVERTED = "server", "device", "converted"
"""Names of the cuts that are none: all there, all here, and all here behind a converter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Machines of a network's head and tail, and the format that both compute in."""

    device: Device
    server: Device
    format: str
    sent_bytes: float  # of an element that crosses


def cuts_of(
    network: Network, ends: Ends, input_bytes: float | None = None, exits: Sequence[Exit] = ()
) -> tuple[Cut, ...]:
    """All on the server, a cut behind each unit but the last, all on the device.

    Times are means over inputs: what an exit answers on the device is neither sent nor finished.
    """
    head = _expected_s(network, ends.device, ends.format, exits)
    later = _expected_s(network, ends.server, ends.format, exits)
    reached = reach(len(network.units), exits)
    sent = [input_bytes or network.input_bytes]
    sent += [ends.sent_bytes * unit.num_results for unit in network.units[:-1]]
    names = [SERVER, *(unit.name for unit in network.units[:-1]), DEVICE]
    return tuple(
        Cut(
            name=name,
            head_s=head[i],
            tail_s=(later[-1] - later[i]) / reached[i] if reached[i] else 0.0,
            sent_bytes=bytes_,
            passed_frac=reached[i] if bytes_ else 1.0,
        )
        for i, (name, bytes_) in enumerate(zip(names, [*sent, 0.0], strict=True))
    )


def _expected_s(network: Network, device: Device, format: str, exits: Sequence[Exit]) -> list[float]:
    branches = {e.index: sum(layer_times_s(network.branch_behind(e.index), device, format)) for e in exits}
    return expected_s(unit_times_s(network, device, format), branches, reach(len(network.units), exits))


def with_bottlenecks(
    cuts: tuple[Cut, ...], network: Network, ends: Ends, placements: Sequence[tuple[int, int]], bits: float
) -> tuple[Cut, ...]:
    """The plain cuts of ``cuts_of`` and, before the last, those at bottlenecks: (unit, channels) each."""
    between = [network.units[i].squeezed(channels) for i, channels in placements]
    encoding = layer_times_s([b.encoder for b in between], ends.device, ends.format)
    decoding = layer_times_s([b.decoder for b in between], ends.server, ends.format)
    more = [
        Cut(
            name=f"{network.units[i].name}:{channels}",
            head_s=cuts[i + 1].head_s + cuts[i + 1].passed_frac * encode_s,
            tail_s=cuts[i + 1].tail_s + decode_s,
            sent_bytes=b.num_results * bits / 8.0,
            passed_frac=cuts[i + 1].passed_frac,
        )
        for (i, channels), b, encode_s, decode_s in zip(placements, between, encoding, decoding, strict=True)
    ]
    return (*cuts[:-1], *more, cuts[-1])


def filtered(cuts: tuple[Cut, ...], network: Network, macs: float, pass_frac: float) -> tuple[Cut, ...]:
    """Cuts inside the network with a filter of what leaves the head; both extremes are as they were.

    Its multiply-adds run at the pace at which the device runs the network's.
    """
    filter_s = cuts[-1].head_s * macs / network.num_macs
    inside = (
        replace(c, head_s=c.head_s + c.passed_frac * filter_s, passed_frac=c.passed_frac * pass_frac)
        for c in cuts[1:-1]
    )
    return (cuts[0], *inside, cuts[-1])


def converted(network: Network, ends: Ends, widths: Sequence[int], first: Exit) -> Cut:
    """All inputs made easy by fully connected layers of those widths, then answered at the first exit, on the device.

    Mahmud et al., CBNet (arXiv 2403.07036).
    """
    converter = [Convolution(positions=1, inputs=a, outputs=b) for a, b in pairwise(widths)]
    early = [layer for unit in network.units[: first.index + 1] for layer in unit.layers]
    layers = [*converter, *early, *network.branch_behind(first.index)]
    head_s = sum(layer_times_s(layers, ends.device, ends.format))
    return Cut(name=CONVERTED, head_s=head_s, tail_s=0.0, sent_bytes=0.0)
