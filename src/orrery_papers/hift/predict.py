"""HiFT: what a 7B model keeps on one device when a layer learns at a time."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.offloaded import device_bytes

FP32_BYTES = 4.0


def predict(paper: Paper) -> Iterator[Prediction]:
    """Peaks from bytes."""
    claims = {claim.id: claim for claim in paper.claims}
    setup = claims["saving"].setup
    layerwise = peak_bytes(setup)
    yield Prediction(
        claim="saving",
        predicted=1.0 - layerwise / device_bytes(setup, "all-on-device", recompute="none"),
        because="gradients and moments of one layer instead of all, parameters and activations in full",
    )
    yield Prediction(
        claim="a6000", predicted=layerwise, because="4 bytes a parameter, 12 of one layer, activations, the process"
    )
    yield Prediction(
        claim="mixed-24gb",
        predicted=peak_bytes(claims["mixed-24gb"].setup),
        because="2 bytes a parameter, 14 of one layer, whose FP32 copy comes with it",
    )
    yield Prediction(claim="load-1b", predicted=1e9 * FP32_BYTES, because="4 bytes a parameter")


def peak_bytes(setup: Setup) -> float:
    """Bytes on the device when a layer learns at a time; nothing is recomputed."""
    return device_bytes(setup, "layerwise-update", recompute="none")
