"""MixPE: arrays on the same silicon that dequantise every element, or scale every group and shift and add."""

from collections.abc import Iterator

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.lowbit.systolic import Array, Element, array_on, element_circuit, run
from orrery_papers.shared.layer_costs import linear_shapes


def predict(paper: Paper) -> Iterator[Prediction]:
    """Cycles and energy of all linear layers of a prompt."""
    setup = paper.setups["w4a8"]
    widths = int(setup.number("num_weight_bits")), int(setup.number("num_activation_bits"))
    side = int(setup.number("num_array_rows"))
    area = element_circuit(Element.ELEMENT_SCALED, *widths).area_m2 * side**2
    theirs, ours = (array_on(area, element, *widths) for element in (Element.ELEMENT_SCALED, Element.SHIFT_ADDED))
    cycles, energy = (tuple(values) for values in zip(work(setup, theirs), work(setup, ours), strict=True))
    yield Prediction(
        claim="speedup",
        predicted=cycles[0] / cycles[1],
        because=f"arrays of {theirs.side} and {ours.side} elements a side on the same silicon",
        differs="a dequantising element is about 1.6 times as large here, running sum and registers included; the rest "
        "lies in which accelerators the paper compares with, whose elements are wider",
    )
    yield Prediction(
        claim="energy",
        predicted=energy[0] / energy[1],
        because="elements, on-chip memory once a pass and off-chip memory once, of published energies",
    )


def work(setup: Setup, array: Array) -> tuple[float, float]:
    """Cycles and joules of a prompt through the model's linear layers."""
    tokens, group = int(setup.number("input_tokens")), int(setup.number("num_block_elements"))
    runs = [(count, run(tokens, n, k, array, group)) for n, k, count in linear_shapes(get_model(setup.word("model")))]
    return sum(c * r.num_cycles for c, r in runs), sum(c * r.energy_j for c, r in runs)
