"""Meters, on a system's tree and on a library that the tests make."""

from types import SimpleNamespace

import pytest

from orrery.base.errors import OrreryError
from orrery.calibrate.measure import power


def zone(root, name, kind, energy_uj, range_uj=10_000_000):
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{kind}\n")
    (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")
    (folder / "energy_uj").write_text(f"{energy_uj}\n")
    return folder / "energy_uj"


@pytest.fixture
def linux(monkeypatch):
    monkeypatch.setattr(power.platform, "system", lambda: "Linux")


@pytest.mark.usefixtures("linux")
def test_packages_and_memory_are_one_meter_and_nothing_counts_twice(tmp_path):
    package = zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    core = zone(tmp_path, "intel-rapl:0:0", "core", 500_000)
    memory = zone(tmp_path, "intel-rapl:0:1", "dram", 0)
    (meter,) = power.rapl(tmp_path)
    package.write_text("4000000")
    core.write_text("3000000")
    memory.write_text("500000")
    assert meter.energy_j() == pytest.approx(3.5)
    assert meter.measures == "package and dram"


@pytest.mark.usefixtures("linux")
def test_a_counter_that_wraps_goes_on_counting(tmp_path):
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 9_000_000)
    (meter,) = power.rapl(tmp_path)
    for now, counted_j in ((9_500_000, 0.5), (2_000_000, 3.0), (1_000_000, 12.0)):
        counter.write_text(str(now))
        assert meter.energy_j() == pytest.approx(counted_j)


@pytest.mark.usefixtures("linux")
def test_absent_and_unreadable_counters_are_said(tmp_path, monkeypatch):
    assert "no processor energy counters" in power.rapl(tmp_path / "nowhere")

    def refuse(file):
        raise PermissionError(file)

    zone(tmp_path, "intel-rapl:0", "package-0", 0)
    monkeypatch.setattr(power, "_number", refuse)
    assert "root only" in power.rapl(tmp_path)


def test_macos_says_that_it_cannot(monkeypatch):
    monkeypatch.setattr(power.platform, "system", lambda: "Darwin")
    assert "superuser" in power.rapl()


class NVMLError(Exception):
    """As pynvml's."""


def library(total_mj=None, power_mw=250_000.0, count=1, limit_mw=700_000.0):
    def total(handle):
        if total_mj is None:
            raise NVMLError("not supported")
        return total_mj[0]

    def limit(handle):
        if limit_mw is None:
            raise NVMLError("not supported")
        return limit_mw

    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: count,
        nvmlDeviceGetHandleByIndex=lambda i: i,
        nvmlDeviceGetName=lambda h: b"Board",
        nvmlDeviceGetUUID=lambda h: f"GPU-{h}",
        nvmlDeviceGetEnforcedPowerLimit=limit,
        nvmlDeviceGetTotalEnergyConsumption=total,
        nvmlDeviceGetPowerUsage=lambda h: power_mw,
    )


def test_a_board_that_counts_energy_is_asked_for_it():
    total_mj = [5_000.0]
    (meter,) = power.nvml(library(total_mj))
    before = meter.energy_j()
    total_mj[0] += 1_500.0
    assert meter.energy_j() - before == pytest.approx(1.5)
    assert meter.measures == "Board board"


def test_a_board_that_tells_its_power_only_is_summed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(power.time, "perf_counter", lambda: now[0])
    (meter,) = power.nvml(library(power_mw=250_000.0))
    now[0] = 4.0
    assert meter.energy_j() == pytest.approx(1000.0)


def test_a_board_says_which_it_is_and_what_limit_it_keeps_to():
    (meter,) = power.nvml(library([0.0], limit_mw=350_000.0))
    assert meter.board == "GPU-0"
    assert meter.limit_w() == pytest.approx(350.0)
    (silent,) = power.nvml(library([0.0], limit_mw=None))
    assert silent.limit_w() is None


def test_no_driver_and_no_board_are_said():
    def absent():
        raise NVMLError("driver not loaded")

    broken = library()
    broken.nvmlInit = absent
    assert "driver not loaded" in power.nvml(broken)
    assert "no board" in power.nvml(library(count=0))


def test_amd_boards_are_found_among_other_sensors(tmp_path, monkeypatch):
    for i, (kind, file) in enumerate([("k10temp", "temp1_input"), ("amdgpu", "power1_average")]):
        folder = tmp_path / f"hwmon{i}"
        folder.mkdir()
        (folder / "name").write_text(kind)
        (folder / file).write_text("300000000")
    now = [0.0]
    monkeypatch.setattr(power.time, "perf_counter", lambda: now[0])
    (meter,) = power.amdgpu(tmp_path)
    now[0] = 2.0
    assert meter.energy_j() == pytest.approx(600.0)
    assert "no AMD board" in power.amdgpu(tmp_path / "nowhere")


class Steady:
    """A meter of so many watts on the clock ``now``."""

    name, measures, board = "steady", "a test", ""

    def __init__(self, watts, now):
        self._watts, self._now, self.readings = watts, now, 0

    def energy_j(self):
        self.readings += 1
        return self._watts * self._now[0]


@pytest.fixture
def now(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(power.time, "perf_counter", lambda: now[0])
    return now


def test_mean_power_is_energy_over_time(now):
    meter = Steady(120.0, now)
    calls = []

    def call():
        calls.append(1)
        now[0] += 0.01

    assert power.mean_power_w(call, meter, 1.0) == pytest.approx(120.0)
    assert len(calls) >= 100
    assert meter.readings > 30  # often enough for counters that wrap and for power that is summed


def test_a_meter_that_does_not_move_is_said(now):
    def call():
        now[0] += 0.5

    with pytest.raises(OrreryError, match="counted nothing"):
        power.mean_power_w(call, Steady(0.0, now), 1.0)


def test_every_kind_of_meter_is_here_or_its_absence_is_said():
    result = power.meters()
    assert len({m.name.split(":")[0] for m in result.found}) + len(result.absent) == 3
