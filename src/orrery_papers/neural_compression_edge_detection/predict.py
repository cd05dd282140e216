"""Compression and filtering for detection at the edge: three places to compute, over the rates of a radio."""

from collections.abc import Iterator
from itertools import pairwise

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.edge.split import SplitPoint, filtered
from orrery_papers.shared.convolutional import Convolution
from orrery_papers.shared.split_boards import at, bottleneck_bytes, flops

STEM_RATIO, ENCODER = 2, (64, 64, 256, 64)
"""The stem's picture is so many times the bottleneck's, a side; channels of the encoder up to the bottleneck."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """The best rate of the radio for the cut network with its filter."""
    setup = paper.setups["detector"]
    local, whole, cut = options(setup)
    sent = 1.0 - setup.number("empty_frac") * (1.0 - setup.number("passed_frac"))
    ours = filtered(cut, 0.0, sent)
    gain, alone = (gains(setup, each, (local, whole)) for each in (ours, cut))
    good = [rate for rate, ratio in gain.items() if ratio > 1.0]
    best = max(gain, key=gain.__getitem__)
    between = f"from {min(good) / 125e3:g} to {max(good) / 125e3:g} Mb/s" if good else "at none of the rates"
    yield Prediction(
        claim="intermediate",
        predicted=gain[best],
        because=f"first {between}, most so at {best / 125e3:g} Mb/s; {max(alone.values()):.2f} without the filter, "
        f"with {cut.sent_bytes / 1e3:.0f} kB of bottleneck",
        differs="bottleneck, boards and channel are assumed",
    )


def gains(setup: Setup, cut: SplitPoint, others: tuple[SplitPoint, ...]) -> dict[float, float]:
    """By rate: how many times as long the best of the others takes."""
    return {
        rate: min(at(setup, each, rate).delay_s for each in others) / at(setup, cut, rate).delay_s
        for rate in setup.numbers("radio_rates_swept")
    }


def options(setup: Setup) -> tuple[SplitPoint, SplitPoint, SplitPoint]:
    """All on the device, all on the server, cut at the bottleneck."""
    work = 2.0 * setup.number("num_macs")
    side, channels = int(setup.number("num_bottleneck_side")), int(setup.number("num_bottleneck_channels"))
    head = [
        Convolution(height=STEM_RATIO * side, kernel=7, num_inputs=3, num_outputs=ENCODER[0]),
        *(Convolution(height=side, kernel=2, num_inputs=k, num_outputs=n) for k, n in pairwise((*ENCODER, channels))),
    ]
    return (
        SplitPoint(head_flops=work, sent_bytes=0.0, tail_flops=0.0),
        SplitPoint(head_flops=0.0, sent_bytes=setup.number("input_bytes"), tail_flops=work),
        SplitPoint(head_flops=flops(head), sent_bytes=bottleneck_bytes(setup, channels), tail_flops=work),
    )
