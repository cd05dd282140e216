"""MixPE: arrays on the same silicon that dequantise every element, or scale every group and shift and add."""

from collections.abc import Iterator

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.experiments import rows_of
from orrery_papers.shared.layer_costs import linear_shapes


def predict(paper: Paper) -> Iterator[Prediction]:
    """Cycles and energy of all linear layers of a prompt, by orrery experiment scaled-arrays."""
    found = {row["element"]: row for row in rows_of("scaled-arrays", sizes_of(paper.setups["w4a8"]))}
    theirs, ours = found["element-scaled"], found["shift-added"]
    yield Prediction(
        claim="speedup",
        predicted=float(ours["speedup"]),
        because=f"arrays of {theirs['side']} and {ours['side']} elements a side on the same silicon",
        differs="a dequantising element is about 1.6 times as large here, running sum and registers included; the rest "
        "lies in which accelerators the paper compares with, whose elements are wider",
    )
    yield Prediction(
        claim="energy",
        predicted=float(ours["energy_ratio"]),
        because="elements, on-chip memory once a pass and off-chip memory once, of published energies",
    )


def sizes_of(setup: Setup) -> dict[str, float | str]:
    """The set-up as sizes of the experiment."""
    shapes = linear_shapes(get_model(setup.word("model")))
    return {
        "shapes": ",".join(f"{n}x{k}x{count}" for n, k, count in shapes),
        "tokens": setup.number("input_tokens"),
        "weight_bits": f"{setup.number('num_weight_bits'):g}",
        "activation_bits": setup.number("num_activation_bits"),
        "group_elements": setup.number("num_block_elements"),
        "side": setup.number("num_array_rows"),
    }
