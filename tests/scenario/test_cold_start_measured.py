"""Published times of starts beside what is predicted for them: what each row asks for."""

from types import SimpleNamespace

from orrery.catalog.cold_start import constants
from orrery.catalog.models import get_model
from orrery.scenario import cold_start_measured

LLAMA = get_model("llama-3.1-8b")


def published(part, **more):
    usual = {"part": part, "model": "llama-3.1-8b", "device": "h100-sxm", "tp": 4, "path": "", "loader": ""}
    return SimpleNamespace(**usual | {"path_bytes_per_s": 0.0, "model_bytes": 0.0, "measured_s": 4.0} | more)


def test_stages_that_grow_with_layers():
    assert cold_start_measured._predicted(published("trace")) == constants().trace_layer_s * 32
    assert cold_start_measured._predicted(published("compile")) == constants().compile_layer_s * 32
    assert cold_start_measured.Scored(published=published("trace"), predicted_s=6.0).ratio == 1.5


def test_a_published_start_is_asked_as_it_was_measured(monkeypatch):
    """Weights of 16 bits cut over four devices of a node; 512 sequences are captured; stages that the row is about."""
    asked = []

    def started(start, path, loader, held, rates, engine, needs):
        asked.append((start, path, loader, held, engine))
        return SimpleNamespace(stages=[SimpleNamespace(name=n, seconds_s=s) for n, s in stages.items()])

    stages = {"weights": 1.0, "registration": 2.0, "capture": 4.0, "other": 8.0}
    monkeypatch.setattr(cold_start_measured, "cold_start", started)
    found = [cold_start_measured._predicted(published(part)) for part in ("weights", "capture", "ready", "wake")]
    assert found == [3.0, 4.0, 15.0, 15.0]
    assert [start for start, *_ in asked] == ["new-process"] * 3 + ["sleep-1"]
    _, _, loader, held, engine = asked[0]
    size = LLAMA.num_parameters * 2
    assert (held.model_bytes, held.device_bytes, held.node_devices) == (size, size / 4, 4)
    assert (engine.num_layers, engine.num_captured) == (32, cold_start_measured.num_captured(512))
    assert engine.compiles
    assert loader == cold_start_measured.LOADERS["safetensors"]
    cold_start_measured._predicted(published("reload", model="unknown", model_bytes=8e9, tp=2))
    start, _, _, held, engine = asked[-1]
    assert (start, held.model_bytes, held.device_bytes, engine.num_layers) == ("sleep-2", 8e9, 4e9, 0)
