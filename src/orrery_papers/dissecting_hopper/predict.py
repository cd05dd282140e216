"""Hopper's matrix instructions: multiply-adds against reads of shared memory."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.gemm.instruction import MatrixInstruction, peak_frac


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
        + ", ".join(f"{n} {share:.0%}" for n, share in reached.items())
        + f"; a sparse one of {sparse.n} reaches {peak_frac(sparse, *speeds):.0%} of its own, "
        f"{peak_frac(held, *speeds):.0%} with the left operand in registers",
    )


def instruction(setup: Setup) -> MatrixInstruction:
    """The 16-bit instruction of the set-up, both operands in shared memory."""
    m, n, k = (int(size) for size in setup.word("instruction").split("x"))
    return MatrixInstruction(m=m, n=n, k=k, element_bytes=2.0)


def rates(setup: Setup) -> tuple[float, float]:
    """Multiply-adds and bytes of shared memory a cycle."""
    return setup.number("num_macs_per_cycle"), setup.number("shared_cycle_bytes")
