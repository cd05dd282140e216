"""A matrix unit that looks answers up, beside one that multiplies: silicon and energy of a tile, from its counts.

A tile takes m tokens, n outputs and k inputs a cycle. Looking up, it holds a table of 2^(k - 1) entries for every token
and one bit of n k weights; every token and output selects an entry, turns its sign and adds it up. Weights of p bits
take p cycles. Multiplying, every token, output and input has a multiplier and an adder. LUT Tensor Core,
arXiv 2408.06003; circuits from ``orrery.hardware.gates``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from orrery.base.errors import OutOfRange
from orrery.hardware.gates import Circuit, adder, arithmetic, inverter, multiplier, register, selector

ACCUMULATOR_BITS = 32

Numbers = Literal["fp16", "int8"]
BITS = {"fp16": 16, "int8": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Tokens, outputs and inputs that a unit takes a cycle."""

    m: int
    n: int
    k: int

    def __post_init__(self) -> None:
        if min(self.m, self.n, self.k) < 1:
            raise OutOfRange(f"tile {self.m} x {self.n} x {self.k}: write sides of 1 or more.")

    @property
    def num_products(self) -> int:
        """Multiply-adds a cycle."""
        return self.m * self.n * self.k


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCounts:
    """Entries that a tile holds and fetches to look up its products."""

    num_entries: int
    table_bits: int  # held
    weight_bits: int  # held
    num_lookups: int  # a cycle
    num_uses: int  # of every table a cycle


def table_counts(tile: Tile, entry_bits: int) -> TableCounts:
    """Table sizes and look-ups of one tile; halving by symmetry leaves 2^(k - 1) entries a table."""
    entries = tile.m * (1 << (tile.k - 1))
    return TableCounts(
        num_entries=entries,
        table_bits=entries * entry_bits,
        weight_bits=tile.n * tile.k,
        num_lookups=tile.m * tile.n,
        num_uses=tile.n,
    )


def lookup_circuit(tile: Tile, entries: Numbers) -> Circuit:
    """Tables, one-bit weights, and for every token and output a selector, a sign, an adder and a running sum."""
    bits = BITS[entries]
    held = table_counts(tile, bits)
    add = arithmetic("fp16_add") if entries == "fp16" else adder(ACCUMULATOR_BITS)
    lane = selector(1 << (tile.k - 1), bits) + inverter(bits) + add + register(_sum_bits(entries))
    return register(held.table_bits) + register(held.weight_bits) + lane * held.num_lookups


def multiply_circuit(tile: Tile, numbers: Numbers) -> Circuit:
    """Operands of one width, and for every product a multiplier and an adder."""
    bits = BITS[numbers]
    if numbers == "fp16":
        lane = arithmetic("fp16_multiply") + arithmetic("fp16_add")
    else:
        lane = multiplier(bits, bits) + adder(ACCUMULATOR_BITS)
    operands = register(bits * tile.k * (tile.m + tile.n))
    return operands + lane * tile.num_products + register(_sum_bits(numbers)) * (tile.m * tile.n)


def _sum_bits(numbers: Numbers) -> int:
    """Bits of a running sum."""
    return BITS["fp16"] if numbers == "fp16" else ACCUMULATOR_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How many times the products of a multiplying unit a looking-up one does on the same silicon, and a joule."""

    density_ratio: float
    energy_ratio: float


def gain(lookup: Tile, weight_bits: int, entries: Numbers, multiply: Tile, numbers: Numbers) -> Gain:
    """Gain on products with weights of ``weight_bits`` bits, which a looking-up unit takes one bit a cycle."""
    ours, theirs = lookup_circuit(lookup, entries), multiply_circuit(multiply, numbers)
    products = lookup.num_products / weight_bits
    return Gain(
        density_ratio=products / ours.area_m2 / (multiply.num_products / theirs.area_m2),
        energy_ratio=products / ours.energy_j / (multiply.num_products / theirs.energy_j),
    )


def tiles_of(num_products: int) -> Iterator[Tile]:
    """Every tile with that many products a cycle whose sides are powers of two."""
    for m in _powers(num_products):
        for n in _powers(num_products // m):
            yield Tile(m=m, n=n, k=num_products // m // n)


def smallest_tile(num_products: int, entries: Numbers, most_inputs: int = 8) -> Tile:
    """The tile of so many products that takes the least silicon."""
    fit = (tile for tile in tiles_of(num_products) if tile.k <= most_inputs)
    return min(fit, key=lambda tile: lookup_circuit(tile, entries).area_m2)


def _powers(most: int) -> Iterator[int]:
    """Powers of two that divide ``most``."""
    power = 1
    while power <= most and most % power == 0:
        yield power
        power *= 2
