"""The design space of FP4 training: every recipe on a small regression, and the front of loss and operations."""

from collections.abc import Iterator

from orrery.base.experiment import Row
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.scenario.experiment import run_experiment

STOCHASTIC = "stochastic"

DIFFERS = (
    "recipes near the front differ by less than seeds do; forward error decides, a rotation in blocks adds to it, "
    "and batches are noisier than rounded gradients; the paper's front is of larger tasks"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Points of the front, and the value of the three stabilisers and of a wider scale."""
    rows = run_experiment("fp4-design-space", steps=int(paper.setups["regression"].number("num_steps"))).rows
    front = [row for row in rows if row["is_on_front"]]
    yield Prediction(
        claim="trio-on-front",
        predicted=float(sum(map(has_trio, front))),
        because="; ".join(map(describe, front)),
        differs=DIFFERS,
    )
    best = min(filter(has_trio, rows), key=lambda row: float(row["gap"]))
    bare = plain(rows, str(best["scale"]))
    yield Prediction(
        claim="trio-over-plain",
        predicted=float(bare["gap"]) / float(best["gap"]),
        because=f"{describe(best)} against {describe(bare)}",
        differs=DIFFERS,
    )
    narrow, wide = plain(rows, "e4m3fn"), plain(rows, "ue5m3")
    yield Prediction(
        claim="ue5m3-range",
        predicted=float(narrow["gap"]) / float(wide["gap"]),
        because=f"{describe(narrow)} against {describe(wide)}: small gradients fall below the least e4m3 scale",
    )


def has_trio(row: Row) -> bool:
    """Whether a recipe rotates, scales the tensor and rounds gradients stochastically."""
    return bool(row["hadamard_elements"] and row["has_tensor_scale"] and row["rounding"] == STOCHASTIC)


def plain(rows: tuple[Row, ...], scale: str) -> Row:
    """The recipe of that scale format without any stabiliser."""
    return next(row for row in rows if row["scale"] == scale and not row["extra_operations"])


def describe(row: Row) -> str:
    """A recipe in a few words."""
    parts = (
        str(row["scale"]),
        "tensor scale" if row["has_tensor_scale"] else "",
        "rotation" if row["hadamard_elements"] else "",
        "slope" if row["slope_order"] else "",
        STOCHASTIC if row["rounding"] == STOCHASTIC else "",
    )
    named = ", ".join(part for part in parts if part)
    return f"{named}: gap {float(row['gap']):.3g}, {float(row['extra_operations']):.3g} operations"
