"""Fused chains: one kernel for a chain over a batch, against a kernel for each function and array."""

from collections.abc import Iterator

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.fused.chain import Chain, chain_s


def predict(paper: Paper) -> Iterator[Prediction]:
    """The upper end of the range: the longest chain of the benchmarks."""
    apart, down, across, both = (times_s(paper.setups["long"], *kinds) for kinds in KINDS)
    yield Prediction(
        claim="speedup-most",
        predicted=apart / both,
        because=f"{apart * 1e3:.4g} ms apart, {down * 1e3:.4g} ms fused down the chain, "
        f"{across * 1e3:.4g} ms across the batch, {both * 1e3:.4g} ms both ways",
        differs="the abstract gives a bound; which length of chain and batch it means is not stated",
    )


KINDS = ((False, False), (True, False), (False, True), (True, True))
"""Fused down the chain, and across the batch."""


def times_s(setup: Setup, is_vertical: bool, is_horizontal: bool) -> float:
    """The set-up's chain, fused so."""
    chain = Chain(
        num_functions=int(setup.number("num_chain_functions")),
        num_arrays=int(setup.number("num_chain_arrays")),
        num_elements=int(setup.number("num_array_elements")),
        element_bytes=setup.number("array_element_bytes"),
    )
    device = get_device(setup.word("device"))
    return chain_s(chain, device, setup.number("kernel_launch_s"), is_vertical=is_vertical, is_horizontal=is_horizontal)
