"""Matrix units that look products up beside units that multiply, by silicon and energy. [lut-tensor-core-2024]"""

from collections.abc import Iterator
from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, numbers
from orrery.kernels.lowbit.lookup_unit import BITS, Numbers, Tile, gain, lookup_circuit, multiply_circuit, smallest_tile

MAX_SIDE, MAX_INPUTS = 4096, 16
"""Sides of a tile; its inputs are fewer, because a table has 2^(inputs - 1) entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Tiles as tokens x outputs x inputs a cycle, and the numbers of both units; weights take a cycle for each bit."""

    tile: str = "2x64x4"
    multiply_tile: str = "8x4x16"
    weight_bits: str = "1,2,4,8"
    entries: str = "int8"  # of the tables: int8, fp16
    multiplied: str = "fp16"  # what the other unit multiplies: int8, fp16


def run(request: Run) -> tuple[Row, ...]:
    """A row for each width of weights, with the tile as written and with that of as many products on least silicon."""
    sizes: Sizes = request.sizes
    entries, multiplied = _numbers("entries", sizes.entries), _numbers("multiplied", sizes.multiplied)
    written = _tile("tile", sizes.tile, MAX_INPUTS)
    other = _tile("multiply_tile", sizes.multiply_tile, MAX_SIDE)
    widths = [int(bits) for bits in numbers("weight_bits", sizes.weight_bits, least=1, most=16)]
    tiles = dict.fromkeys((written, smallest_tile(written.num_products, entries)))
    return tuple(_rows(widths, tiles, entries, other, multiplied))


def _rows(widths: list[int], tiles: dict[Tile, None], entries: Numbers, other: Tile, kind: Numbers) -> Iterator[Row]:
    multiply_area_m2 = multiply_circuit(other, kind).area_m2
    for bits in widths:
        for tile in tiles:
            found = gain(tile, bits, entries, other, kind)
            yield {
                "weight_bits": bits,
                "tile": f"{tile.m}x{tile.n}x{tile.k}",
                "products_per_cycle": tile.num_products / bits,
                "area_m2": lookup_circuit(tile, entries).area_m2,
                "multiply_area_m2": multiply_area_m2,
                "density_ratio": found.density_ratio,
                "energy_ratio": found.energy_ratio,
            }


def _numbers(name: str, text: str) -> Numbers:
    if text not in BITS:
        raise ScenarioError(f"set: {name} = {text!r}; write {' or '.join(BITS)}.")
    return "fp16" if text == "fp16" else "int8"


def _tile(name: str, text: str, most_inputs: int) -> Tile:
    sides = text.replace(" ", "").split("x")
    fit = len(sides) == 3 and all(side.isascii() and side.isdigit() and len(side) < 6 for side in sides)
    m, n, k = (int(side) for side in sides) if fit else (0, 0, 0)
    if not (0 < m <= MAX_SIDE and 0 < n <= MAX_SIDE and 0 < k <= most_inputs):
        raise ScenarioError(
            f"set: {name} = {text[:80]!r}; write tokens x outputs x inputs, such as 2x64x4, inputs up to {most_inputs}."
        )
    return Tile(m=m, n=n, k=k)


EXPERIMENT = Experiment(
    name="lookup-units",
    question="How many products of narrow weights do look-up tables give on the silicon and the energy of multipliers?",
    run=run,
    num_steps=1,
    claims=("lut-tensor-core",),
    sizes=Sizes,
    keys=("weight_bits", "tile"),
    curve=("weight_bits", "density_ratio"),
)
