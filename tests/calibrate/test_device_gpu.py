"""A GPU that is played, measured from end to end: a known one keeps its data sheet, an unknown one is drafted."""

import time
from pathlib import Path

import pytest

from orrery import estimate, get_device
from orrery.base.sources import Basis, Fact, Source
from orrery.calibrate.device import calibrate as device_calibration
from orrery.calibrate.device import facts as device_facts
from orrery.calibrate.device.calibrate import calibrate_device
from orrery.calibrate.device.draft import anchor_bytes
from orrery.calibrate.measure.backends.backend import Prepared
from orrery.calibrate.measure.power import Meters

PYTORCH = Source(title="PyTorch")


class PlayedGpu:
    """A backend whose kernels all take a tenth of a millisecond; what it says of itself is what PyTorch would."""

    name, device_kind, board = "pytorch", "gpu", "GPU-1"

    def __init__(self, title: str, memory_bytes: float = 141e9) -> None:
        self._title, self._memory_bytes = title, memory_bytes

    def bare(self):
        return self

    def formats(self):
        return ("bf16",)

    def facts(self):
        values = {
            "title": self._title,
            "vendor": "NVIDIA",
            "kind": "gpu",
            "memory_capacity_bytes": self._memory_bytes,
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


class PlayedMeter:
    """A meter of an NVIDIA board that always reads the same power."""

    measures = "H200 board"

    def __init__(self, index: int, limit_w: float | None) -> None:
        self.name, self.board, self._limit_w = f"nvml:{index}", f"GPU-{index}", limit_w
        self._began_s = time.perf_counter()

    def energy_j(self):
        return 100.0 * (1 + float(self.board[-1])) * (time.perf_counter() - self._began_s)

    def limit_w(self):
        return self._limit_w


@pytest.fixture
def metered(monkeypatch: pytest.MonkeyPatch):
    def meters(*found: PlayedMeter) -> None:
        monkeypatch.setattr(device_facts, "POWER_S", 0.05)
        monkeypatch.setattr(device_facts, "meters", lambda: Meters(found=found, absent=()))

    return meters


def test_power_is_read_from_the_board_that_was_measured(measured, metered) -> None:
    metered(PlayedMeter(0, 600.0), PlayedMeter(1, 650.0))
    mine = get_device(str(measured("NVIDIA H200")))
    assert mine.power_limit_w == 650.0  # the limit in force, not the data sheet's 700 W, not what a product drew
    assert mine.idle_power_w == pytest.approx(200.0, rel=0.05)


def test_power_at_work_stands_for_a_limit_that_is_not_told(measured, metered) -> None:
    metered(PlayedMeter(1, None))
    mine = get_device(str(measured("Frobnicator 9000")))
    assert mine.power_limit_w == pytest.approx(200.0, rel=0.05)
    assert "bf16 products" in mine.facts["power_limit_w"].at


def test_of_several_boards_that_do_not_say_which_they_are_none_is_read(measured, metered) -> None:
    metered(PlayedMeter(2, 600.0), PlayedMeter(3, 600.0))
    assert get_device(str(measured("NVIDIA H200"))).power_limit_w == get_device("h200-sxm").power_limit_w


def test_a_known_gpu_keeps_the_clock_that_its_peaks_are_stated_at(measured) -> None:
    known = get_device("h100-sxm")
    assert known.compute_clock_hz != 1.98e9
    assert get_device(str(measured("NVIDIA H100 80GB HBM3"))).compute_clock_hz == known.compute_clock_hz


def test_an_unknown_gpu_has_the_clock_that_its_driver_tells(measured) -> None:
    assert get_device(str(measured("Frobnicator 9000"))).compute_clock_hz == 1.98e9


def test_a_small_memory_is_streamed_through_in_part() -> None:
    assert anchor_bytes(PlayedGpu("Any")) == 2**32
    assert anchor_bytes(PlayedGpu("Any", memory_bytes=16e9)) == 2**30  # an eighth of 16 GB is 2 GB, just below 2 GiB
