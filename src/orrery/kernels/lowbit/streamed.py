"""One token through an engine that streams compressed weights past a chain of multipliers and keeps the rest on chip.

Weights are cut to some of their entries, narrowed, and read once for every token; a kept entry brings its place along.
Multipliers that skip zeros do the kept entries only, those that do not do all of them:

    bytes      entries x kept x (bits + place) / 8, cache, and activations unless they stay on chip
    time       max(bytes / (bandwidth x reached), 2 x entries x (kept or 1) / peak)

What stays off chip goes through channels that it does not own, at a lower share of the bandwidth.
FlightLLM, arXiv 2401.03868.
"""

from dataclasses import dataclass

from orrery.base.errors import OutOfRange


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEngine:
    """Multipliers and a memory, as an FPGA lays them out."""

    memory_bytes_per_s: float
    reached_frac: float  # of the memory's rate, by long reads from a unit's own channels
    crossing_frac: float  # the same by short reads that cross channels
    flops_per_s: float
    skips_zeros: bool = True
    keeps_activations: bool = True

    def __post_init__(self) -> None:
        if not (0 < self.crossing_frac <= self.reached_frac <= 1 and self.memory_bytes_per_s > 0 < self.flops_per_s):
            raise OutOfRange(f"{self}; write rates above 0, and shares up to 1 of which the crossing one is smaller.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Weights that a token passes: so many entries, of which a share is kept at so many bits."""

    num_entries: float
    kept_frac: float = 1.0
    weight_bits: float = 8.0
    place_bits: float = 0.0  # of a kept entry's place within its group; 0 where all are kept

    @property
    def moved_bytes(self) -> float:
        """Bytes read for one token."""
        return self.num_entries * self.kept_frac * (self.weight_bits + self.place_bits) / 8.0


def token_s(
    engine: StreamEngine,
    weights: tuple[Compressed, ...],
    *,
    cache_bytes: float = 0.0,
    activation_bytes: float = 0.0,
    tokens: int = 1,
) -> float:
    """``tokens`` that pass the weights together; the multipliers do them one after the other."""
    read = sum(w.moved_bytes for w in weights) / engine.reached_frac
    spilled = 0.0 if engine.keeps_activations else tokens * activation_bytes
    crossing = (cache_bytes + spilled) / engine.crossing_frac
    done = sum(w.num_entries * (w.kept_frac if engine.skips_zeros else 1.0) for w in weights) * tokens
    return max((read + crossing) / engine.memory_bytes_per_s, 2.0 * done / engine.flops_per_s)
