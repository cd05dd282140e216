"""Hopper's matrix instructions: multiply-adds against reads of shared memory."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.reproduce.prediction import Prediction
from orrery.kernels.gemm.instruction import MatrixInstruction, num_cycles, peak_frac


def predict(paper: Paper) -> Iterator[Prediction]:
    """Sparse against dense first, for the sweep."""
    (own,) = (claim.setup for claim in paper.claims if claim.id == "small-sparse")
    setup = paper.setups["wgmma"]
    dense = instruction(own)
    sparse = replace(dense, k=2 * dense.k, is_sparse=True)
    for_rates = rates(own)
    gain = sparse.num_macs / num_cycles(sparse, *for_rates) / (dense.num_macs / num_cycles(dense, *for_rates))
    held = replace(sparse, has_left_in_shared=False)
    yield Prediction(
        claim="small-sparse", predicted=gain,
        because=f"{num_cycles(sparse, *for_rates):g} cycles for {sparse.shared_bytes:g} bytes where the multipliers "
        f"take {num_cycles(held, *for_rates):g}; {peak_frac(held, *for_rates):.0%} of the peak with registers",
    )  # fmt: skip
    reached = {
        int(n): peak_frac(replace(instruction(setup), n=int(n)), *rates(setup))
        for n in setup.numbers("instruction_widths")
    }
    yield Prediction(
        claim="width-for-peak", predicted=float(min(n for n, share in reached.items() if share >= 1.0)),
        because="share of the peak by width: " + ", ".join(f"{n} {share:.0%}" for n, share in reached.items()),
    )  # fmt: skip


def instruction(setup: Setup) -> MatrixInstruction:
    """The 16-bit instruction of the set-up, both operands in shared memory."""
    m, n, k = (int(size) for size in setup.word("instruction").split("x"))
    return MatrixInstruction(m=m, n=n, k=k, element_bytes=2.0)


def rates(setup: Setup) -> tuple[float, float]:
    """Multiply-adds and bytes of shared memory a cycle."""
    return setup.number("num_macs_per_cycle"), setup.number("shared_cycle_bytes")
