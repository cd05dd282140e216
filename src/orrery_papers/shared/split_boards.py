"""Boards and radios as set-ups of split networks state them, and ResNets cut at a bottleneck."""

from collections.abc import Sequence

from orrery.evidence.paper_file import Setup
from orrery.execution.edge.split import Board, EdgeLatency, Radio, SplitPoint, trip
from orrery_papers.shared.convolutional import Convolution, resnet

BITS_PER_BYTE = 8.0


def board(setup: Setup) -> Board:
    """The device of a set-up."""
    return Board(
        flops_per_s=setup.number("device_flops_per_s"),
        busy_w=setup.number("busy_w"),
        sending_w=setup.number("sending_w"),
        idle_w=setup.number("idle_w"),
    )


def at(setup: Setup, cut: SplitPoint, radio_bytes_per_s: float) -> EdgeLatency:
    """One input over the set-up's radio at that rate."""
    radio = Radio(each_way_bytes_per_s=radio_bytes_per_s, way_s=setup.number("radio_s"))
    return trip(cut, board(setup), radio, setup.number("server_flops_per_s"))


def flops(layers: Sequence[Convolution]) -> float:
    """A multiply-add is two operations."""
    return 2.0 * sum(layer.num_multiply_adds for layer in layers)


def bottleneck_bytes(setup: Setup, channels: float) -> float:
    """Bytes of one input's bottleneck as it is sent."""
    return channels * setup.number("num_bottleneck_side") ** 2 * setup.number("num_bottleneck_bits") / BITS_PER_BYTE


def split_resnet(
    setup: Setup, counts: Sequence[int], num_channels: int = 0
) -> tuple[SplitPoint, SplitPoint, SplitPoint]:
    """All on the device, all on the server, and cut at a bottleneck (the set-up's, unless its channels are given).

    The bottleneck stands for stem and two stages.

    Its head is the stem's convolution and a strided 2 x 2 one to the bottleneck; four convolutions of 2 x 2 and 512
    channels decode, the first from the bottleneck.
    """
    whole, early = list(resnet(counts)), list(resnet(counts[:2]))
    late = whole[len(early) :]
    side, channels = (
        int(setup.number("num_bottleneck_side")),
        num_channels or int(setup.number("num_bottleneck_channels")),
    )
    head = [*whole[:1], Convolution(height=side, kernel=2, num_inputs=64, num_outputs=channels)]
    first = Convolution(height=side, kernel=2, num_inputs=channels, num_outputs=512)
    decoder = [first, *[Convolution(height=side, kernel=2, num_inputs=512, num_outputs=512)] * 3]
    return (
        SplitPoint(head_flops=flops(whole), sent_bytes=0.0, tail_flops=0.0),
        SplitPoint(head_flops=0.0, sent_bytes=setup.number("input_bytes"), tail_flops=flops(whole)),
        SplitPoint(
            head_flops=flops(head), sent_bytes=bottleneck_bytes(setup, channels), tail_flops=flops([*decoder, *late])
        ),
    )
