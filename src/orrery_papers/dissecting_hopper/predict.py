"""Hopper's matrix instructions: multiply-adds against reads of shared memory."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.gemm.instruction import MatrixInstruction, num_cycles, peak_frac
from orrery_papers.shared.kernel_rows import kernel_rows


def predict(paper: Paper) -> Iterator[Prediction]:
    """The narrowest instruction that keeps the multipliers busy; what a sparse one of that width reaches beside it."""
    setup = paper.setups["wgmma"]
    wide, speeds = instruction(setup), rates(setup)
    reached = {int(n): peak_frac(replace(wide, n=int(n)), *speeds) for n in setup.numbers("instruction_widths")}
    least = min((n for n, share in reached.items() if share >= 1.0), default=0)
    sparse = replace(wide, n=least or wide.n, k=2 * wide.k, is_sparse=True)
    held = replace(sparse, has_left_in_shared=False)
    yield Prediction(
        claim="width-for-peak",
        predicted=float(least),
        because="share of the peak by width: "
        + ", ".join(f"{n} {percent(share)}" for n, share in reached.items())
        + f"; a sparse one of {sparse.n} reaches {percent(peak_frac(sparse, *speeds))} of its own, "
        f"{percent(peak_frac(held, *speeds))} with the left operand in registers",
    )
    dense = num_cycles(wide, *speeds)
    widest = replace(wide, k=2 * wide.k, is_sparse=True)
    for claim, one in (
        ("dense-cycles", wide),
        ("sparse-shared-cycles", widest),
        ("sparse-registers-cycles", replace(widest, has_left_in_shared=False)),
    ):
        yield Prediction(
            claim=claim,
            predicted=num_cycles(one, *speeds),
            because=f"{one.shared_bytes:.0f} bytes of shared memory; {dense:g} cycles of multiply-adds",
        )
    yield exchanged(paper.setups["exchange"])


def exchanged(setup: Setup) -> Prediction:
    """``orrery kernel block-exchange``: a store and a load of memory over the network between processors."""
    rows = kernel_rows("block-exchange", device=setup.word("device"), message_bytes=int(setup.number("message_bytes")))
    memory, cluster = (rows[name].details["cycles"] for name in ("memory", "cluster-of-2"))
    return Prediction(
        claim="shared-between",
        predicted=memory / cluster,
        because=f"{memory:.0f} cycles of a store and a load, {cluster:.0f} between two processors",
        differs="the claim is the maker's, of another board; the paper's own store and load take 956 to 1110 cycles",
    )


def instruction(setup: Setup) -> MatrixInstruction:
    """The 16-bit instruction of the set-up, both operands in shared memory."""
    m, n, k = (int(size) for size in setup.word("instruction").split("x"))
    return MatrixInstruction(m=m, n=n, k=k, element_bytes=2.0)


def rates(setup: Setup) -> tuple[float, float]:
    """Multiply-adds and bytes of shared memory a cycle."""
    return setup.number("num_macs_per_cycle"), setup.number("shared_cycle_bytes")
