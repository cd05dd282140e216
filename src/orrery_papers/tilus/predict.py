"""Tilus: packed loads of true bits against loads that are padded, converted through shared memory, or wait for it."""

from collections.abc import Iterator

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.models.model import Model
from orrery_papers.shared.kernel_rows import kernel_rows
from orrery_papers.shared.layer_costs import geometric_mean, over_linears, words

BASELINES = {
    "over-triton": "converted",
    "over-ladder": "serial-loads",
    "over-quantllm": "packed",
    "over-marlin": "packed",
}
"""Route of weights to the matrix unit in each baseline."""

BECAUSE = {
    "converted": "the same bits, and every weight passes through shared memory out and in",
    "serial-loads": "the same bits, and loads wait for the passes through shared memory",
    "packed": "the same bits and instructions: no mechanism tells the two apart",
}
DIFFERS = (
    "only padding and conversion are predicted; the rest of each ratio is how far a compiler's or a kernel's own "
    "schedule stays from the memory roof, which its authors' hardware runs decide"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The geometric mean over models, batches and the widths that the baseline has."""
    for claim in paper.claims:
        variant = BASELINES[claim.id]
        yield Prediction(claim=claim.id, predicted=speedup(claim, variant), because=BECAUSE[variant], differs=DIFFERS)


def speedup(claim: Claim, variant: str) -> float:
    """Time of all linear layers with the baseline's loads over time with packed ones."""
    setup = claim.setup
    models = [get_model(name) for name in words(setup.word("models"))]
    ratios = [
        layers_s(setup, model, int(batch), int(bits), variant) / layers_s(setup, model, int(batch), int(bits), "packed")
        for model in models
        for batch in setup.numbers("batches_swept")
        for bits in setup.numbers("bits_swept")
    ]
    return geometric_mean(ratios)


def layers_s(setup: Setup, model: Model, batch: int, bits: int, variant: str) -> float:
    """All linear layers for one token of every sequence: ``orrery kernel gemm``."""
    weights = f"int{bits}/{setup.number('num_block_elements'):g}:fp16"

    def time_s(n: int, k: int) -> float:
        rows = kernel_rows("gemm", device=setup.word("device"), m=batch, n=n, k=k, weights=weights, variant=variant)
        return rows[variant].time_s

    return over_linears(model, time_s)
