"""Result of `orrery quantize`: by tensor and format, by format over all tensors, by recipe, and omissions."""

from dataclasses import asdict, dataclass
from typing import Any

from orrery.numerics.error import ErrorReport
from orrery.scenario.answer import to_json
from orrery.scenario.quantize_layers import Measurement
from orrery.scenario.quantize_pairs import Pair
from orrery.scenario.rotation_fit import RotationFit
from orrery.scenario.signal import Pooled


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One tensor in one format."""

    source: str
    tensor: str
    shape: tuple[int, ...]
    format: str
    bits_per_element: float
    size_bytes: float
    wide_frac: float  # share of the columns that stay in 16 bits
    wide_blocks_frac: float  # of blocks of columns, sorted by size, those that hold one
    crest_factor: float
    error: ErrorReport

    def to_json(self) -> dict[str, Any]:
        """One flat object."""
        names = (
            "source",
            "tensor",
            "shape",
            "format",
            "bits_per_element",
            "size_bytes",
            "wide_frac",
            "wide_blocks_frac",
            "crest_factor",
        )
        return {name: getattr(self, name) for name in names} | asdict(self.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """All tensors in one format; ``is_best``: no other format keeps more signal in as few bits."""

    format: str
    bits_per_element: float
    size_bytes: float
    num_tensors: int
    error: Pooled
    is_best: bool

    def to_json(self) -> dict[str, Any]:
        """One flat object."""
        names = ("format", "bits_per_element", "size_bytes", "num_tensors", "is_best")
        return {name: getattr(self, name) for name in names} | asdict(self.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """Omitted numbers, their count, and the reason."""

    source: str
    tensor: str
    format: str  # "" = all of them
    count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeAnswer:
    """Every tensor in every format, and all tensors together, narrowest format first."""

    results: tuple[Result, ...]
    totals: tuple[Total, ...]
    layers: tuple[Measurement, ...]
    declined: tuple[Declined, ...]
    notes: tuple[str, ...]
    pairs: tuple[Pair, ...] = ()  # of formats of weights and of activations
    fitting: RotationFit | None = None  # memory of learning a model's rotations

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units, ``null`` for an SQNR without any noise."""
        return to_json(
            {
                "results": [r.to_json() for r in self.results],
                "totals": [t.to_json() for t in self.totals],
                "layers": self.layers,
                "pairs": self.pairs,
                "declined": self.declined,
                "fitting": self.fitting,
                "notes": self.notes,
            }
        )
