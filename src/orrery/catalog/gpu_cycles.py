"""Cycles inside GPUs, by generation: latencies of memories and instructions, and bytes a cycle between processors."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orrery.base.errors import OutOfRange
from orrery.base.sources import Fact, read_facts
from orrery.hardware.device import Device

FILE = Path(__file__).parent / "facts" / "gpu_cycles.toml"
GENERATIONS = ("ampere", "ada", "hopper")
"""Generations of which a board was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """Latencies and rates of one generation; what was not measured of it is refused."""

    generation: str
    facts: Mapping[str, Fact]

    def number(self, name: str) -> float:
        """One of them."""
        if name not in self.facts:
            raise OutOfRange(f"{self.generation}: {name} was not measured; those of {', '.join(self.facts)} were.")
        return float(self.facts[name].value)

    def processor_bytes(self, name: str) -> float:
        """Bytes a cycle of one processor, of those that were measured for all together."""
        return self.number(name) / self.number("processors")


@cache
def cycle_facts() -> Mapping[str, Fact]:
    """Return every fact with its source."""
    return read_facts(FILE)[0]


def cycles_of(device: Device) -> Cycles:
    """Latencies and rates of the device's generation; refused where nothing was measured."""
    facts = facts_of(device.generation)
    if not facts:
        raise OutOfRange(
            f"{device.name} is {device.generation}: cycles of instructions and memories were measured on "
            f"{', '.join(GENERATIONS)}."
        )
    return Cycles(generation=device.generation, facts=facts)


def facts_of(generation: str) -> Mapping[str, Fact]:
    """Facts of a generation by their names without it; empty where nothing was measured."""
    start = f"{generation}_"
    named = {name.removeprefix("num_"): fact for name, fact in cycle_facts().items()}
    return {name.removeprefix(start): fact for name, fact in named.items() if name.startswith(start)}
