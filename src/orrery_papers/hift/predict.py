"""HiFT: what a 7B model keeps on one device when a layer learns at a time."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.offload.tiers import CONTEXT_BYTES
from orrery_papers.shared.offloaded import step_of, tiers_for, work_of


def predict(paper: Paper) -> Iterator[Prediction]:
    """Peaks from bytes."""
    claims = {claim.id: claim for claim in paper.claims}
    setup = claims["saving"].setup
    layerwise, whole = peak_bytes(setup, "layerwise-update"), peak_bytes(setup, "all-on-device")
    yield Prediction(
        claim="saving",
        predicted=1.0 - layerwise / whole,
        because="gradients and moments of one layer instead of all, parameters and activations in full",
    )
    yield Prediction(
        claim="a6000", predicted=layerwise, because="4 bytes a parameter, 12 of one layer, activations, the process"
    )
    yield Prediction(
        claim="mixed-24gb",
        predicted=peak_bytes(claims["mixed-24gb"].setup, "layerwise-update"),
        because="2 bytes a parameter, 14 of one layer, whose FP32 copy comes with it",
    )
    work = work_of(setup)
    yield Prediction(claim="load-1b", predicted=1e9 * work.parameter_bytes, because="4 bytes a parameter")


def peak_bytes(setup: Setup, name: str) -> float:
    """Bytes on the device, the process itself included; nothing is recomputed."""
    return step_of(name, work_of(setup), tiers_for(setup), recomputes=False).held.gpu_bytes + CONTEXT_BYTES
