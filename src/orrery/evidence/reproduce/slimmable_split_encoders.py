"""Slimmable encoders: one encoder of several widths on a channel that changes, against one width and reloading."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.reproduce.prediction import Prediction
from orrery.evidence.reproduce.split_boards import at, split_resnet
from orrery.execution.edge.split import Trip, widest_within

COUNTS = (3, 4, 6, 3)
"""Bottleneck units of ResNet-50's stages."""

WEIGHT_BYTES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A channel's rates one after the other, and the width that each was given."""

    trips: tuple[Trip, ...]
    widths: tuple[float, ...]

    @property
    def mean_s(self) -> float:
        """Delay of an input."""
        return sum(trip.delay_s for trip in self.trips) / len(self.trips)

    @property
    def num_switches(self) -> int:
        """How often another width came up."""
        return sum(a != b for a, b in zip(self.widths, self.widths[1:], strict=False))


def predict(paper: Paper) -> Iterator[Prediction]:
    """Delay over the trace, what switching would cost otherwise, and the extremes."""
    setup = paper.setups["channel"]
    rates, widths = setup.numbers("radio_rates_swept"), setup.numbers("widths_swept")
    slim, fixed = followed(setup, rates, widths), followed(setup, rates, widths[-1:])
    yield Prediction(
        claim="delay", predicted=fixed.mean_s / slim.mean_s,
        because=f"mean of {slim.mean_s * 1e3:.0f} ms with {slim.num_switches} changes of width, "
        f"{fixed.mean_s * 1e3:.0f} ms with {widths[-1]:g} channels throughout",
    )  # fmt: skip
    loading = encoder_bytes(widths[-1]) / setup.number("reload_bytes_per_s") + setup.number("reload_s")
    added = slim.num_switches * loading / len(rates)
    yield Prediction(
        claim="switching", predicted=(slim.mean_s + added) / slim.mean_s,
        because=f"{loading * 1e3:.0f} ms to load an encoder, {slim.num_switches} times in {len(rates)} inputs",
    )  # fmt: skip
    local, _, _ = split_resnet(setup, COUNTS, int(widths[-1]))
    alone = at(setup, local, rates[0]).delay_s
    yield Prediction(
        claim="weak-devices", predicted=alone / slim.mean_s, because=f"{alone * 1e3:.0f} ms on the board alone"
    )


def followed(setup: Setup, rates: Sequence[float], widths: Sequence[float]) -> Followed:
    """Each rate with the widest encoder that keeps the limit."""
    trips, taken = list[Trip](), list[float]()
    for rate in rates:
        tried = [at(setup, split_resnet(setup, COUNTS, int(width))[2], rate) for width in widths]
        chosen = widest_within(tried, setup.number("most_delay_s"))
        trips.append(tried[chosen])
        taken.append(widths[chosen])
    return Followed(trips=tuple(trips), widths=tuple(taken))


def encoder_bytes(width: float) -> float:
    """Weights of stem and bottleneck."""
    return WEIGHT_BYTES * (7 * 7 * 3 * 64 + 4 * 64 * width)
