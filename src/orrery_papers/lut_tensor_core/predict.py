"""LUT Tensor Core: silicon and energy of looking up against multiplying, and the shape of the smallest tile."""

from collections.abc import Iterator

from orrery.base.experiment import Row
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.experiments import rows_of


def predict(paper: Paper) -> Iterator[Prediction]:
    """Gains from circuits; the tile by searching all of as many products. Both by orrery experiment lookup-units."""
    setup = paper.setups["one-bit-weights"]
    found = {entries: rows_with(setup, entries) for entries in ("fp16", "int8")}
    rows = found["int8" if setup.word("formats_swept") == "int8" else "fp16"]
    for claim, column in (("density", "density_ratio"), ("energy", "energy_ratio")):
        yield Prediction(
            claim=claim,
            predicted=float(rows[0][column]),
            because="registers, selectors, signs and adders of the tile against multipliers and adders; "
            f"{found['fp16'][0][column]:.1f} with 16-bit entries",
        )
    m, n, k = (int(side) for side in str(rows[-1]["tile"]).split("x"))
    because = f"of all tiles of {m * n * k} products, {m} x {n} x {k} takes the least silicon"
    yield Prediction(claim="outputs-per-token", predicted=n / m, because=because)
    yield Prediction(claim="inputs-per-table", predicted=float(k), because=because)


def rows_with(setup: Setup, entries: str) -> tuple[Row, ...]:
    """The set-up's tile with entries of that format, then the smallest tile, where that is another."""
    sizes = {
        "tile": setup.word("tile").replace(" ", ""),
        "multiply_tile": setup.word("baseline_tile").replace(" ", ""),
        "weight_bits": f"{setup.number('num_weight_bits'):g}",
        "entries": entries,
        "multiplied": "fp16" if setup.number("num_activation_bits") == 16 else "int8",
    }
    return rows_of("lookup-units", sizes)
