"""What trees would bring where the physics answers alone: element-wise kernels, collectives, expert exchanges.

    python tools/fit/learned_survey.py --data ../shared/data

Trees are trained on the fit side by op (or collective and library), all devices together, and judged on shapes that
they have not seen: by inner folds of the fit side, and once more on the calibrate side. Nothing is written. For
element-wise kernels the rows whose stream outweighs their launch are judged apart: a step that replays a graph takes
only the stream.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from learned_rows import Rows, read
from numpy.typing import NDArray
from residual import Size, train

from orrery.evidence.check import check_table
from orrery.evidence.split import CALIBRATE, FIT, SHAPE_COLUMNS, sides
from orrery.evidence.tables import read_table
from orrery.kernels.residual import correction

Floats = NDArray[np.float64]

SIZES = (
    Size(max_leaf_nodes=8, max_depth=4, min_samples_leaf=8, max_trees=60),
    Size(max_leaf_nodes=12, max_depth=5, min_samples_leaf=8, learning_rate=0.15, max_trees=60),
)
FEWEST_SHAPES = 5
NETWORK = {"collectives.csv.gz": "collective", "moe_dispatch_combine.csv.gz": "moe_dispatch"}
NETWORK_SIZES = (
    "message_bytes",
    "num_devices",
    "devices_per_node",
    "tokens",
    "hidden_size",
    "num_experts",
    "experts_per_token",
    "num_sms",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Rows to learn from: features, log(measured / physics), side, shape, and the rows judged apart."""

    name: str
    features: Floats
    off: Floats
    side: NDArray[np.str_]
    shape: NDArray[np.str_]
    apart: NDArray[np.bool_]


def elementwise(rows: list[Rows]) -> Iterator[Part]:
    """Every element-wise op."""
    for op in sorted({r.calibration.op for r in rows if r.is_own and r.calibration.op.startswith("elementwise")}):
        mine = [r for r in rows if r.is_own and r.calibration.op == op]
        yield Part(
            name=op,
            features=np.concatenate([r.features for r in mine]),
            off=np.concatenate([r.off_physics for r in mine]),
            side=np.concatenate([r.side for r in mine]),
            shape=np.concatenate([r.shape for r in mine]),
            apart=np.concatenate([r.physics.overhead_s < 0.5 * r.physics.time_s for r in mine]),
        )


def network(path: Path, what: str) -> Iterator[Part]:
    """Every collective (or exchange) of every library."""
    checked = check_table(read_table(path))
    table, answers = checked.table, checked.answers
    known = checked.scored("time_s") & (checked.measured["time_s"] >= answers.bound_s)
    predicted, side = answers.predicted["time_s"], sides(table, what)
    names = np.char.add(np.char.add(table.words("collective"), " "), table.words("library"))
    shape = np.array(["|".join(map(str, r)) for r in zip(*(table.words(c) for c in SHAPE_COLUMNS[what]), strict=True)])
    sizes = [np.log2(np.maximum(np.nan_to_num(table.numbers(c)), 0.5)) for c in NETWORK_SIZES if c in table.columns]
    with np.errstate(invalid="ignore"):
        x = np.column_stack([*sizes, answers.bound_s / predicted, np.log2(predicted)])
        off = np.log(checked.measured["time_s"] / predicted)
    for name in np.unique(names[known]):
        mine = known & (names == name)
        yield Part(
            name=str(name),
            features=x[mine],
            off=off[mine],
            side=side[mine],
            shape=shape[mine],
            apart=np.zeros(mine.sum(), dtype=bool),
        )


def line(part: Part) -> str:
    """What trees bring to one part: mean |log error| before and after."""
    fit, held = part.side == FIT, part.side == CALIBRATE
    if len(np.unique(part.shape[fit])) < FEWEST_SHAPES or not held.any():
        return f"| {part.name} | {fit.sum()} | too few shapes to learn from | | |"
    names = [str(i) for i in range(part.features.shape[1])]
    trees, report = train(part.features[fit], names, part.off[fit], part.shape[fit], sizes=SIZES)
    left = part.off - np.log(correction(part.features, trees)) if trees else part.off
    cells = [f"{report.without:.3f} -> {report.with_trees:.3f}" + ("" if trees else " (not worth it)")]
    for mine in (held, held & part.apart):
        change = f"{np.mean(np.abs(part.off[mine])):.3f} -> {np.mean(np.abs(left[mine])):.3f}" if mine.any() else ""
        cells.append(change)
    return f"| {part.name} | {fit.sum()} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    data = parser.parse_args().data
    print("| what | fit rows | inner folds | calibrate side | of these, mostly stream |\n|---|---|---|---|---|")
    for part in elementwise(read(data, ("model_layers", "small_kernels"))):
        print(line(part), flush=True)
    for name, what in NETWORK.items():
        for part in network(data / "kernels" / name, what):
            print(line(part), flush=True)


if __name__ == "__main__":
    main()
