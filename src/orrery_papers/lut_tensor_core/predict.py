"""LUT Tensor Core: silicon and energy of looking up against multiplying, and the shape of the smallest tile."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.lowbit.lookup_unit import Gain, Numbers, Tile, gain, smallest_tile


def predict(paper: Paper) -> Iterator[Prediction]:
    """Gains from circuits; the tile by searching all of as many products."""
    setup = paper.setups["one-bit-weights"]
    found = {entries: gain_of(setup, entries) for entries in ENTRIES}
    ours = found[entries_of(setup)]
    wide = found["fp16"]
    for claim, value, other in (
        ("density", ours.density_ratio, wide.density_ratio),
        ("energy", ours.energy_ratio, wide.energy_ratio),
    ):
        yield Prediction(
            claim=claim,
            predicted=value,
            because="registers, selectors, signs and adders of the tile against multipliers and adders; "
            f"{other:.1f} with 16-bit entries",
        )
    tile = tile_of(setup, "tile")
    best = smallest_tile(tile.num_products, entries_of(setup))
    because = f"of all tiles of {tile.num_products} products, {best.m} x {best.n} x {best.k} takes the least silicon"
    yield Prediction(claim="outputs-per-token", predicted=best.n / best.m, because=because)
    yield Prediction(claim="inputs-per-table", predicted=float(best.k), because=because)


ENTRIES: tuple[Numbers, ...] = ("fp16", "int8")


def entries_of(setup: Setup) -> Numbers:
    """The format of a table's entries."""
    return "int8" if setup.word("formats_swept") == "int8" else "fp16"


def gain_of(setup: Setup, entries: Numbers) -> Gain:
    """Gain of the set-up's tile with entries of that format over multipliers of the activations'."""
    numbers: Numbers = "fp16" if setup.number("num_activation_bits") == 16 else "int8"
    bits = int(setup.number("num_weight_bits"))
    return gain(tile_of(setup, "tile"), bits, entries, tile_of(setup, "baseline_tile"), numbers)


def tile_of(setup: Setup, line: str) -> Tile:
    """A tile as the set-up writes it: tokens x outputs x inputs."""
    m, n, k = (int(side) for side in setup.word(line).split("x"))
    return Tile(m=m, n=n, k=k)
