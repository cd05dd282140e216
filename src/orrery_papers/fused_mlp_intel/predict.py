"""Fused perceptrons: bytes with and without fusion, and what the roofs of two devices make of them."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.hardware.roofs import Roofs
from orrery.kernels.fused.perceptron import Perceptron, Phase, fused_s, unfused_s

CASES = ("benchmark", "image")
PHASES = (Phase.INFERENCE, Phase.TRAINING)
RIVALS = ("cuda", "ipex", "pytorch")

STALLS = "the fused kernel stalls on its weights in shared local memory and reaches 140 of 244 TFLOP/s, says the paper"
FRAMEWORK = "eager kernels of narrow matrices reach a fraction of the bandwidth that they are given here"
COUNT = "which activations and gradients the paper counts: fewer than five moves a layer"
RADIANCE = "the paper's best is the radiance field's network (29.97 times), whose layers were not found"
WHY = {"cuda": f"{STALLS}; what the older kernel loses is not described", "ipex": f"{FRAMEWORK}; {STALLS}"}


def predict(paper: Paper) -> Iterator[Prediction]:
    """Table I by device, kernel and phase; the headline is its best; then the counts behind it."""
    rivals = dict(_table(paper))
    best = {(r, phase): max(rivals[f"{case}-{r}-{phase}"][0] for case in CASES) for r in RIVALS for phase in PHASES}
    for name, (gain, because) in rivals.items():
        yield Prediction(claim=name, predicted=gain, because=because, differs=WHY.get(name.split("-")[1], FRAMEWORK))
    for claim, key in (
        ("inference-gain", ("cuda", Phase.INFERENCE)),
        ("training-gain", ("cuda", Phase.TRAINING)),
        ("ipex-gain", ("ipex", Phase.INFERENCE)),
        ("pytorch-gain", ("pytorch", Phase.INFERENCE)),
    ):
        yield Prediction(
            claim=claim,
            predicted=best[key],
            because="best of the function and image networks of table I",
            differs=f"{RADIANCE}; {WHY['ipex']}" if claim == "ipex-gain" else WHY.get(key[0], FRAMEWORK),
        )
    yield from _counts(paper)


def _table(paper: Paper) -> Iterator[tuple[str, tuple[float, str]]]:
    """How much longer each rival takes, by network and phase."""
    for case in CASES:
        ours, theirs = paper.setups[case], paper.setups[f"{case}-h100"]
        for phase in PHASES:
            base = fused(ours, phase)
            for rival, time_s in zip(
                RIVALS, (fused(theirs, phase), unfused(ours, phase), unfused(theirs, phase)), strict=True
            ):
                words = f"{base * 1e6:.1f} us fused, {time_s * 1e6:.1f} us for {rival}, a step of {rows(ours):.3g} rows"
                yield f"{case}-{rival}-{phase}", (time_s / base, words)


def _counts(paper: Paper) -> Iterator[Prediction]:
    """Operations for each byte, and the roofs that follow."""
    ours, theirs = paper.setups["analysis"], paper.setups["analysis-h100"]
    for claim, setup, phase in (
        ("intensity", ours, Phase.INFERENCE),
        ("intensity-cuda", theirs, Phase.INFERENCE),
        ("intensity-forward", ours, Phase.FORWARD),
    ):
        yield Prediction(
            claim=claim,
            predicted=network(setup).flops(phase) / moved(setup, phase),
            because=f"{moved(setup, phase):.0f} bytes a row in {phase}, {network(setup).flops(phase):.3g} operations",
        )
    one = network(ours)
    products_bytes = one.unfused_bytes(Phase.INFERENCE) / 2.0
    yield Prediction(
        claim="intensity-unfused",
        predicted=one.flops(Phase.INFERENCE) / products_bytes,
        because="each product reads and writes its activations; the activation function's own kernel left out",
    )
    for claim, setup, phase in (
        ("roof", ours, Phase.INFERENCE),
        ("roof-cuda", theirs, Phase.INFERENCE),
        ("roof-training", ours, Phase.TRAINING),
        ("reached", ours, Phase.INFERENCE),
    ):
        yield Prediction(
            claim=claim,
            predicted=rows(setup) * network(setup).flops(phase) / fused(setup, phase),
            because=f"{phase} of six layers against products, memory and on-chip reads",
            differs=COUNT if phase is Phase.TRAINING else STALLS,
        )


def network(setup: Setup) -> Perceptron:
    """The set-up's perceptron."""
    return Perceptron(num_width=int(setup.number("num_width")), num_matrices=int(setup.number("num_matrices")))


def rows(setup: Setup) -> int:
    """Number of rows in one step."""
    return int(setup.number("num_rows"))


def moved(setup: Setup, phase: Phase) -> float:
    """Bytes of one row in the fused kernel."""
    return network(setup).fused_bytes(phase, int(setup.number("num_rows_per_load")))


def fused(setup: Setup, phase: Phase) -> float:
    """One step in one kernel, weights read on chip where the paper counts that."""
    peak = setup.number("product_flops_per_s")
    limits = roofs(setup, min(peak, setup.number("on_chip_flops_per_s", peak)))
    together, launch_s = int(setup.number("num_rows_per_load")), setup.number("kernel_launch_s")
    return fused_s(network(setup), phase, rows(setup), together, limits, launch_s)


def unfused(setup: Setup, phase: Phase) -> float:
    """One step layer by layer, by an eager framework."""
    limits = roofs(setup, setup.number("product_flops_per_s"))
    return unfused_s(network(setup), phase, rows(setup), limits, setup.number("kernel_launch_s"))


def roofs(setup: Setup, flops_per_s: float) -> Roofs:
    """The paper's own count for the set-up's device, with products at that rate."""
    return Roofs(flops_per_s=flops_per_s, bytes_per_s=setup.number("memory_bandwidth_bytes_per_s"))
