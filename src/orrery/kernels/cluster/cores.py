"""A cluster of in-order cores, as its loops meet it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """Cores that start one instruction a cycle each; hardware loops cost nothing a turn."""

    num_cores: int
    num_float_units: int  # shared among the cores; each starts one operation a cycle
    num_registers: int = 32
    num_load_cycles: float = 1.0  # from memory beside the cores, without conflicts
    num_banks: int = 0  # of that memory; 0 = never in conflict
    num_barrier_cycles: float = 0.0  # until all cores have met

    @property
    def conflict_ratio(self) -> float:
        """How many times as long an access takes where all cores draw a bank each: 1 + (cores - 1) / (2 banks)."""
        return 1.0 + (self.num_cores - 1) / (2.0 * self.num_banks) if self.num_banks else 1.0

    @property
    def float_ratio(self) -> float:
        """Cycles of a core between two operations of its share of the float units."""
        return max(1.0, self.num_cores / self.num_float_units) if self.num_float_units else 0.0
