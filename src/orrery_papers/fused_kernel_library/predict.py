"""Fused chains: one kernel for a chain over a batch, against a kernel for each function and array."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.kernel_rows import kernel_rows


def predict(paper: Paper) -> Iterator[Prediction]:
    """The upper end of the range: the longest chain of the benchmarks."""
    times_s = ways_s(paper.setups["long"])
    apart, down, across, both = (times_s[way] for way in ("apart", "vertical", "horizontal", "both"))
    yield Prediction(
        claim="speedup-most",
        predicted=apart / both,
        because=f"{apart * 1e3:.4g} ms apart, {down * 1e3:.4g} ms fused down the chain, "
        f"{across * 1e3:.4g} ms across the batch, {both * 1e3:.4g} ms both ways",
        differs="the abstract gives a bound; which length of chain and batch it means is not stated",
    )


def ways_s(setup: Setup) -> dict[str, float]:
    """Seconds of the set-up's chain by way of fusing it: ``orrery kernel chain``."""
    rows = kernel_rows(
        "chain",
        device=setup.word("device"),
        ops=int(setup.number("num_chain_functions")),
        batch=int(setup.number("num_chain_arrays")),
        pixels=int(setup.number("num_array_elements")),
        launch_s=setup.number("kernel_launch_s"),
    )
    return {way: row.time_s for way, row in rows.items()}
