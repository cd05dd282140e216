"""BottleFit: ResNet-152 on a board, on a server, behind an autoencoder, and cut at an early bottleneck."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.edge.split import EdgeLatency, SplitPoint
from orrery_papers.shared.convolutional import Convolution, resnet
from orrery_papers.shared.split_boards import at, flops, split_resnet

COUNTS = (3, 8, 36, 3)
"""Bottleneck units of ResNet-152's stages."""

ASSUMED = "rates of boards, server and radio and what they draw are assumed, and the best of the rates tried is taken"
AVERAGE = f"energy of one input; whether the paper's power is a mean over another interval was not found; {ASSUMED}"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Reductions at the best of the rates, then sizes."""
    setups = {claim.id: claim.setup for claim in paper.claims}
    for claim in paper.claims:
        if claim.metric in ("latency_reduction", "power_reduction"):
            found, rate = best(claim.setup, claim.baseline.split()[0], PARTS[claim.metric])
            yield Prediction(
                claim=claim.id,
                predicted=found,
                because=f"at {rate / 125e3:g} Mb/s, against {claim.baseline}",
                differs=AVERAGE if claim.metric == "power_reduction" else ASSUMED,
            )
    setup = setups["data-compression"]
    _, whole, cut = split_resnet(setup, COUNTS)
    yield Prediction(
        claim="data-compression",
        predicted=1.0 - cut.sent_bytes / whole.sent_bytes,
        because=f"{cut.sent_bytes:.0f} bytes of bottleneck for {whole.sent_bytes:.0f} of picture",
        differs="what the data is compared with (a picture's file, as sent or scaled down) was not found",
    )
    ours, other = head_parameters(setup), sum(layer.num_parameters for layer in autoencoder_head(setup))
    yield Prediction(
        claim="head-size",
        predicted=other / ours,
        because=f"{other} weights before the autoencoder's cut, {ours} here",
        differs="where the autoencoder was put, and in which network, was not found: here behind the second stage",
    )


PARTS: dict[str, Callable[[EdgeLatency], float]] = {
    "latency_reduction": lambda found: found.delay_s,
    "power_reduction": lambda found: found.energy_j,
}


def best(setup: Setup, against: str, part: Callable[[EdgeLatency], float]) -> tuple[float, float]:
    """The largest reduction over the rates tried, and the rate at which it is reached."""
    local, whole, ours = split_resnet(setup, COUNTS)
    other = {"local": local, "edge": whole, "autoencoder-based": autoencoder(setup, ours)}[against]
    rates = setup.numbers("radio_rates_swept")
    return max((1.0 - part(at(setup, ours, rate)) / part(at(setup, other, rate)), rate) for rate in rates)


def autoencoder(setup: Setup, ours: SplitPoint) -> SplitPoint:
    """Stem, two whole stages and an encoder on the board; as much is sent, and the rest is the server's."""
    late = list(resnet(COUNTS))[len(list(resnet(COUNTS[:2]))) :]
    return replace(ours, head_flops=flops(autoencoder_head(setup)), tail_flops=flops(late))


def autoencoder_head(setup: Setup) -> list[Convolution]:
    """What runs on the board in front of an autoencoder's cut."""
    side, channels = int(setup.number("num_bottleneck_side")), int(setup.number("num_bottleneck_channels"))
    return [*resnet(COUNTS[:2]), Convolution(height=side, kernel=2, num_inputs=512, num_outputs=channels)]


def head_parameters(setup: Setup) -> int:
    """Weights of the bottleneck's head."""
    stem = next(resnet(COUNTS)).num_parameters
    return stem + 4 * 64 * int(setup.number("num_bottleneck_channels"))
