"""CBNet: an autoencoder before a small network, against a network with an early exit."""

from collections.abc import Iterator
from pathlib import Path

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.split import SplitAnswer
from orrery_papers.shared.split_boards import answer_at, cut_named

NETWORK = Path(__file__).with_name("lenet.toml")
PIXELS = 784

DIFFERS = (
    "the layers that the authors compare are not known; here nearly every cost is a layer's call, and an autoencoder "
    "of four layers leaves little to gain over a network of four more"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Expected latency with exits, or of the better extreme, over the pipeline's, and the energy that follows."""
    for claim in paper.claims:
        if claim.missing:
            continue
        answer = converted(claim.setup)
        exiting, ours = (cut_named(answer, name).head_s for name in ("device", "converted"))
        ratio = exiting / ours
        yield Prediction(
            claim=claim.id,
            predicted=1.0 - 1.0 / ratio if claim.metric == "energy_reduction" else ratio,
            because=f"{exiting * 1e3:.2f} ms expected with an exit that answers "
            f"{percent(claim.setup.number('easy_frac'))}, {ours * 1e3:.2f} ms converted, which pays below "
            f"{percent(answer.converter_pays_below_frac or 0.0)} easy inputs",
            differs=DIFFERS,
        )


def converted(setup: Setup) -> SplitAnswer:
    """The network with its exit and the autoencoder in front of it, on the set-up's device."""
    hidden, code = setup.number("num_hidden_features"), setup.number("num_code_features")
    widths = ",".join(f"{width:.0f}" for width in (PIXELS, hidden, code, hidden, PIXELS))
    return answer_at(setup, NETWORK, exits="trunk", easy_frac=setup.number("easy_frac"), converter=widths)
