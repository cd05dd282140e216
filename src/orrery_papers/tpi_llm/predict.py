"""TPI-LLM: a model cut over home devices and streamed in a window, against one device that reads on demand."""

from collections.abc import Iterator
from functools import cache

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.estimates import estimate
from orrery.scenario.weight_window import WeightWindowAnswer

ASSUMED = "drives, processors and the prompt are assumed"
PEAK = "the window of the measured run, and buffers of the framework that are not counted"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Times against reading on demand, then memory."""
    setup = {claim.id: claim.setup for claim in paper.claims}
    small = setup["latency"]
    shared, single = run(small), run(small, num_devices=1, window=1)
    ours, alone = shared.window, single.window
    yield Prediction(
        claim="latency",
        predicted=1.0 - ours.tpot_s / alone.tpot_s,
        differs=ASSUMED,
        because=f"{small.number('num_devices'):.0f} devices {ours.tpot_s:.1f} s a token, one on demand "
        f"{alone.tpot_s:.1f} s",
    )
    yield Prediction(
        claim="ttft",
        predicted=1.0 - ours.ttft_s / alone.ttft_s,
        differs=f"sums of a whole prompt pass one home link, whose rate is assumed; {ASSUMED}",
        because=f"{ours.ttft_s:.1f} s to the first token against {alone.ttft_s:.1f} s",
    )
    star, ring = (shared.exchange_s[name] for name in ("star", "ring"))
    yield Prediction(
        claim="star",
        predicted=ring / star,
        because=f"{star * 1e3:.1f} ms through one device, {ring * 1e3:.1f} ms round",
    )
    yield Prediction(
        claim="accelerate-token", predicted=alone.tpot_s, differs=ASSUMED, because="all weights, one by one"
    )
    yield Prediction(
        claim="token", predicted=ours.tpot_s, differs=ASSUMED, because="an eighth of the weights, in a window"
    )
    large, runtime = run(setup["peak"]), setup["peak"].number("runtime_bytes")
    peak, whole = large.window.peak_bytes + runtime, large.windows[-1].peak_bytes + runtime
    yield Prediction(
        claim="peak",
        predicted=peak,
        differs=PEAK,
        because="the head, half as much again while it is read, a feed-forward part, and the framework",
    )
    yield Prediction(
        claim="peak-reduction",
        predicted=1.0 - peak / whole,
        differs=PEAK,
        because=f"{peak / 1e9:.1f} GB instead of {whole / 1e9:.1f} GB",
    )


@cache
def answer_for(**settings: str | float) -> WeightWindowAnswer:
    """The answer of orrery estimate, kept."""
    found = estimate(**settings)
    assert isinstance(found, WeightWindowAnswer)
    return found


def run(setup: Setup, *, num_devices: int = 0, window: int = 0) -> WeightWindowAnswer:
    """The set-up by orrery estimate --weight-window."""
    return answer_for(
        model=setup.word("model"),
        device=setup.word("device"),
        tp=num_devices or int(setup.number("num_devices")),
        weight_window=window or int(setup.number("num_window_blocks")),
        drive_bytes_per_s=setup.number("nvme_read_bytes_per_s"),
        link_bytes_per_s=setup.number("link_bytes_per_s"),
        link_s=setup.number("way_s"),
        input_tokens=int(setup.number("input_tokens")),
        output_tokens=1,
    )
