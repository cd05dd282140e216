"""Arithmetic circuits by energy and area: adders, multipliers, registers, selectors, and what is built of them.

Energies are Horowitz's (ISSCC 2014), areas of the same table and of a 45 nm cell library. Where only the area of a cell
is known, its energy follows from that of an adder of the same area: both are static logic that switches once a use.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orrery.base.errors import OutOfRange, UnknownName
from orrery.base.sources import Fact, read_facts

FILE = Path(__file__).parent / "facts" / "gates.toml"

WORD_BITS = 64
"""Bits that one memory access of the table moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """Circuit that is used once a cycle: the energy of a use, and the silicon it stands on."""

    energy_j: float
    area_m2: float

    def __add__(self, other: "Circuit") -> "Circuit":
        return Circuit(energy_j=self.energy_j + other.energy_j, area_m2=self.area_m2 + other.area_m2)

    def __mul__(self, count: float) -> "Circuit":
        return Circuit(energy_j=self.energy_j * count, area_m2=self.area_m2 * count)


@cache
def gate_facts() -> dict[str, Fact]:
    """The facts by name."""
    return read_facts(FILE)[0]


def arithmetic(name: str) -> Circuit:
    """An adder or multiplier of the table: "int8_add", "fp16_multiply"."""
    facts = gate_facts()
    if f"{name}_j" not in facts or f"{name}_m2" not in facts:
        raise UnknownName(
            "circuit", name, (key.removesuffix("_j") for key in facts if key.endswith(("add_j", "ply_j")))
        )
    return Circuit(energy_j=_value(f"{name}_j"), area_m2=_value(f"{name}_m2"))


def adder(bits: int) -> Circuit:
    """A whole-number adder: the 32-bit one, bit by bit."""
    return arithmetic("int32_add") * (_counted(bits) / 32)


def multiplier(bits: int, other_bits: int) -> Circuit:
    """A whole-number multiplier: the 8-bit one, by the product of widths, as its array of partial bits is."""
    return arithmetic("int8_multiply") * (_counted(bits) * _counted(other_bits) / 64)


def shift_adder(bits: int, other_bits: int) -> Circuit:
    """A multiplier by ``bits`` bits in one go: each gates the other operand, and all are added at their places."""
    return _cell("and2") * (_counted(bits) * _counted(other_bits)) + adder(other_bits) * (bits - 1)


def selector(choices: int, bits: int) -> Circuit:
    """One of ``choices`` words of ``bits`` bits: a tree of two-way cells."""
    return _cell("mux2") * ((_counted(choices) - 1) * bits)


def inverter(bits: int) -> Circuit:
    """A word with its sign turned or not: an exclusive-or a bit."""
    return _cell("xor2") * _counted(bits)


def register(bits: int) -> Circuit:
    """A word held in flip-flops."""
    return _cell("flip_flop") * _counted(bits)


def memory_j_per_bit(name: str) -> float:
    """Energy of reading a bit: "cache_8_kib" or "dram"."""
    return _value(f"{name}_{WORD_BITS}_bits_j") / WORD_BITS


def _cell(name: str) -> Circuit:
    """A cell of known area, with the energy of so much adder."""
    area, one = _value(f"{name}_m2"), arithmetic("int32_add")
    return Circuit(energy_j=area * one.energy_j / one.area_m2, area_m2=area)


def _value(name: str) -> float:
    """A fact of the table in base units."""
    if name not in gate_facts():
        raise UnknownName("fact of circuits", name, gate_facts())
    return float(gate_facts()[name].value)


def _counted(count: int) -> int:
    """A width or a number of choices; at least one."""
    if count < 1:
        raise OutOfRange(f"a circuit of {count} bits or choices; write 1 or more.")
    return count
