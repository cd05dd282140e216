"""I-ViT: vision transformers in FP32 and in integers throughout, as ``orrery estimate`` times both."""

from collections.abc import Iterator
from math import prod
from typing import Any

from orrery.base.errors import FactError
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.estimates import estimate
from orrery.scenario.image_model import ImageModelAnswer


def predict(paper: Paper) -> Iterator[Prediction]:
    """The geometric mean over the models."""
    gains = {name: gain(setup) for name, setup in paper.setups.items()}
    yield Prediction(
        claim="speedup",
        predicted=prod(gains.values()) ** (1.0 / len(gains)),
        because=", ".join(f"{name} {found:.2f}" for name, found in gains.items()),
        differs="products run on the matrix units here, whose INT8 rate is 32 times that of FP32 on the vector units; "
        "TVM's kernels, and which units they took, are not stated",
    )


def gain(setup: Setup) -> float:
    """Time of the FP32 model over that of the integer one."""
    return latency_s(setup, weights="fp32") / latency_s(setup, weights="int8", integer_only=True)


def latency_s(setup: Setup, **settings: Any) -> float:
    """Seconds of the set-up's batch."""
    batch = int(setup.number("num_batch"))
    found = estimate(model=setup.word("model"), device=setup.word("device"), batch=batch, **settings)
    if not isinstance(found, ImageModelAnswer):
        raise FactError(f"setup {setup.name}: {found}; state one that fits.")
    return found.latency_s
