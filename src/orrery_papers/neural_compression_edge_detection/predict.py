"""Compression and filtering for detection at the edge: three places to compute, over the rates of a radio."""

from collections.abc import Iterator
from pathlib import Path

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.edge.cuts import Cut
from orrery_papers.shared.split_boards import answer_at, at, cut_named

FOLDER = Path(__file__).parent


def predict(paper: Paper) -> Iterator[Prediction]:
    """The best rate of the radio for the cut network with its filter."""
    setup = paper.setups["detector"]
    whole = answer_at(setup, FOLDER / "detector.toml")
    others = [cut_named(whole, name) for name in ("device", "server")]
    passed = 1.0 - setup.number("empty_frac") * (1.0 - setup.number("passed_frac"))
    gain, alone = (gains(setup, ours(setup, **some), others) for some in ({"filter_pass_frac": passed}, {}))
    good = [rate for rate, ratio in gain.items() if ratio > 1.0]
    best = max(gain, key=gain.__getitem__)
    between = f"from {min(good) / 125e3:g} to {max(good) / 125e3:g} Mb/s" if good else "at none of the rates"
    yield Prediction(
        claim="intermediate",
        predicted=gain[best],
        because=f"first {between}, most so at {best / 125e3:g} Mb/s; {max(alone.values()):.2f} without the filter, "
        f"with {ours(setup).sent_bytes / 1e3:.0f} kB of bottleneck",
        differs="bottleneck, boards and channel are assumed",
    )


def ours(setup: Setup, **filter_settings: float) -> Cut:
    """The compressed network handed over behind its encoder, with or without the filter."""
    bits = setup.number("num_bottleneck_bits")
    more = {**filter_settings, "filter_macs": setup.number("num_filter_macs")} if filter_settings else {}
    return cut_named(answer_at(setup, FOLDER / "compressed.toml", sent_bits=bits, **more), "encoder")


def gains(setup: Setup, cut: Cut, others: list[Cut]) -> dict[float, float]:
    """By rate: how many times as long the best of the others takes."""
    return {
        rate: min(at(setup, each, rate).delay_s for each in others) / at(setup, cut, rate).delay_s
        for rate in setup.numbers("radio_rates_swept")
    }
