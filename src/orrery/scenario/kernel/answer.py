"""Answer of `orrery kernel`: a row for every device, point of the sweep, format, library and variant."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orrery.base.cost import Interval
from orrery.scenario.answer import to_json
from orrery.scenario.kernel.operator import Size


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Measured time of the same operator on this machine."""

    time_s: float
    spread_frac: float  # robust standard deviation of the samples over their median
    num_samples: int
    library: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """One way of computing one operator at one size."""

    device: str
    op: str
    variant: str
    format: str
    engine: str  # whose kernels' constants these are; blank where none were measured
    sizes: Mapping[str, Size]
    varied: Mapping[str, Size]
    time_s: float
    interval: Interval | None
    flops: float
    bytes: float
    roofs_s: Mapping[str, float]
    bound_by: str
    details: Mapping[str, Any]
    because: str
    measured: Measured | None = None

    def to_json(self) -> dict[str, Any]:
        """The row in the shape that scripts rely on."""
        ends = {} if self.interval is None else {"time_s": self.interval}
        return to_json(
            {
                "device": self.device,
                "op": self.op,
                "variant": self.variant,
                "format": self.format,
                "engine": self.engine,
                "sizes": self.sizes,
                "time_s": self.time_s,
                "intervals": ends,
                "bound_by": self.bound_by,
                "roofs_s": self.roofs_s,
                "flops": self.flops,
                "bytes": self.bytes,
                "flops_per_s": self.flops / self.time_s if self.time_s else 0.0,
                "bytes_per_s": self.bytes / self.time_s if self.time_s else 0.0,
                "details": self.details,
                "because": self.because,
                "measured": self.measured,
            }
        )

    def cells(self) -> dict[str, Any]:
        """The row as cells of a table."""
        plain = self.to_json()
        details: dict[str, Any] = plain["details"]
        return {
            **{key: plain[key] for key in ("device", "op", "variant", "format", "engine")},
            **self.sizes,
            "time_s": self.time_s,
            "low_80_s": self.interval.low_80 if self.interval else None,
            "high_80_s": self.interval.high_80 if self.interval else None,
            "bound_by": self.bound_by,
            "flops": self.flops,
            "bytes": self.bytes,
            **{f"roof_{key}_s": value for key, value in self.roofs_s.items()},
            **{key: value for key, value in details.items() if isinstance(value, str | int | float)},
            "measured_s": self.measured.time_s if self.measured else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """A variant that the device cannot run, and why."""

    device: str
    variant: str
    format: str
    engine: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAnswer:
    """All rows, and what came to nothing."""

    op: str
    rows: tuple[KernelRow, ...]
    declined: tuple[Declined, ...]
    swept: Mapping[str, tuple[Size, ...]]
    notes: tuple[str, ...]

    def at(self, **sizes: Size) -> list[KernelRow]:
        """Rows of one point of a sweep."""
        return [row for row in self.rows if all(row.sizes.get(key) == value for key, value in sizes.items())]

    def fastest(self) -> list[KernelRow]:
        """The fastest row of every point and device."""
        best: dict[tuple[Any, ...], KernelRow] = {}
        for row in self.rows:
            key = (row.device, *row.varied.values())
            if key not in best or row.time_s < best[key].time_s:
                best[key] = row
        return list(best.values())

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on."""
        return {
            "op": self.op,
            "results": [row.to_json() for row in self.rows],
            "declined": to_json(self.declined),
            "sweep": to_json(self.swept),
            "notes": list(self.notes),
        }
