"""A GPU that is played, measured from end to end: a known one keeps its data sheet, an unknown one is drafted."""

import time
from pathlib import Path

import pytest

from orrery import estimate, get_device
from orrery.base.sources import Basis, Fact, Source
from orrery.calibrate.device import calibrate as device_calibration
from orrery.calibrate.device.calibrate import calibrate_device
from orrery.calibrate.measure.backends.backend import Prepared

PYTORCH = Source(title="PyTorch")


class PlayedGpu:
    """A backend whose kernels all take a tenth of a millisecond; what it says of itself is what PyTorch would."""

    name, device_kind = "pytorch", "gpu"

    def __init__(self, title: str) -> None:
        self._title = title

    def formats(self):
        return ("bf16",)

    def facts(self):
        values = {
            "title": self._title,
            "vendor": "NVIDIA",
            "kind": "gpu",
            "memory_capacity_bytes": 141e9,
            "num_compute_units": 132.0,
            "compute_clock_hz": 1.98e9,
            "last_level_cache_bytes": 5e7,
        }
        return {
            name: Fact(name=name, value=value, basis=Basis.STATED, source=PYTORCH, at="properties")
            for name, value in values.items()
        }

    def prepare(self, probe):
        return Prepared(call=lambda: time.sleep(1e-4))

    def synchronise(self):
        return None


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unheard):
    def calibrate(title: str) -> Path:
        monkeypatch.setattr(device_calibration, "find_backend", lambda words: PlayedGpu(title))
        path = tmp_path / "my-gpu.toml"
        calibrate_device(path, measurements=4, patience_s=0.0, has_exchange=False)
        return path

    return calibrate


ASKED = {"model": "llama-3.1-8b", "input_tokens": 128, "output_tokens": 16, "batch": 4}


def test_a_known_gpu_keeps_its_data_sheet_and_its_sibling_s_measurements(measured) -> None:
    path = measured("NVIDIA H200")
    mine, known = get_device(str(path)), get_device("h200-sxm")
    assert mine.dense_flops_per_s == pytest.approx(known.dense_flops_per_s, rel=1e-5)
    assert mine.facts["scaleup_each_way_bytes_per_s"].source == known.facts["scaleup_each_way_bytes_per_s"].source
    assert mine.calibrations["gemm", "bf16", "pytorch"].origin == "device"
    assert known.calibrations["moe", "bf16", "cutlass@tensorrt-llm"].origin == "device"
    assert mine.calibrations["moe", "bf16", "cutlass@tensorrt-llm"].origin == "generation"
    assert estimate(device=str(path), engine="pytorch", **ASKED).estimate.tpot_s > 0


def test_an_unknown_gpu_gets_its_roofs_from_its_anchors(measured) -> None:
    path = measured("Frobnicator 9000")
    mine = get_device(str(path))
    assert mine.title == "Frobnicator 9000"
    assert mine.kind == "gpu"
    assert mine.facts["dense_bf16_flops_per_s"].basis is Basis.MEASURED
    assert mine.facts["num_compute_units"].value == 132.0
    assert estimate(device=str(path), engine="pytorch", **ASKED).estimate.tpot_s > 0
