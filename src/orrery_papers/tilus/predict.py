"""Tilus: packed loads of true bits against loads that are padded, converted through shared memory, or wait for it."""

from collections.abc import Iterator

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.lowbit.packed import Loads, packed_gemm_s
from orrery.models.model import Model
from orrery_papers.shared.layer_costs import geometric_mean, over_linears, words

BASELINES = {
    "over-triton": Loads.CONVERTED,
    "over-ladder": Loads.SERIAL,
    "over-quantllm": Loads.PACKED,
    "over-marlin": Loads.PACKED,
}
"""Route of weights to the matrix unit in each baseline."""

BECAUSE = {
    Loads.CONVERTED: "the same bits, and every weight passes through shared memory out and in",
    Loads.SERIAL: "the same bits, and loads wait for the passes through shared memory",
    Loads.PACKED: "the same bits and instructions: no mechanism tells the two apart",
}
DIFFERS = (
    "only padding and conversion are predicted; the rest of each ratio is how far a compiler's or a kernel's own "
    "schedule stays from the memory roof, which its authors' hardware runs decide"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The geometric mean over models, batches and the widths that the baseline has."""
    for claim in paper.claims:
        loads = BASELINES[claim.id]
        yield Prediction(claim=claim.id, predicted=speedup(claim, loads), because=BECAUSE[loads], differs=DIFFERS)


def speedup(claim: Claim, loads: Loads) -> float:
    """Time of all linear layers with the baseline's loads over time with packed ones."""
    setup = claim.setup
    models = [get_model(name) for name in words(setup.word("models"))]
    ratios = [
        layers_s(setup, model, int(batch), int(bits), loads)
        / layers_s(setup, model, int(batch), int(bits), Loads.PACKED)
        for model in models
        for batch in setup.numbers("batches_swept")
        for bits in setup.numbers("bits_swept")
    ]
    return geometric_mean(ratios)


def layers_s(setup: Setup, model: Model, batch: int, bits: int, loads: Loads) -> float:
    """All linear layers for one token of every sequence."""
    device, group = get_device(setup.word("device")), int(setup.number("num_block_elements"))
    return over_linears(model, lambda n, k: float(packed_gemm_s(batch, n, k, bits, device, loads, group)))
