"""Published times of starts beside what is predicted for them."""

from dataclasses import dataclass
from typing import Any

from orrery.catalog.cold_start import LOADERS, Published, constants, path_of, published_starts, rates_of
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.fleet.cold_start.start import Engine, cold_start, num_captured
from orrery.fleet.cold_start.weights import ReplicaWeights
from orrery.scenario.answer import to_json

BYTES_16BIT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One published time and its prediction."""

    published: Published
    predicted_s: float

    @property
    def ratio(self) -> float:
        """Return predicted over measured."""
        return self.predicted_s / self.published.measured_s

    def to_json(self) -> dict[str, Any]:
        """The row as plain data."""
        return to_json(
            {
                **{k: getattr(self.published, k) for k in ("name", "part", "model", "device", "tp", "path", "loader")},
                "measured_s": self.published.measured_s,
                "predicted_s": self.predicted_s,
                "is_fitted": self.published.is_fitted,
                "source": self.published.fact.cite(),
            }
        )


def scored_starts() -> tuple[Scored, ...]:
    """Return every published time with its prediction."""
    return tuple(Scored(published=row, predicted_s=_predicted(row)) for row in published_starts())


STARTS = {"wake": "sleep-1", "reload": "sleep-2"}
"""Parts that are a start of their own; others are stages of a new process."""

STAGES = {"weights": ("weights", "registration"), "capture": ("capture",)}


def _predicted(row: Published) -> float:
    """The seconds of the part that a row is about."""
    device, needs = get_device(row.device), constants()
    layers = 0 if row.model_bytes and row.part in STARTS else get_model(row.model).num_layers
    if row.part == "trace":
        return needs.trace_layer_s * layers
    if row.part == "compile":
        return needs.compile_layer_s * layers
    size = row.model_bytes or get_model(row.model).num_parameters * BYTES_16BIT
    held = ReplicaWeights(model_bytes=size, device_bytes=size / row.tp, node_devices=row.tp)
    engine = Engine(num_layers=layers, num_captured=num_captured(512), compiles=True)
    path = path_of(row.path or "page-cache", device, row.path_bytes_per_s or None)
    loader = LOADERS[row.loader or "safetensors"]
    found = cold_start(STARTS.get(row.part, "new-process"), path, loader, held, rates_of(device), engine, needs)
    parts = STAGES.get(row.part)
    return sum(s.seconds_s for s in found.stages if parts is None or s.name in parts)
