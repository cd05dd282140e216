"""The survey's classes of formats, and that every format that stands for one really stores and reads back a tensor."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.draws import draw
from orrery.numerics.error import compare
from orrery.numerics.quantise import round_trip

MIN_SQNR_DB = 0.0
"""Where noise is as large as the signal, nothing is stored."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Classes whose every format runs."""
    x = draw("normal", (64, 256), 0)
    losses = {
        name: {f: compare(x, round_trip(x, f)).sqnr_db for f in members(setup)} for name, setup in paper.setups.items()
    }
    runs = [name for name, found in losses.items() if min(found.values()) > MIN_SQNR_DB]
    text = "; ".join(
        f"{name}: " + ", ".join(f"{f} {db:.0f} dB" for f, db in found.items()) for name, found in losses.items()
    )
    yield Prediction(claim="classes", predicted=float(len(runs)), because=f"signal to noise on normal numbers: {text}")


def members(setup: Setup) -> list[str]:
    """The formats that stand for a class."""
    return [word.strip() for word in setup.word("formats_swept").split(",")]
