"""Slimmable encoders: one of several widths on a channel that changes, against the whole network on the board."""

from collections.abc import Iterator, Sequence
from statistics import mean

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.edge.split import widest_within
from orrery_papers.shared.split_boards import at, split_resnet

COUNTS = (3, 4, 6, 3)
"""Bottleneck units of ResNet-50's stages."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """The network on the board alone, over the mean delay with an encoder that follows the channel."""
    setup = paper.setups["channel"]
    rates, widths = setup.numbers("radio_rates_swept"), setup.numbers("widths_swept")
    slim_s, fixed_s = (followed_s(setup, rates, some) for some in (widths, widths[-1:]))
    local, _, _ = split_resnet(setup, COUNTS, int(widths[-1]))
    alone_s = at(setup, local, rates[0]).delay_s
    yield Prediction(
        claim="weak-devices",
        predicted=alone_s / slim_s,
        because=f"{alone_s * 1e3:.0f} ms on the board alone, {slim_s * 1e3:.0f} ms on average with the widest encoder "
        f"that keeps the limit, {fixed_s * 1e3:.0f} ms with {widths[-1]:g} channels throughout",
    )


def followed_s(setup: Setup, rates: Sequence[float], widths: Sequence[float]) -> float:
    """Mean delay over a channel's rates, each with the widest encoder that keeps the limit."""
    delays = list[float]()
    for rate in rates:
        tried = [at(setup, split_resnet(setup, COUNTS, int(width))[2], rate) for width in widths]
        delays.append(tried[widest_within(tried, setup.number("most_delay_s"))].delay_s)
    return mean(delays)
