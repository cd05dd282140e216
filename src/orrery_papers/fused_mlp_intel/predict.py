"""Fused perceptrons: bytes with and without fusion, and what the roofs of two devices make of them."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.kernel.answer import KernelRow
from orrery_papers.shared.kernel_rows import kernel_rows
from orrery_papers.shared.own_devices import device_file

INFERENCE, FORWARD, TRAINING = "inference", "forward", "training"
FUSED, APART = "fused", "layer-by-layer"
CASES = ("benchmark", "image")
PHASES = (INFERENCE, TRAINING)
RIVALS = ("cuda", "ipex", "pytorch")

MOVES_OF_BOTH = 2
"""Kernels of a layer that move its activations in and out: the product, and the activation function."""

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
        ("inference-gain", ("cuda", INFERENCE)),
        ("training-gain", ("cuda", TRAINING)),
        ("ipex-gain", ("ipex", INFERENCE)),
        ("pytorch-gain", ("pytorch", INFERENCE)),
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
            base = perceptron(ours, phase).time_s
            rivals = (perceptron(theirs, phase), perceptron(ours, phase, APART), perceptron(theirs, phase, APART))
            for rival, row in zip(RIVALS, rivals, strict=True):
                words = (
                    f"{base * 1e6:.1f} µs fused, {row.time_s * 1e6:.1f} µs for {rival}, a step of {rows(ours):.3g} rows"
                )
                yield f"{case}-{rival}-{phase}", (row.time_s / base, words)


def _counts(paper: Paper) -> Iterator[Prediction]:
    """Operations for each byte, and the roofs that follow."""
    ours, theirs = paper.setups["analysis"], paper.setups["analysis-h100"]
    for claim, setup, phase in (
        ("intensity", ours, INFERENCE),
        ("intensity-cuda", theirs, INFERENCE),
        ("intensity-forward", ours, FORWARD),
    ):
        row = perceptron(setup, phase)
        words = f"{row.bytes / rows(setup):.0f} bytes a row in {phase}, {row.flops / rows(setup):.3g} operations"
        yield Prediction(claim=claim, predicted=row.flops / row.bytes, because=words)
    apart = perceptron(ours, INFERENCE, APART)
    yield Prediction(
        claim="intensity-unfused",
        predicted=apart.flops / (apart.bytes / MOVES_OF_BOTH),
        because="each product reads and writes its activations; the activation function's own kernel left out",
    )
    for claim, setup, phase in (
        ("roof", ours, INFERENCE),
        ("roof-cuda", theirs, INFERENCE),
        ("roof-training", ours, TRAINING),
        ("reached", ours, INFERENCE),
    ):
        row = perceptron(setup, phase)
        yield Prediction(
            claim=claim,
            predicted=row.flops / row.time_s,
            because=f"{phase} of six layers against products, memory and on-chip reads",
            differs=COUNT if phase == TRAINING else STALLS,
        )


def rows(setup: Setup) -> int:
    """Number of rows in one step."""
    return int(setup.number("num_rows"))


def perceptron(setup: Setup, phase: str, variant: str = FUSED) -> KernelRow:
    """``orrery kernel fused-mlp``: one step on the set-up's device, with products and memory at the paper's rates."""
    facts = {
        "dense_bf16_flops_per_s": setup.number("product_flops_per_s"),
        "memory_bandwidth_bytes_per_s": setup.number("memory_bandwidth_bytes_per_s"),
    }
    limit = setup.number("on_chip_flops_per_s")
    on_chip = {"on_chip_flops_per_s": limit} if limit else {}
    with device_file(setup.word("device"), facts) as device:
        found = kernel_rows(
            "fused-mlp",
            device=device,
            variant=variant,
            phase=phase,
            width=int(setup.number("num_width")),
            depth=int(setup.number("num_matrices")),
            batch=rows(setup),
            rows_per_load=int(setup.number("num_rows_per_load")),
            launch_s=setup.number("kernel_launch_s"),
            **on_chip,
        )
    return found[variant]
