"""Slimmable encoders: one of several widths on a channel that changes, against the whole network on the board."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.split_session import Session
from orrery_papers.shared.split_boards import MBIT_PER_BYTE_PER_S, answer_at

NETWORK, AFTER = "resnet-50", "stem"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The network on the board alone, over the mean delay with an encoder that follows the channel."""
    setup = paper.setups["channel"]
    widths = setup.numbers("widths_swept")
    slim, fixed = (followed(setup, some).policies for some in (widths, widths[-1:]))
    (alone,) = (one for one in slim if one.name == "always device")
    yield Prediction(
        claim="weak-devices",
        predicted=alone.mean_s / slim[-1].mean_s,
        because=f"{alone.mean_s * 1e3:.0f} ms on the board alone, {slim[-1].mean_s * 1e3:.0f} ms on average with the "
        f"widest encoder that keeps the limit, {fixed[-1].mean_s * 1e3:.0f} ms with {widths[-1]:g} channels or the "
        "whole picture",
    )


def followed(setup: Setup, widths: tuple[float, ...]) -> Session:
    """One input at each of the channel's rates, with encoders of those widths that share their weights."""
    rates = setup.numbers("radio_rates_swept")
    rows = [f"{i},{MBIT_PER_BYTE_PER_S * rate:.10g}" for i, rate in enumerate((*rates, rates[-1]))]
    with TemporaryDirectory() as folder:
        trace = Path(folder) / "channel.csv"
        trace.write_text("time_s,mbit_per_s\n" + "\n".join(rows) + "\n")
        answer = answer_at(
            setup,
            NETWORK,
            bottleneck=",".join(f"{AFTER}:{width:.0f}" for width in widths),
            bottleneck_bits=setup.number("num_bottleneck_bits"),
            link_trace=str(trace),
            limit_s=setup.number("most_delay_s"),
        )
    assert answer.session is not None
    return answer.session
