"""BottleFit: ResNet-152 on a board, on a server, behind an autoencoder, and cut at an early bottleneck."""

from collections.abc import Callable, Iterator
from pathlib import Path

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.edge.cuts import Cut
from orrery.models.image_networks import network_of
from orrery.models.network_file import read_network
from orrery_papers.shared.split_boards import Trip, answer_at, at, cut_named

NETWORK = "resnet-152"
OURS = Path(__file__).with_name("bottlefit.toml")
LATE = "conv3_8"
"""Where the compared autoencoder is put: behind the second stage, where BottleFit's decoder ends."""

ASSUMED = "boards, server and radio and what they draw are assumed, and the best of the rates tried is taken"
AVERAGE = f"energy of one input; whether the paper's power is a mean over another interval was not found; {ASSUMED}"

PARTS: dict[str, Callable[[Trip], float]] = {
    "latency_reduction": lambda found: found.delay_s,
    "power_reduction": lambda found: found.energy_j,
}


def predict(paper: Paper) -> Iterator[Prediction]:
    """Reductions at the best of the rates, then sizes."""
    setups = {claim.id: claim.setup for claim in paper.claims}
    for claim in paper.claims:
        if claim.metric in PARTS:
            found, rate = best(claim.setup, claim.baseline.split()[0], PARTS[claim.metric])
            yield Prediction(
                claim=claim.id,
                predicted=found,
                because=f"at {rate / 125e3:g} Mb/s, against {claim.baseline}",
                differs=AVERAGE if claim.metric == "power_reduction" else ASSUMED,
            )
    setup = setups["data-compression"]
    sent, whole = ours(setup).sent_bytes, setup.number("input_bytes")
    yield Prediction(
        claim="data-compression",
        predicted=1.0 - sent / whole,
        because=f"{sent:.0f} bytes of bottleneck for {whole:.0f} of picture",
        differs="what the data is compared with (a picture's file, as sent or scaled down) was not found",
    )
    own, other = head_weights()
    yield Prediction(
        claim="head-size",
        predicted=other / own,
        because=f"{other} weights before the autoencoder's cut, {own} here",
        differs="where the autoencoder was put, and in which network, was not found: here behind the second stage",
    )


def best(setup: Setup, against: str, part: Callable[[Trip], float]) -> tuple[float, float]:
    """The largest reduction over the rates tried, and the rate at which it is reached."""
    cut, other = ours(setup), baselines(setup)[against]
    rates = setup.numbers("radio_rates_swept")
    return max((1.0 - part(at(setup, cut, rate)) / part(at(setup, other, rate)), rate) for rate in rates)


def ours(setup: Setup) -> Cut:
    """The network with its first stages replaced, handed over behind the encoder."""
    return cut_named(answer_at(setup, OURS, sent_bits=setup.number("num_bottleneck_bits")), "encoder")


def baselines(setup: Setup) -> dict[str, Cut]:
    """All on the board, all on the server, and an autoencoder of as many channels behind two whole stages."""
    late = f"{LATE}:{setup.number('num_bottleneck_channels'):.0f}"
    answer = answer_at(setup, NETWORK, bottleneck=late, bottleneck_bits=setup.number("num_bottleneck_bits"))
    names = {"local": "device", "edge": "server", "autoencoder-based": late}
    return {key: cut_named(answer, name) for key, name in names.items()}


def head_weights() -> tuple[int, int]:
    """Weights on the board: up to our encoder, and up to the autoencoder's."""
    own = sum(unit.num_weights for unit in read_network(OURS).units[:2])
    whole = network_of(NETWORK)
    index = [unit.name for unit in whole.units].index(LATE)
    encoder = whole.units[index].squeezed(read_network(OURS).units[1].num_channels).encoder
    return own, sum(unit.num_weights for unit in whole.units[: index + 1]) + encoder.num_weights
