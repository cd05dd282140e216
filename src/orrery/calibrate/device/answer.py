"""Result of a device calibration: every measurement beside its expected value, and the resulting device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orrery.base.units import percent
from orrery.calibrate.device.search import Measured
from orrery.scenario.answer import to_json
from orrery.scenario.show import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """One measurement; ``foreseen_s`` was predicted just before it, ``sigma_frac`` is how sure that was (log)."""

    work: str
    foreseen_s: float
    time_s: float
    error_frac: float
    sigma_frac: float
    spread_frac: float
    slowness_ratio: float

    @classmethod
    def of(cls, m: Measured) -> "MeasuredRow":
        """The row of one measurement."""
        return cls(
            work=m.work.name,
            foreseen_s=m.foreseen_s,
            time_s=m.timed.time_s,
            error_frac=m.foreseen_s / m.timed.time_s - 1.0,
            sigma_frac=m.foreseen_spread_frac,
            spread_frac=m.timed.spread_frac,
            slowness_ratio=m.slowness_ratio,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAnswer:
    """A measured device. ``uncertainty_frac``: one sigma of a predicted kernel time, on the average over the pool."""

    file: str
    device: str
    backend: str
    conditions: Mapping[str, Any]
    uncertainty_frac: float
    quiet_ratio: float  # slowest kept moment over the quietest
    rows: tuple[MeasuredRow, ...]
    facts: Mapping[str, float | str | bool]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Every field by its name; ``measurements`` are the rows."""
        return {
            "file": self.file,
            "device": self.device,
            "backend": self.backend,
            "facts": dict(self.facts),
            "num_measurements": len(self.rows),
            "uncertainty_frac": self.uncertainty_frac,
            "quiet_ratio": self.quiet_ratio,
            "measurements": to_json(self.rows),
            "conditions": to_json(self.conditions),
            "notes": list(self.notes),
        }

    def table(self) -> Table:
        """The measurements, for people."""
        notes = (
            f"Written to {self.file}: use it as --device {self.file} with --engine {self.backend}.",
            f"Kernels are predicted within {percent(self.uncertainty_frac)} (one sigma, on the average).",
            *self.notes,
        )
        return Table(
            kind="measurements",
            title=f"{self.device}: {len(self.rows)} measurements",
            rows=tuple(to_json(self.rows)),
            notes=notes,
        )
